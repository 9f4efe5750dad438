"""A fault is injected when its moment has come, and undone when it has lasted."""

import json
import math
import os
import signal
import time
from pathlib import Path

from tests.backends.fakes import BATCH
from tests.chaos import journal, scenario
from tests.chaos.devices import Devices, fill, signal_one
from tests.chaos.scenario import OPERATOR, Scenario
from tests.running import Command, agents

#: By which a device's clock jumps: a day ahead, or back.
JUMP_S = 86400.0


class Injector:
    """Watches one run. at_s: when the fault was injected, by time.time; None before."""

    def __init__(self, case: Scenario, folder: Path, devices: Devices, command: Command) -> None:
        self._case, self._fault = case, case.fault
        self._folder, self._devices, self._command = folder, devices, command
        self.at_s: float | None = None
        self._ends_s = math.inf
        self._stopped: list[int] = []

    def look(self) -> None:
        """Inject or undo what is due."""
        now_s = time.time()
        if self.at_s is None and self._is_due():
            self.at_s = now_s
            self._inject()
            self._ends_s = time.time() + self._fault.lasts_s
        elif now_s > self._ends_s:
            self._ends_s = math.inf
            self._undo()

    def _is_due(self) -> bool:
        if self._fault.kind in scenario.OF_THE_JOB:
            return (self._folder / "injected").exists()
        if self._fault.after > 0:
            return journal.count(self._folder) >= self._fault.after * self._case.steps
        names = self._case.devices if self._fault.device == OPERATOR else (self._fault.device,)
        return any(len(agents(self._folder, name)) > self._hits_host for name in names)  # the host's comes second

    @property
    def _hits_host(self) -> bool:
        """Whether it is for a process of its own, that hosts the run beside a member."""
        return self._fault.of_host and not self._case.needs_all

    def _inject(self) -> None:
        kind, device = self._fault.kind, self._fault.device
        if kind in scenario.OF_A_PROCESS:
            self._signal_member(device)
        elif kind == scenario.SWITCH_OFF:
            self._devices.switch_off(device)
        elif kind == scenario.CUT:
            self._devices.cut(device)
        elif kind == scenario.SSHD:
            self._devices.restart_sshd(device)
        elif kind in (scenario.FULL_DISK, scenario.OPERATOR_DISK):
            fill(disk(self._case, self._folder))
        elif kind == scenario.SLOW_DISK:
            (self._folder / f"{device}.slow").touch()
        elif kind == scenario.CLOCK:
            (self._folder / f"{device}.clock").write_text(str(JUMP_S * (1 if self._case.seed % 2 else -1)))
        elif kind == scenario.CTRL_C:
            self._command.popen.send_signal(signal.SIGINT)
        elif kind == scenario.OPERATOR_KILLED:
            self._command.popen.kill()

    def _signal_member(self, device: str) -> None:
        """To the newest process of those that host the run, or else to the member's."""
        found = agents(self._folder, device)
        for process in found[1:2] if self._hits_host else found[:1]:
            if self._fault.kind == scenario.KILL:
                signal_one(process, signal.SIGKILL)
            else:
                signal_one(process, signal.SIGSTOP)
                self._stopped.append(process)

    def _undo(self) -> None:
        if self._fault.kind == scenario.FULL_DISK:
            (disk(self._case, self._folder) / "filler").unlink()
        elif self._fault.kind == scenario.STOP:
            for process in self._stopped:
                if f"{self._folder}" in _environment(process):  # its number may be another's by now
                    signal_one(process, signal.SIGCONT)
        else:
            self._devices.heal(self._fault.device)


def disk(case: Scenario, folder: Path) -> Path:
    """That which a fault fills: a device's cache, or the operator's folder of runs."""
    return folder / ("runs" if case.fault.device == OPERATOR else f"cache-{case.fault.device}")


def prepare_job(case: Scenario, folder: Path) -> None:
    """Let a fault of the job wait where the devices find it."""
    fault = case.fault
    if fault.kind not in scenario.OF_THE_JOB:
        return
    part = {
        scenario.HANG_EVALUATION: "evaluation", scenario.ERROR_EVALUATION: "evaluation", scenario.ERROR_DATA: "data",
    }.get(fault.kind, "step")  # fmt: skip
    at = max(1, int(fault.after * case.steps / len(case.devices))) * (BATCH if part == "data" else 1)
    device = None if part == "evaluation" else fault.device
    waiting = {"kind": fault.kind, "part": part, "at": at, "device": device}
    (folder / "job-fault.json").write_text(json.dumps(waiting))


def _environment(process: int) -> str:
    try:
        return os.fsdecode(Path(f"/proc/{process}/environ").read_bytes())
    except OSError:
        return ""
