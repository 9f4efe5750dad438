"""Predicted over measured steps of real GPU nodes that train with NCCL over TCP.

Data of others (Adnan082/diloco-measured): four nodes with an L40S each, links of 50 Mbit/s to
9.5 Gbit/s; DDP, local SGD and DiLoCo of a model with 30.8 million parameters. The ring limit is
computing and 2 (n - 1) / n of the model's bytes at iperf3's rate.

1. Mean absolute errors of the mean step with the constants of the product, which were fitted to
   these runs; further runs are held out from this project. "rings only": no trees in the model.
2. The same with constants fitted to all runs but those of the group: its link, its algorithm or
   its number of local steps. A group's own constant then stays what it is without a fit.
3. The constants, and from where to where they come by leaving a group out.
"""

import sys
from collections.abc import Callable, Sequence
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
    fitted,
    predicted_s,
    read,
    relative_errors,
    ring_limit_s,
)
from reporting import parser, show

LINK, ALGORITHM, LOCAL_STEPS = "link", "algorithm", "local_steps"


def main() -> None:
    options = parser(__doc__).parse_args()
    if not FILE.is_file():
        print(f"skipped: {FILE.name} is not beside this checkout", file=sys.stderr)
        return
    runs = read()
    show("1. GPU nodes, constants of the product", in_sample(runs), options.json)
    rows, fits = held_out(runs)
    show("2. GPU nodes, constants fitted without the group", rows, options.json)
    show("3. Constants", constants(fits), options.json)


def in_sample(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """A row for each algorithm and link, then for all of DDP and all local updates."""
    groups = sorted({(run.algorithm, run.link) for run in runs})
    named = [
        (f"{algorithm}, {link}", [run for run in runs if (run.algorithm, run.link) == (algorithm, link)])
        for algorithm, link in groups
    ]
    return [_errors(*each) | {"rings only %": _rings_only(each[1])} for each in named + _kinds(runs)]


def held_out(runs: Sequence[Run]) -> tuple[list[dict[str, Any]], list[Constants]]:
    """A row for each group, and the constants fitted without it."""
    rows, fits = [], []
    for column in (LINK, ALGORITHM, LOCAL_STEPS):
        errors: dict[str, list[float]] = {}
        for value in sorted({getattr(run, column) for run in runs}):
            held = [run for run in runs if getattr(run, column) == value]
            fit = fitted([run for run in runs if getattr(run, column) != value])
            fits.append(fit)
            for name, chosen in _kinds(held):
                predict = _predictor(fit, knows_line=value != UNSHAPED)
                rows.append(_errors(f"{column} {value}: {name}", chosen, predict))
                errors.setdefault(name, []).extend(abs(relative_errors(chosen, predict)))
        for name, found in errors.items():
            rows.append(_row(f"{column}, each held out: {name}", [run for run in runs if _kind(run) == name], found))
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


def _predictor(fit: Constants, knows_line: bool) -> Callable[[Run], float]:
    return lambda run: predicted_s(run, fit, LINE_BYTES_PER_S if knows_line else 0.0)


def _kind(run: Run) -> str:
    return "DDP" if run.algorithm == DDP else "local updates"


def _kinds(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    return [(kind, [run for run in runs if _kind(run) == kind]) for kind in sorted({_kind(run) for run in runs})]


def _rings_only(runs: Sequence[Run]) -> float:
    return 100 * float(abs(relative_errors(runs, lambda run: predicted_s(run, trees=False))).mean())


def _errors(name: str, runs: Sequence[Run], predict: Callable[[Run], float] = predicted_s) -> dict[str, Any]:
    return _row(name, runs, abs(relative_errors(runs, predict)))


def _row(name: str, runs: Sequence[Run], found: Any) -> dict[str, Any]:
    return {
        "runs of": name,
        "runs": len(runs),
        "ring limit %": 100 * float(abs(relative_errors(runs, ring_limit_s)).mean()),
        "model %": 100 * float(np.mean(found)),
        "worst %": 100 * float(np.max(found)),
    }


if __name__ == "__main__":
    main()
