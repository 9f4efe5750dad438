"""This computes what the lab's terms of power cost the planner's form of watts, without a lab.

Of every kind of device `--units` units are drawn by seed. Each is profiled as the planner does, for
10 s idle and then 10 s at full use, and predicted by idle watts and a share of the dynamic ones.
Then, after a rest, it is busy for a share of the time: of every reading ("within readings"), or of
every four seconds ("in turn"). Shown is predicted / drawn - 1 of the mean watts over the run, in
per cent; noise and the rounding of the monitors are left out.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from reporting import Spread, parser, show

from planner.lab.power import MODELS, PERIOD_S, PhysicalPower
from planner.lab.power_terms import PowerTerms, draw, heated, load_share
from power_models import nameplate

PROFILED_S = 10.0
SHARES, RUNS_S = (0.25, 0.5, 0.75, 1.0), (20.0, 600.0)
#: Seconds of a turn of work and waiting.
TURN_S = 4.0
WITHIN, IN_TURN = "within readings", "in turn"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--units", type=int, default=50, metavar="N", help="of each kind")
    chosen = options.parse_args()
    show("Watts of devices with terms, by idle watts and a share", list(_rows(chosen.units)), chosen.json)


def error(model: PhysicalPower, terms: PowerTerms, share: float, run_s: float, in_turn: bool) -> float:
    """Predicted over drawn mean watts of one run, less 1."""
    busy_w = mean_w(model, terms, [1.0] * round(PROFILED_S / PERIOD_S))
    predicted_w = nameplate.watts(np.array(model.idle_w), np.array(busy_w), np.array(share))
    return float(predicted_w) / mean_w(model, terms, _load(share, run_s, in_turn)) - 1


def mean_w(model: PhysicalPower, terms: PowerTerms, load: list[float]) -> float:
    """Mean watts of a device that idled before; one utilisation for each reading."""
    warmth, shares = 0.0, []
    for utilisation in load:
        warmed = heated(terms, warmth, utilisation, PERIOD_S)
        warmth = warmed.after
        shares.append(load_share(terms, utilisation, warmed.mean))
    return model.idle_w + model.dynamic_w * float(np.mean(shares))


def _load(share: float, run_s: float, in_turn: bool) -> list[float]:
    periods = round(run_s / PERIOD_S)
    if not in_turn:
        return [share] * periods
    return [float((index * PERIOD_S) % TURN_S < share * TURN_S) for index in range(periods)]


def _rows(units: int) -> Iterator[dict[str, Any]]:
    drawn = [(MODELS[kind], draw(seed, kind, kind)) for kind in MODELS for seed in range(units)]
    for run_s in RUNS_S:
        for share in SHARES:
            for how in (WITHIN, IN_TURN)[: 1 + (share < 1)]:
                found = [100 * error(*unit, share, run_s, how == IN_TURN) for unit in drawn]
                yield {
                    "run, s": run_s, "busy": share, "how": how, "units": len(found),
                    "mean %": float(np.mean(np.abs(found))), "worst %": max(map(abs, found)),
                    "median (range) %": Spread.of(found),
                }  # fmt: skip


if __name__ == "__main__":
    main()
