"""Short runs of every preset are compared with their predictions on an existing fleet.

    python benchmarks/presets.py profile.json --data examples/fashion-mnist --seconds 20 --repeats 3

All devices of the profile take part. Each run is predicted for as many steps as it made, its
beginning included; presets take turns, so that the machine's drift falls on all alike. Bytes are
those of messages over the network.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from reporting import Spread, parser, show

from backends.data import dataset as data
from backends.protocol.events import Progress
from backends.strategies.presets import PRESETS
from backends.training.run_settings import RunSettings
from planner.agents.call import Event
from planner.fleet.device import Fleet
from planner.fleet.file import load_fleet
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.plan.recommend import make_plan, recommend
from planner.plan.texts import parse_strategy
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import Learning
from planner.profile.file import Profile, load_profile
from planner.train.orders import Options
from planner.train.start import TrainingRun
from planner.train.train import carry_out
from planner.train.training_data import ShippedImages, load_dataset


class Run(NamedTuple):
    """One run and what was predicted of as many steps."""

    steps: int
    time_s: float
    predicted_s: float
    sent_bytes: int
    predicted_bytes: float


def main() -> None:
    options = _arguments()
    dataset = load_dataset(options.data)
    fleet, profile = load_fleet(Path(options.fleet)), load_profile(Path(options.profile))
    runs: dict[str, list[Run]] = {name: [] for name in options.presets}
    for _ in range(options.repeats):
        for name, found in runs.items():
            found.append(_run(_plan(name, profile, dataset, options), fleet, dataset, options))
    show(f"Runs of {options.seconds:g} s", [_row(name, found) for name, found in runs.items()], options.json)


def _arguments() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("profile")
    made.add_argument("presets", nargs="*", default=list(PRESETS))
    made.add_argument("--data", required=True)
    made.add_argument("--fleet", default="fleet.toml")
    made.add_argument("--seconds", type=float, default=20.0)
    made.add_argument("--repeats", type=int, default=3)
    return made.parse_args()


def _plan(name: str, profile: Profile, dataset: data.Dataset, options: argparse.Namespace) -> Plan:
    """For about as many steps as there is time for: batches may grow with them."""
    steps = 1000
    for _ in range(2):
        request = RecommendRequest(
            {"time": 1.0}, RunSettings(steps=steps, strategy=parse_strategy(name)), include=list(profile.devices),
            learning=Learning(len(dataset.train_labels)),
        )  # fmt: skip
        plan = make_plan(recommend(profile, request), options.fleet)
        steps = max(1, round(steps * options.seconds / plan.prediction.time_s))
    return plan


def _run(plan: Plan, fleet: Fleet, dataset: data.Dataset, options: argparse.Namespace) -> Run:
    reports: list[Progress] = []

    def on_event(_: str, event: Event) -> None:
        if isinstance(event, Progress):
            reports[:] = [event]

    endless = plan.for_steps(1000 * plan.run.steps)
    chosen = Options(options.data, evaluate_every=endless.run.steps, keep_weights=False)
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun(
            endless, fleet, ShippedImages(dataset), chosen, RunFolder.create(Path(folder), "presets"), on_event
        )
        result = carry_out(run, lasting_s=options.seconds)
    made = plan.for_steps(result["steps_made"])
    beside = plan.server if plan.run.strategy.through_server else ""  # uses no network
    sent = sum(worker.bytes for name, worker in reports[-1].workers.items() if name != beside)
    return Run(
        made.run.steps,
        result["measured"]["time_s"],
        made.prediction.time_s,
        sent,
        made.network_bytes,
    )


def _row(name: str, runs: list[Run]) -> dict[str, Any]:
    return {
        "preset": name,
        "steps": Spread.of(run.steps for run in runs),
        "ms a step": Spread.of(1000 * run.time_s / run.steps for run in runs),
        "predicted / measured s": Spread.of(run.predicted_s / run.time_s for run in runs),
        "MB a step": Spread.of(run.sent_bytes / run.steps / 1e6 for run in runs),
        "predicted / measured bytes": Spread.of(run.predicted_bytes / max(1, run.sent_bytes) for run in runs),
    }


if __name__ == "__main__":
    main()
