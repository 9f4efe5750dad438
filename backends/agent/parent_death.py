"""A process gets a signal when its parent has ended (Linux)."""

import ctypes

_PR_SET_PDEATHSIG = 1
#: None where there is no Linux.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)


def ask_for(number: int) -> None:
    """Ask for this signal; elsewhere than on Linux none comes."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number)
