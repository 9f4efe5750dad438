"""Stochastic gradient push: its time-varying directed exponential graph, and push-sum (Assran et al., 2019, Alg. 1).

A worker has a mass (x, w): x begins as its weights, w as 1. It computes gradients at z = x / w, subtracts them from x,
halves its mass, sends one half and adds what it receives. Halving and adding leave the sums of x and of w, over all
workers and all messages on their way, as they were: so every z comes to be the mean, even where some send more often
than others, or messages are late.
"""

import numpy as np


def hop(n, step):
    # type: (int, int) -> int
    """How many ranks further all n >= 2 send in a step: 1, 2, 4, ... to the greatest power of 2 below n, and again.

    After one such cycle everyone has something of everyone: the mean itself where n is a power of 2.
    """
    return 1 << (step % (n - 1).bit_length())


def halve(x, w):
    # type: (np.ndarray, float) -> float
    """x <- x / 2 in place, and w / 2: both what is kept and what is to be sent. x: (parameters,) float32."""
    x *= 0.5
    return w / 2


def absorb(x, w, received_x, received_w):
    # type: (np.ndarray, float, np.ndarray, float) -> float
    """x <- x + received_x in place, and w + received_w. The half to be sent must be gone, or copied, before."""
    x += received_x
    return w + received_w


def estimate(x, w, z):
    # type: (np.ndarray, float, np.ndarray) -> None
    """z <- x / w, the weights to compute gradients at; (parameters,) float32."""
    np.divide(x, np.float32(w), out=z)
