"""Notes below a table: at most three, those that matter most; the rest is asked for. Pure."""

from collections.abc import Sequence

#: Most notes on a screen without ``--verbose``.
MOST_SHOWN = 3


def few(notes: Sequence[str], details: Sequence[str], verbose: bool) -> list[str]:
    """The most important notes, and how many there are besides; all, with details, if verbose.

    notes: what changes what the reader does, the most important first.
    details: how the figures came about.
    """
    each_once = list(dict.fromkeys(notes))
    if verbose:
        return [*each_once, *details]
    more = len(each_once) - MOST_SHOWN
    return [*each_once[:MOST_SHOWN], *([f"{more} more with --verbose"] if more > 0 else [])]


def legend(*signs: str | None) -> list[str]:
    """One line that explains the signs that are shown; none where none is."""
    shown = [sign for sign in signs if sign]
    return ["; ".join(shown)] if shown else []
