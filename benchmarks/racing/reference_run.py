"""A reference system runs on the devices of a lab, each process through the device's sshd.

Its processes speak as ``ddp_member`` does. The devices of a lab share this machine's files.
"""

import json
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.errors import PlannerError, RunError
from planner.fleet.device import Device
from planner.json_records import decode
from planner.plan.file import Plan
from planner.profile.power_history import average
from planner.provenance import Provenance
from planner.remote import connect
from planner.train import worker_result
from profilers.records.readings import Window

from . import curve, final_accuracy, reference_systems
from .live_environment import LiveEnvironment
from .network_cards import sent
from .planner_run import plan_for
from .racefile import Race
from .records import Outcome, Setting
from .reference_systems import REFERENCE_SYSTEMS, ReferenceSystem

HERE = Path(__file__).parent
#: Seconds that a process may be silent: to import a framework on the slowest device, or to end.
SILENCE_S = 300.0

NOTHING: Mapping[str, Any] = MappingProxyType({})
Said = tuple[float, dict[str, Any]]


class Process:
    """A reference system's program on one device; its output lines have the time of arrival.

    Close it.
    """

    def __init__(self, device: Device, program: str, python: str | None) -> None:
        self.device = device.name
        self._program = program
        self._remote = connect(device)
        variables = {
            **device.interpreter.environment,
            "PYTHONPATH": str(HERE.parents[1]),
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
        }
        command = ["env", *(f"{name}={value}" for name, value in variables.items())]
        self._process = self._remote.spawn([*command, python or device.interpreter.python, str(HERE / program)])
        self._said: queue.Queue[Said] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def order(self, orders: Mapping[str, Any]) -> None:
        """Write one line. Raises DeviceLostError."""
        self._process.write(json.dumps(orders).encode() + b"\n")

    def next(self, wanted: str = "account") -> Said:
        """What it says next. Raises RunError where it has ended, or says nothing for long."""
        try:
            said = self._said.get(timeout=SILENCE_S)
        except queue.Empty:
            raise RunError(f"{self.device}: no {wanted} from {self._program} within {SILENCE_S:g} s") from None
        if not said[1]:
            words = self._process.errors().decode(errors="replace").strip().splitlines()
            last = words[-1] if words else "nothing"
            raise RunError(f"{self.device}: {self._program} ended without {wanted}; it last said: {last}")
        return said

    def until(self, key: str) -> tuple[float, Any]:
        """The next thing of that key, what comes before it unheard. Raises RunError."""
        while key not in (said := self.next(key))[1]:
            pass
        return said[0], said[1][key]

    def close(self) -> None:
        """End it, by the end of its input."""
        self._process.close()
        self._remote.close()

    def _listen(self) -> None:
        text = b""
        try:
            while chunk := self._process.read(1 << 16):
                *lines, text = (text + chunk).split(b"\n")
                for line in lines:
                    self._said.put((time.monotonic(), json.loads(line)))
        except (PlannerError, ValueError):
            pass  # what it has said on standard error tells why
        self._said.put((time.monotonic(), {}))


def run(setting: Setting, race: Race, live: LiveEnvironment, on_start: Callable[[], None]) -> Outcome:
    """Train with a system for the race's seconds. Raises PlannerError."""
    system = REFERENCE_SYSTEMS[setting.strategy]
    plan = plan_for("parameter-server", live)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = started(setting, race, live, system, plan, folder, stack)
        for process in processes:
            process.until("ready")
        began_s, before = time.monotonic(), live.cards.read()
        on_start()
        for process in processes:
            process.order({})
        events, account = _followed(processes[0], began_s)
        card_bytes = sent(before, live.cards.read())
        for process in processes:
            process.order({})
        points = curve.points(events, {processes[0].device: 1.0 if system.waits else 1.0 / len(plan.workers)})
        weights = np.load(account["weights"])
        watts = _watts(plan, processes)
    accuracy = final_accuracy.accuracy(race.model_name, live.dataset, weights)
    return Outcome(
        steps=account["steps"],
        time_s=account["time_s"],
        target_s=curve.reached_s(points, race.target),
        accuracies={"all": accuracy},
        curve=tuple(points),
        card_bytes=card_bytes,
        energy_j=None if watts is None else watts[0] * account["time_s"],
        energy_source="" if watts is None else watts[1].text,
    )


def started(
    setting: Setting,
    race: Race,
    live: LiveEnvironment,
    system: ReferenceSystem,
    plan: Plan,
    folder: Path,
    stack: ExitStack,
    also: Mapping[str, Any] = NOTHING,
) -> list[Process]:
    """Start a reference system's processes with their orders; the first one reports."""
    told = reference_systems.common(setting, race, live, system.waits, len(plan.workers), folder)
    shards = reference_systems.shards(setting, live, plan, folder)
    processes = []
    for part in system.parts(plan, live):
        process = Process(live.fleet.device(part.device), system.program, system.python)
        stack.callback(process.close)
        process.order({**told, **shards[part.device], **part.orders, **also})
        processes.append(process)
    return processes


def _followed(first: Process, began_s: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What the first process says until its account, as events of a run."""
    events: list[dict[str, Any]] = [{"t_s": 0.0, "type": "started"}]
    while True:
        at_s, event = first.next()
        if "account" in event:
            return events, event["account"]
        if "evaluated" in event:
            events.append({"t_s": at_s - began_s, "type": "evaluated", **event["evaluated"]})


def _watts(plan: Plan, processes: Sequence[Process]) -> tuple[float, Provenance] | None:
    """Of all devices together, from their sensors; None where one has none."""
    planned = {worker.name: worker for worker in plan.workers}
    sampled = {process.device: process for process in processes}  # the last of each device is its worker
    found = []
    for name, process in sampled.items():
        window = decode(Window, process.until("window")[1])
        found.append(worker_result.watts(planned[name], average([window]), 1.0))
    known = [each.watts for each in found if each.watts is not None]
    return (sum(known), Provenance.joined(each.provenance for each in found)) if len(known) == len(found) else None
