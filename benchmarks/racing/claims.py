"""Claims of the papers are held against measured runs. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .figures import Entry, Mean, ahead, ahead_by_steps, payload_ratio, sooner, step_s

CONSISTENT, NOT_REPRODUCED, OPEN = "consistent", "not reproduced", "open"
COMPARED_WITH_DLION = ("baseline", "hop", "gaia", "ako")
DENSE = ("parameter-server:sync=synchronous", "parameter-server", "baseline", "allreduce")
NO_BATCHING, NO_WEIGHTS = "dlion:batching=fixed,aggregation=mean", "dlion:aggregation=mean"
#: Accuracies that differ by less are equal: twice the standard error of 1,000 test images at 0.8.
EQUAL = 0.025


class Claim(NamedTuple):
    """One claim in one environment."""

    environment: str
    claim: str
    measured: str
    verdict: str


def claims(entries: Sequence[Entry]) -> list[Claim]:
    """All that these entries can say something about."""
    by_place: dict[tuple[str, str], dict[str, Entry]] = {}
    for entry in entries:
        by_place.setdefault((entry.race, entry.environment), {})[entry.strategy] = entry
    found: list[Claim] = []
    for (race, environment), there in by_place.items():
        for part in (_layer_drop, _dlion, _batching, _crossover, _line_rate, _cards):
            found += (Claim(f"{race} {environment}", *each) for each in part(there))
    return found


Said = tuple[str, str, str]
There = Mapping[str, Entry]


def _layer_drop(there: There) -> Iterator[Said]:
    dense = there.get("parameter-server:sync=synchronous")
    for name, entry in there.items():
        if dense is None or not name.startswith("layer-drop"):
            continue
        exchange, dense_exchange = (each.mean(lambda outcome: outcome.exchange_s) for each in (entry, dense))
        whole, dense_whole = entry.mean(step_s), dense.mean(step_s)
        if exchange is not None and dense_exchange is not None:
            less = 1 - exchange.value / dense_exchange.value
            yield f"{name}: communication of a step at least 95 % less", f"{less:.1%} less", _verdict(less >= 0.95)
        if whole is not None and dense_whole is not None:
            less = 1 - whole.value / dense_whole.value
            yield f"{name}: whole step at least 82 % less", f"{less:.1%} less", _verdict(less >= 0.82)


def _dlion(there: There) -> Iterator[Said]:
    """Of every variant but those that leave out a part of it."""
    for own in (name for name in there if name.partition(":")[0] == "dlion" and name not in (NO_BATCHING, NO_WEIGHTS)):
        for name in COMPARED_WITH_DLION:
            if name in there:
                yield f"{own} reaches the target before {name}", *_faster(there[own], there[name], 1.0)


def _batching(there: There) -> Iterator[Said]:
    for slow, fast, what, least in (
        (NO_BATCHING, NO_WEIGHTS, "dynamic batching takes 22 to 37 % less time", 1 / (1 - 0.22)),
        (NO_WEIGHTS, "dlion", "the weighted update takes 12 to 13 % less again", 1 / (1 - 0.12)),
    ):
        if slow in there and fast in there:
            yield what, *_faster(there[fast], there[slow], least)


def _crossover(there: There) -> Iterator[Said]:
    crossover, allreduce, sgp = (there.get(name) for name in ("crossover", "allreduce", "sgp"))
    if crossover and allreduce:
        pace, other = crossover.mean(step_s), allreduce.mean(step_s)
        if pace and other:
            more = other.value / pace.value - 1
            yield (
                "crossover makes at least 40 % more steps a second than all-reduce",
                f"{more:+.0%}",
                _verdict(more >= 0.4),
            )
        yield "crossover reaches the target at least 40 % sooner than all-reduce", *_faster(crossover, allreduce, 1.4)
    if crossover and sgp:
        yield "crossover ends with more accuracy than sgp", *_better(ahead(crossover, sgp), 0.0)
        yield "crossover has more accuracy than sgp after as many steps", *_better(ahead_by_steps(crossover, sgp), 0.0)
    grouped = there.get("crossover-hierarchical")
    if grouped and allreduce:
        told = "crossover-hierarchical has all-reduce's accuracy after as many steps"
        yield told, *_better(ahead_by_steps(grouped, allreduce), -EQUAL)


def _line_rate(there: There) -> Iterator[Said]:
    for name in DENSE:
        share = (
            there[name].mean(lambda each: each.traffic.line_share if each.traffic else None) if name in there else None
        )
        if share is not None:
            yield (
                f"{name} keeps its busiest link at 90 % of its rate",
                f"{share.value:.1%}",
                _verdict(share.value >= 0.9),
            )


def _cards(there: There) -> Iterator[Said]:
    for name, entry in there.items():
        ratio = entry.mean(payload_ratio)
        if ratio is not None:
            close = abs(ratio.value - 1) <= 0.07
            yield f"{name}: cards sent what the program counts, within 7 %", f"{ratio.value - 1:+.1%}", _verdict(close)


def _faster(one: Entry, other: Entry, least: float) -> tuple[str, str]:
    """Whether one reached the target ``least`` times as soon as the other."""
    count = f"reached by {one.reached} of {len(one.outcomes)}, the other by {other.reached} of {len(other.outcomes)}"
    ratio = sooner(one, other)
    if ratio is None:
        return count, OPEN
    told = f"{one.target_s} s, {other.target_s} s" if one.target_s and other.target_s else count
    verdict = CONSISTENT if ratio.low >= least else NOT_REPRODUCED if ratio.high < least else OPEN
    return f"{ratio} times as soon ({told})", verdict


def _better(lead: Mean | None, least: float) -> tuple[str, str]:
    """Whether so much more accuracy is ``least`` or more, wherever in its interval the mean is."""
    if lead is None:
        return "no seed in common", OPEN
    half = lead.half or 0.0
    measured = f"{100 * lead.value:+.1f} points" + (f" ± {100 * half:.1f}" if lead.half is not None else "")
    return measured, CONSISTENT if lead.value - half >= least else NOT_REPRODUCED if lead.value + half < least else OPEN


def _verdict(true: bool) -> str:
    return CONSISTENT if true else NOT_REPRODUCED
