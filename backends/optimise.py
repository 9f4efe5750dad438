"""The server's update: SGD with momentum on flat arrays, block by block so that it stays in the cache."""

import numpy as np

from backends.base import Optimiser

#: Elements handled at once. Four float32 blocks of this size fill 1 MiB, a common second-level cache; twice as
#: many gain a tenth where a third level lies behind it, half as many lose as much to the cost of the calls.
BLOCK = 1 << 16


def apply(weights, momentum, gradients, optimiser, rate):
    # type: (np.ndarray, np.ndarray, np.ndarray, Optimiser, float) -> None
    """v <- m v + g + d w;  w <- w - rate v, in place. All arrays float32 of one shape (parameters,).

    ``optimiser`` gives m (momentum) and d (weight decay); ``rate`` is the schedule's rate of this update.
    ``momentum`` is not read or written where m is 0; ``gradients`` is left as it was.
    """
    scratch = np.empty(min(BLOCK, weights.size), np.float32)
    for start in range(0, weights.size, BLOCK):
        w = weights[start : start + BLOCK]
        g = gradients[start : start + BLOCK]
        t = scratch[: w.size]
        if optimiser.momentum:
            v = momentum[start : start + BLOCK]
            v *= optimiser.momentum
            v += g
            if optimiser.weight_decay:
                np.multiply(w, optimiser.weight_decay, out=t)
                v += t
            np.multiply(v, rate, out=t)
        else:
            np.multiply(g, rate, out=t)
            if optimiser.weight_decay:
                w *= 1.0 - rate * optimiser.weight_decay
        w -= t


def finite(flat):
    # type: (np.ndarray) -> bool
    """Whether all of (elements,) float32 are finite, in one reading. Those whose squares overflow are not."""
    return bool(np.isfinite(np.dot(flat, flat)))
