"""Strategies against one another on a fleet that is there: predicted and measured time, accuracy, bytes, joules.

    python benchmarks/race.py profile.json STRATEGY... --data examples/fashion-mnist --steps 600 --target 0.8 --seeds 3

All devices of the profile take part, with the same data, initial weights and number of steps; strategies take turns
within each seed, so that the machine's drift falls on all alike. Every learning rate of ``--rates`` is tried with the
first seed, and the one with the best last accuracy is kept: the same number of trials for every strategy. The time to
the target is that of the first evaluation that reaches it.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from reporting import Spread, parser, show

from backends import data
from planner import training
from planner.fleet import Fleet, load_fleet
from planner.launch import Launch
from planner.plan import make_plan, recommend
from planner.planfile import Plan
from planner.profilefile import load_profile
from planner.run import carry_out
from planner.runs import RunFolder
from planner.training import Options


class Run(NamedTuple):
    """What one run came to."""

    time_s: float
    predicted_s: float
    accuracy: float
    target_s: float | None
    bytes_sent: int
    energy_j: float | None


def main() -> None:
    options = _arguments()
    dataset = training.load_dataset(options.data)
    profile = load_profile(Path(options.profile))
    fleet = load_fleet(Path(options.fleet))
    plans = {
        text: make_plan(
            recommend(profile, {"time": 1.0}, steps=options.steps, include=list(profile.devices), strategy=text),
            options.fleet,
        )
        for text in options.strategies
    }
    rates = {text: _tuned(plan, fleet, dataset, options) for text, plan in plans.items()}
    runs: dict[str, list[Run]] = {text: [] for text in plans}
    for seed in range(options.seeds):
        for text, plan in plans.items():
            runs[text].append(_run(plan, fleet, dataset, options, seed, rates[text]))
    rows = [_row(text, rates[text], found) for text, found in runs.items()]
    show(f"{options.steps} steps, target {options.target:.0%}", rows, options.json)


def _arguments() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("profile")
    made.add_argument("strategies", nargs="+")
    made.add_argument("--data", required=True)
    made.add_argument("--fleet", default="fleet.toml")
    made.add_argument("--steps", type=int, default=600)
    made.add_argument("--target", type=float, default=0.8)
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.03])
    return made.parse_args()


def _tuned(plan: Plan, fleet: Fleet, dataset: data.Dataset, options: argparse.Namespace) -> float:
    if len(options.rates) == 1:
        return float(options.rates[0])
    return float(max(options.rates, key=lambda rate: _run(plan, fleet, dataset, options, 0, rate).accuracy))


def _run(
    plan: Plan, fleet: Fleet, dataset: data.Dataset, options: argparse.Namespace, seed: int, rate: float
) -> Run:
    reached: list[float] = []
    at: dict[str, Any] = {"elapsed_s": 0.0}

    def heard(_: str, event: dict[str, Any]) -> None:
        if "progress" in event:
            at.update(event["progress"])
        if "evaluated" in event and event["evaluated"]["accuracy"] >= options.target:
            reached.append(at["elapsed_s"])

    chosen = Options(options.data, rate=rate, seed=seed, evaluate_every=max(1, options.steps // 20), keep_weights=False)
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(plan, fleet, dataset, chosen, RunFolder.create(Path(folder), "race"), heard)
        result = carry_out(launch)
    return Run(
        time_s=result["measured"]["time_s"],
        predicted_s=result["predicted"]["time_s"],
        accuracy=result["evaluations"][-1]["accuracy"],
        target_s=reached[0] if reached else None,
        bytes_sent=sum(worker["bytes"] for worker in at["workers"].values()),
        energy_j=result["measured"]["energy_j"],
    )


def _row(text: str, rate: float, runs: list[Run]) -> dict[str, Any]:
    reached = [run.target_s for run in runs if run.target_s is not None]
    joules = [run.energy_j for run in runs if run.energy_j is not None]
    return {
        "strategy": text,
        "rate": rate,
        "s": Spread.of(run.time_s for run in runs),
        "predicted / measured": Spread.of(run.predicted_s / run.time_s for run in runs),
        "accuracy": Spread.of(run.accuracy for run in runs),
        "s to target": Spread.of(reached) if len(reached) == len(runs) else f"{len(reached)} of {len(runs)}",
        "MB": Spread.of(run.bytes_sent / 1e6 for run in runs),
        "J": Spread.of(joules) if joules else "-",
    }


if __name__ == "__main__":
    main()
