"""The program itself as a process: a fleet of local devices, a tiny model, and devices' agents."""

import io
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from backends import models
from backends.training.run_settings import RunSettings
from planner.cli.main import main
from planner.json_records import save
from planner.plan.file import Plan, PlannedFactors, PlannedWatts, PlannedWorker
from planner.predict.run import Prediction
from planner.provenance import Provenance
from profilers.records.json_values import SCHEMA

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which what has not happened never will: no busy machine takes so long.
HANG_S = 300.0
FASHION = ROOT / "examples" / "fashion-mnist"
#: Loss of a model that has learnt nothing about images of ten classes. Without synchronisation the
#: order of steps differs from run to run, so that two later losses of one run may come either way.
GUESSING_LOSS = math.log(10)
#: Tells whose agent a process is: local devices differ in their environment alone.
MARK = "PLANNER_TEST_DEVICE"

#: A softmax regression whose every step takes at least ``STEP_S``, whatever the machine.
TINY = """
import time
from torch import nn

class Slow(nn.Sequential):
    def forward(self, x):
        time.sleep({step_s})
        return super().forward(x)

def tiny():
    return Slow(nn.Flatten(), nn.Linear(28 * 28, 10)), (28, 28, 1)
"""


def tiny_model(folder: Path, step_s: float = 0.02) -> str:
    """A user's model file in that folder; returns the name of the model."""
    path = folder / "tiny.py"
    path.write_text(TINY.format(step_s=step_s))
    return f"{path}:tiny"


def fleet_file(folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> Path:
    """A fleet of local devices, each with a cache of its own inside ``folder``."""
    lines = []
    for name, entry in entries.items():
        environment = {MARK: f"{folder}/{name}", "XDG_CACHE_HOME": f"{folder}/cache-{name}"}
        environment.update(entry.get("environment", {}))
        values = {"address": "local", **entry, "environment": environment}
        lines += [f"[devices.{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    path = folder / "fleet.toml"
    path.write_text("\n".join(lines))
    return path


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'{key} = "{text}"' for key, text in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def plan_file(
    path: Path,
    model: str,
    names: Iterable[str],
    steps: int,
    fingerprint: str | None = None,
    frameworks: Mapping[str, str] | None = None,
) -> Path:
    """A plan made by hand for a user's model: the first device is the server too.

    ``frameworks``: those that are not torch, by device.
    """
    if fingerprint is None:
        fingerprint = models.fingerprint(model)
    workers = tuple(
        PlannedWorker(
            name=name,
            steps=steps / 2,
            cycle_s=0.02,
            build_s=0.1,
            cores=1.0,
            watts=PlannedWatts(3.0, 12.0, 10.0, Provenance("nameplate", ("board",))),
            factors=PlannedFactors(1.0, 0.0, None, None),
            framework=(frameworks or {}).get(name, "torch"),
        )  # fmt: skip
        for name in names
    )
    plan = Plan(
        SCHEMA, "fleet.toml", RunSettings(model, steps=steps, batch=8), fingerprint, "time", workers[0].name, workers,
        Prediction(steps * 0.02, 20.0), (), 1e6, {"computing": 1.0},
    )  # fmt: skip
    save(plan, path)
    return path


class Command:
    """``planner`` as a process of its own, leading a session as under a terminal."""

    program = "from planner.cli.main import main; main()"

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self._errors = folder / f"stderr-{time.monotonic_ns()}"
        with self._errors.open("wb") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", self.program, *arguments],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def errors(self) -> str:
        """What it has written to standard error so far."""
        return self._errors.read_text()

    @property
    def last_line(self) -> str:
        """The last line on standard error; no command shows a traceback."""
        assert "Traceback" not in self.errors, self.errors
        return self.errors.strip().splitlines()[-1]

    def ended(self) -> int:
        """Wait for its end; its exit status."""
        try:
            self.output = self.popen.communicate(timeout=HANG_S)[0].decode()
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise AssertionError(f"still running after {HANG_S:g} s:\n{self.errors}") from None
        return self.popen.returncode

    def says(self, text: str, times: int = 1) -> None:
        """Wait until it has written ``text`` to standard error that often."""

        def said() -> bool:
            assert self.popen.poll() is None or self.errors.count(text) >= times, self.errors
            return self.errors.count(text) >= times

        until(said, lambda: f"{text!r} was not said:\n{self.errors}")

    @classmethod
    def run(cls, folder: Path, *arguments: str, **environment: str) -> "Command":
        """Run it to its end."""
        command = cls(folder, *arguments, **environment)
        command.ended()
        return command


run = Command.run


def agents(folder: Path, name: str = "") -> list[int]:
    """Process ids of a device's agents, the oldest first.

    Without a name, those of all devices of this folder's fleet.
    """
    wanted = f"{MARK}={folder}/{name}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            mine = entry.name.isdigit() and any(
                variable == wanted or (not name and variable.startswith(wanted))
                for variable in (entry / "environ").read_bytes().split(b"\0")
            )
            if mine and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append((float((entry / "stat").read_text().rpartition(")")[2].split()[19]), int(entry.name)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return [pid for _, pid in sorted(found)]


def lives(pid: int) -> bool:
    """Whether a process lives; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(folder: Path) -> None:
    """Wait until no agent of this folder's fleet is left."""
    until(lambda: not agents(folder), lambda: f"left behind: {agents(folder)}")


def until(condition: Callable[[], object], otherwise: Callable[[], str]) -> None:
    """Wait for a condition; fail with what ``otherwise`` says when it does not come."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.05)


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes that this test has started."""
    for pid in pids:
        os.kill(pid, number)


class Ran(NamedTuple):
    """What a command gave that was called in this process: exit code, standard output and error."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line on standard error; no command shows a traceback."""
        assert "Traceback" not in self.err, self.err
        return self.err.strip().splitlines()[-1]

    def problem(self, code: int = 1) -> str:
        """The one line that a failure leaves, nothing else anywhere."""
        assert (self.code, self.out) == (code, "")
        (line,) = self.err.splitlines()
        assert line.startswith("planner: ")
        return line.removeprefix("planner: ")


def call(folder: Path, *arguments: str, program: Callable[[], None] = main) -> Ran:
    """Call ``planner`` in this process, which saves the start of another one."""
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(output), redirect_stderr(errors):
        patched.chdir(folder)
        patched.setattr(sys, "argv", ["planner", *arguments])
        with pytest.raises(SystemExit) as ended:
            program()
    assert isinstance(ended.value.code, int)
    return Ran(ended.value.code, output.getvalue(), errors.getvalue())
