"""A worker is stopped where it is (SIGSTOP, as when its Wi-Fi is gone): who still ends the run?

    TENSORFLOW_PYTHON=... python benchmarks/stopped_worker.py benchmarks/racing/three.toml --out
    race

The planner's parameter server and TensorFlow's get as many steps, on the same devices of a lab
(root); a few seconds after the beginning the last one without the server is stopped. Shown is how
many were done then, how many at the end, and when all were; whoever has not ended after ``--wait``
seconds is given up.
"""

import argparse
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from lab.device import LabDevice
from lab.lab import Lab
from racing import planner_run, reference_run
from racing.live_environment import LiveEnvironment, LiveEnvironments
from racing.racefile import Race, load
from racing.records import RACE, Setting
from racing.reference_systems import REFERENCE_SYSTEMS
from reporting import parser, show

from backends.protocol.events import Progress
from planner.agents.call import Event
from planner.cli import interrupts
from planner.errors import InterruptedRunError, PlannerError, RunError
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.events import Started
from planner.train.orders import Options
from planner.train.start import TrainingRun
from planner.train.train import carry_out
from planner.train.training_data import ShippedImages

#: Silence after which the planner's server goes on without a worker; the default is 10 s.
HEARTBEAT_S = 5.0


class Seen(NamedTuple):
    """Steps done at the stop and at the end; seconds until all were done, None if never."""

    before: int
    after: int
    ended_s: float | None


class Stopper:
    """Stops a device some seconds after it is started.

    A context manager: the device goes on after it.
    """

    def __init__(self, lab: str, device: str, after_s: float) -> None:
        self._lab, self._device = Lab(lab), device
        self._timer = threading.Timer(after_s, self._stop)
        self.stopped = False

    def start(self) -> None:
        """Count from now."""
        self._timer.start()

    def __enter__(self) -> "Stopper":
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._lab.do(self._device, LabDevice.start, LabDevice.wait)

    def _stop(self) -> None:
        self._lab.do(self._device, LabDevice.stop)
        self.stopped = True


def main() -> None:
    options = _arguments()
    interrupts.once()
    try:
        rows = _seen(load(options.race), options)
    except (InterruptedRunError, KeyboardInterrupt):
        sys.exit(interrupts.status())
    except PlannerError as error:
        sys.exit(str(error))
    show(f"A worker stopped after {options.after:g} s, given up after {options.wait:g} s", rows, options.json)


def _seen(race: Race, options: argparse.Namespace) -> list[dict[str, Any]]:
    options.out.mkdir(parents=True, exist_ok=True)
    environments = LiveEnvironments(race, options.lab, options.out)
    rows = []
    try:
        for name, make in (("planner", _planner), ("TensorFlow", _tensorflow)):
            live = environments.at(race.environments[0].label)
            plan = planner_run.plan_for("parameter-server", live)
            stopped = [worker for worker in plan.names if worker != plan.server][-1]
            with Stopper(options.lab, stopped, options.after) as stopper:
                seen = make(race, live, plan, stopper, options)
            environments.renew()
            rows.append({
                "program": name, "steps wanted": options.steps, "done when it was stopped": seen.before,
                "done at the end": seen.after,
                "all done after s": "never" if seen.ended_s is None else f"{seen.ended_s:.1f}",
            })  # fmt: skip
    finally:
        environments.close()
    return rows


def _arguments() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("race", type=Path, help="its model, data and first environment are used")
    made.add_argument("--out", type=Path, default=Path("race"))
    made.add_argument("--lab", default="race")
    made.add_argument("--steps", type=int, default=400)
    made.add_argument("--after", type=float, default=3.0)
    made.add_argument("--wait", type=float, default=60.0)
    return made.parse_args()


def _planner(race: Race, live: LiveEnvironment, plan: Plan, stopper: Stopper, options: argparse.Namespace) -> Seen:
    done, before = 0, 0
    began_s = ended_s = 0.0

    def on_event(_: str, event: Event) -> None:
        nonlocal began_s, ended_s, done, before
        if isinstance(event, Started):
            began_s = time.monotonic()
            stopper.start()
        elif isinstance(event, Progress):
            done = event.done
            before = before if stopper.stopped else done
            ended_s = ended_s or (time.monotonic() - began_s if done == options.steps else 0.0)

    plan = plan.for_steps(options.steps)
    with tempfile.TemporaryDirectory() as folder:
        chosen = Options("", evaluate_every=options.steps, heartbeat_s=HEARTBEAT_S, keep_weights=False)
        run = TrainingRun(
            plan, live.fleet, ShippedImages(live.dataset), chosen, RunFolder(Path(folder)), on_event, live.agents
        )
        carry_out(run, lasting_s=options.wait)
    return Seen(before, done, ended_s or None)


def _tensorflow(race: Race, live: LiveEnvironment, plan: Plan, stopper: Stopper, options: argparse.Namespace) -> Seen:
    setting = Setting(race.name, RACE, race.environments[0].label, "tensorflow-ps", 0, race.rates[0])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = reference_run.started(
            setting, race, live, REFERENCE_SYSTEMS["tensorflow-ps"], plan, folder, stack, {"steps": options.steps}
        )
        for process in processes:
            process.until("ready")
        for process in processes:
            process.order({})
        began_s = time.monotonic()
        stopper.start()
        done = before = 0
        while time.monotonic() - began_s < options.wait:
            try:
                at_s, event = processes[0].next()
            except RunError:
                break  # it has given up, or hangs so that it says nothing at all
            if "account" in event:
                return Seen(before, event["account"]["steps"], at_s - began_s)
            done = event.get("done", done)
            before = before if stopper.stopped else done
        return Seen(before, done, None)


if __name__ == "__main__":
    main()
