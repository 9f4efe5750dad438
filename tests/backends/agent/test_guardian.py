"""Nothing that an agent has started outlives it, however it ends; nobody else is ever killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backends.agent import guardian
from backends.protocol.orders import RunScript
from planner.agents import bundle
from planner.agents.client import AgentClient
from planner.fleet.device import Device, Interpreter
from planner.remote.local import LocalRemote
from tests.running import HANG_S, lives, until

#: A script whose children are in its group, in a session of their own, and orphans in another.
FAMILY = """
import os, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
plain = subprocess.Popen(sleep)
own = subprocess.Popen(sleep, start_new_session=True)
orphan = subprocess.run(
    [sys.executable, "-c", "import subprocess, sys; "
     "print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.DEVNULL).pid)", *sleep],
    stdout=subprocess.PIPE, check=True)
print(plain.pid, own.pid, int(orphan.stdout), flush=True)
"""


#: What Python runs as it starts: the program of an agent, which the bootstrap has started, stops.
STOPS_AN_AGENT = """
import os, signal
with open("/proc/self/cmdline") as stream:
    if ".pyz" in stream.read():
        with open({!r}, "w") as file:
            file.write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
"""


class Family:
    """An agent on this machine that runs a script, and the processes of both."""

    def __init__(self, folder: Path, ends: bool) -> None:
        environment = {"XDG_CACHE_HOME": str(folder / "cache")}
        device = Device(name="tx2", interpreter=Interpreter(sys.executable, environment=environment))
        self.remote = LocalRemote("tx2")
        self.agent = AgentClient.launch(device, self.remote)
        self.guardian = int(stat(self.agent.pid)[1])
        code = FAMILY if ends else FAMILY + "time.sleep(1000)"
        self.run = self.agent.start(RunScript(("python", "-c", code), str(folder), {}, None))
        printed: Any = self.run.event(HANG_S)
        self.pids = [self.agent.pid, self.guardian, *map(int, printed.text.split())]

    def gone(self) -> None:
        until(lambda: not any(map(lives, self.pids)), lambda: f"of {self.pids} is left {self.left()}")

    def left(self) -> list[int]:
        return list(filter(lives, self.pids))


def stat(pid: int) -> list[str]:
    """A process's state, its parent, and more."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@pytest.fixture
def bystander() -> Any:
    """A process that is nobody's business."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        assert process.poll() is None
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
@pytest.mark.parametrize("script_ends", [True, False])
@pytest.mark.parametrize(
    "how", ["closed", "killed", "terminated", "stopped", "killed while stopped", "guardian terminated"]
)
def test_nothing_is_left_of_it(tmp_path: Path, bystander: Any, how: str, script_ends: bool) -> None:
    family = Family(tmp_path, script_ends)
    if "stopped" in how:
        os.kill(family.agent.pid, signal.SIGSTOP)
    if "killed" in how:
        os.kill(family.agent.pid, signal.SIGKILL)
    if "terminated" in how:
        os.kill(family.guardian if "guardian" in how else family.agent.pid, signal.SIGTERM)
    if how in ("closed", "stopped"):
        family.agent.close()
    family.gone()
    family.remote.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
@pytest.mark.parametrize("script_ends", [True, False])
def test_an_agent_without_its_guardian_ends_with_its_input_and_leaves_nothing(
    tmp_path: Path, bystander: Any, script_ends: bool
) -> None:
    family = Family(tmp_path, script_ends)
    os.kill(family.guardian, signal.SIGKILL)
    until(lambda: not lives(family.guardian), lambda: "the guardian lives")
    assert lives(family.agent.pid)
    family.agent.close()
    family.gone()


def test_where_children_cannot_be_listed_nobody_is_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian, "ask_kernel", lambda option, value: True)
    monkeypatch.setattr(os.path, "exists", lambda path: not path.startswith("/proc"))
    assert not guardian.adopt()


def test_an_agent_that_is_stopped_while_it_starts_is_ended(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(STOPS_AN_AGENT.format(str(tmp_path / "pid")))
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    device = Device(name="tx2", interpreter=Interpreter(sys.executable, environment=environment))
    remote = LocalRemote("tx2")
    process = remote.spawn(bundle.command(device))
    bundle.hand_over(process, device)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), lambda: "it has not begun")
    pid = int((tmp_path / "pid").read_text())
    until(lambda: stat(pid)[0] == "T", lambda: "it runs")
    process.close()
    until(lambda: not lives(pid), lambda: "it is left in T")
