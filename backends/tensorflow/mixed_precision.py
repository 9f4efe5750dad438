"""Gradients in bfloat16, with weights and gradients in float32.

TensorFlow's graph optimizer casts around the operations that bear it, as torch.autocast does. A
policy of Keras would reach layers of Keras only, and has to be set before these are made.
"""

from contextlib import contextmanager
from typing import Iterator

import tensorflow as tf

from profilers.mixed_precision import FP16, FP32

#: The rewrite of graphs for processors with oneDNN; older versions of TensorFlow ignore the name.
_REWRITE = "auto_mixed_precision_onednn_bfloat16"
#: Its product with 1 is 1 where seven bits of mantissa are left of it.
_LONG = 1.0 + 2.0**-10
_REMEDY = "profile it with --framework torch or --precision fp32"


def require(precision: str, accelerator: str) -> None:
    """Raises ValueError where TensorFlow cannot compute in a mixed precision on its accelerator."""
    if precision == FP16:
        raise ValueError("fp16 needs torch, which scales the loss; %s" % _REMEDY)
    if accelerator != "cpu":
        raise ValueError("TensorFlow computes in %s on processors only here; %s" % (precision, _REMEDY))
    with computing_in(precision):
        found = float(tf.function(_product, autograph=False)(tf.fill((1, 1), _LONG), tf.ones((1, 1)))[0, 0])
    if found != 2.0:
        raise ValueError("TensorFlow %s does not compute in %s here; %s" % (tf.__version__, precision, _REMEDY))


@contextmanager
def computing_in(precision: str) -> Iterator[None]:
    """Graphs that this thread calls in this context compute in a precision."""
    if precision == FP32:
        yield
        return
    former = tf.config.optimizer.get_experimental_options().get(_REWRITE, False)
    tf.config.optimizer.set_experimental_options({_REWRITE: True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({_REWRITE: former})


def _product(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """A product and 1 more; the rest is there because smaller graphs are not rewritten."""
    return tf.matmul(tf.nn.relu(one), tf.nn.relu(other)) + 1.0
