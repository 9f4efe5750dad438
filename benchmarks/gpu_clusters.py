"""Predicted over measured times of real GPU nodes that train with NCCL over TCP.

Data of others (Adnan082/diloco-measured): four nodes with an L40S each, links of 50 Mbit/s to
9.5 Gbit/s; DDP, local SGD and DiLoCo of a model with 30.8 million parameters. A "step" is the mean
step of a run, a "round" its local steps and their exchange, an "exchange" what that step takes
beyond computing. A step of a run with many local steps is computing for the most part, so that its
exchange tells more of the model. The ring limit is computing and 2 (n - 1) / n of the model's bytes
at iperf3's rate. Errors are predicted / measured - 1.

1. By algorithm and link, with the constants of the product, which were fitted to the mean steps of
   these very runs, and the run's own seconds of computing. "rings only": no trees in the model.
2. Held out: constants fitted to the mean steps, and computing taken from the median, of all runs
   but those of the group: its link, its algorithm or its number of local steps. A group's own
   constant then stays what it is without a fit.
3. How far repetitions of a run are from the mean of the others, where there are some: no
   prediction can be better than that on these runs.
4. The constants, and from where to where they come by leaving a group out.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from measured_clusters import (
    DDP,
    FILE,
    LINE_BYTES_PER_S,
    OURS,
    UNSHAPED,
    Constants,
    Run,
    Timed,
    computing_as,
    fitted,
    measured,
    predicted,
    read,
    repeated,
    ring_limit,
)
from reporting import Spread, parser, show

from planner.arrays import Floats

LINK, ALGORITHM, LOCAL_STEPS = "link", "algorithm", "local_steps"
Pairs = list[tuple[Timed, Run]]


def main() -> None:
    options = parser(__doc__).parse_args()
    if not FILE.is_file():
        print(f"skipped: {FILE.name} is not beside this checkout", file=sys.stderr)
        return
    runs = read()
    show("1. GPU nodes, fitted to these runs", list(in_sample(runs)), options.json)
    rows, fits = held_out(runs)
    show("2. GPU nodes, the group held out of the fit and of computing", rows, options.json)
    show(
        "3. GPU nodes, a run by its other repetitions",
        list(_rows("repeated", "its other repetitions", repeated(runs))),
        options.json,
    )
    show("4. Constants", constants(fits), options.json)


def in_sample(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Rows for each algorithm and link, all of DDP, all local updates and these by exchanges."""
    groups = sorted({(run.algorithm, run.link) for run in runs})
    named = [
        (f"{algorithm}, {link}", [run for run in runs if (run.algorithm, run.link) == (algorithm, link)])
        for algorithm, link in groups
    ]
    local = [run for run in runs if run.algorithm != DDP]
    first = [
        ("local updates, only the first exchange", [run for run in local if run.exchanges == 1]),
        ("local updates, several exchanges", [run for run in local if run.exchanges > 1]),
    ]
    for name, chosen in named + _kinds(runs) + first:
        rings_only = [(predicted(run, trees=False), run) for run in chosen]
        rows = _rows(name, f"these {len(runs)}", [(predicted(run), run) for run in chosen])
        for row, each in zip(rows, _of(chosen), strict=True):
            yield row | {"rings only %": _mean(_errors(rings_only, each))}


def held_out(runs: Sequence[Run]) -> tuple[list[dict[str, Any]], list[Constants]]:
    """Rows for each group, and the constants fitted without it."""
    rows, fits = [], []
    for column in (LINK, ALGORITHM, LOCAL_STEPS):
        every: dict[str, Pairs] = {}
        for value in sorted({getattr(run, column) for run in runs}):
            held = [run for run in runs if getattr(run, column) == value]
            known = [run for run in runs if getattr(run, column) != value]
            fit = fitted(known)
            fits.append(fit)
            predict = _predictor(fit, known, knows_line=value != UNSHAPED)
            for name, chosen in _kinds(held):
                pairs = [(predict(run), run) for run in chosen]
                rows += _rows(f"{column} {value}: {name}", f"{len(known)} others", pairs)
                every.setdefault(name, []).extend(pairs)
        for name, pairs in every.items():
            rows += _rows(f"each {column}: {name}", "all but its own", pairs)
    return rows, fits


def constants(fits: Sequence[Constants]) -> list[dict[str, Any]]:
    """A row for each constant."""
    meaning = {
        "hop_s": ("ms a hop: two copies, two threads", 1e3, "0.1 to 1"),
        "copy_s_per_byte": ("ns a byte of an exchange: buffers", 1e9, "0.05 to 0.5"),
        "connect_s": ("s of the first exchange", 1.0, "0.1 to 2"),
        "flows": ("sockets of NCCL over iperf3's one", 1.0, "1 to the line's rate"),
    }
    return [
        {
            "constant": what,
            "product": value * scale,
            "least": min(getattr(fit, name) for fit in fits) * scale,
            "greatest": max(getattr(fit, name) for fit in fits) * scale,
            "plausible": plausible,
        }
        for (name, (what, scale, plausible)), value in zip(meaning.items(), OURS, strict=True)
    ]


def _predictor(fit: Constants, known: Sequence[Run], knows_line: bool) -> Callable[[Run], Timed]:
    line_bytes_per_s = LINE_BYTES_PER_S if knows_line else 0.0
    return lambda run: predicted(computing_as(run, known), fit, line_bytes_per_s)


def _kinds(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    kinds = {"DDP": [run for run in runs if run.algorithm == DDP]}
    kinds["local updates"] = [run for run in runs if run.algorithm != DDP]
    return [(name, chosen) for name, chosen in kinds.items() if chosen]


def _of(runs: Sequence[Run]) -> tuple[str, ...]:
    """What is told of these runs: a step of DDP is a round."""
    return ("step", "exchange") if all(run.algorithm == DDP for run in runs) else Timed._fields


def _rows(name: str, calibrated: str, pairs: Pairs) -> Iterator[dict[str, Any]]:
    runs = [run for _, run in pairs]
    for each in _of(runs):
        errors = _errors(pairs, each)
        yield {
            "runs of": name,
            "calibrated on": calibrated,
            "time of": each,
            "runs": len(runs),
            "ring limit %": _mean(_errors([(ring_limit(run), run) for run in runs], each)),
            "mean %": _mean(errors),
            "worst %": float(abs(errors).max()),
            "median (range) %": Spread.of(errors.tolist()),
        }


def _errors(pairs: Pairs, each: str) -> Floats:
    """(runs,) predicted over measured, less 1, in per cent."""
    return np.array([100 * (getattr(said, each) / getattr(measured(run), each) - 1) for said, run in pairs])


def _mean(errors: Floats) -> float:
    return float(abs(errors).mean())


if __name__ == "__main__":
    main()
