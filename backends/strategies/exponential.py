"""The time-varying directed exponential graph of stochastic gradient push (SGP, Assran et al., 2019)."""


def hop(n: int, step: int) -> int:
    """How many ranks further all n >= 2 send in a step: 1, 2, 4, ... to the greatest power of 2 below n, and again.

    After one such cycle everyone has something of everyone: the mean itself where n is a power of 2.
    """
    return 1 << (step % (n - 1).bit_length())
