"""The sentence above a ranking: what to train on, and what the nearest alternative costs. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from planner.units import joules, seconds, watts

#: An alternative is faster or more frugal only if it saves at least this share.
WORTH_TELLING = 0.1
#: Clusters of more devices are counted, not listed.
MOST_NAMED = 4


class Offer(NamedTuple):
    """A cluster as a sentence names it, with its predicted figures.

    energy_j: None where watts are unknown.
    """

    who: str
    time_s: float
    energy_j: float | None


def named(names: Sequence[str]) -> str:
    """``tx2 alone``, ``tx1 + tx2``, or ``12 devices``."""
    if len(names) == 1:
        return f"{names[0]} alone"
    return " + ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} devices"


def advice(
    best: Offer,
    fastest: Offer,
    most_frugal: Offer,
    following: Offer | None,
    by_power: bool = False,
) -> str:
    """What to train on, and the trade against it that costs least; else the next best cluster.

    following: the next cluster of other devices; None where there is none.
    by_power: whether power is the metric, so that watts are told.
    """
    power = f"{watts(best.energy_j / best.time_s)}, " if by_power and best.energy_j else ""
    return f"Train on {best.who}: {power}{_figures(best)}.{_alternative(best, fastest, most_frugal, following)}"


def _alternative(best: Offer, fastest: Offer, most_frugal: Offer, following: Offer | None) -> str:
    trades = []
    if fastest.time_s <= (1 - WORTH_TELLING) * best.time_s:
        trades.append((_cost(fastest, best), _faster(fastest, best)))
    if best.energy_j and most_frugal.energy_j and most_frugal.energy_j <= (1 - WORTH_TELLING) * best.energy_j:
        trades.append((_cost(most_frugal, best), _more_frugal(most_frugal, best)))
    if trades:
        return f" {min(trades)[1]}"
    if following is None:
        return ""
    return f" The next best is {following.who}: {_figures(following)}."


def _figures(of: Offer, between: str = ", ") -> str:
    return between.join([seconds(of.time_s)] + ([] if of.energy_j is None else [joules(of.energy_j)]))


def _cost(other: Offer, best: Offer) -> float:
    """Energy × time against the best's; time alone where watts are unknown."""
    energy = other.energy_j / best.energy_j if other.energy_j and best.energy_j else 1.0
    return energy * other.time_s / best.time_s


def _faster(other: Offer, best: Offer) -> str:
    if not other.energy_j or not best.energy_j or other.energy_j <= best.energy_j:
        return f"{other.who} would take {_figures(other, ' and ')}."
    return f"{other.who} would take {seconds(other.time_s)} at {_times(other.energy_j / best.energy_j)} the energy."


def _more_frugal(other: Offer, best: Offer) -> str:
    longer = other.time_s / best.time_s
    if longer <= 1:
        return f"{other.who} would take {_figures(other, ' and ')}."
    return f"{other.who} would need {joules(other.energy_j)} and take {_times(longer)} as long."


def _times(factor: float) -> str:
    return f"{factor:.{1 if factor < 10 else 0}f} times"
