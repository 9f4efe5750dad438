"""Workers that are ended, stopped, cut off or cannot work: real processes on local devices."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.protocol.events import MemberTelemetry, Ready, TimeSpent
from planner.agents.call import Event
from planner.errors import AgentError, DeviceLostError, PlannerError
from planner.run.order_at_work import Signals
from planner.run.supervisor import ATTEMPTS, MemberGivenUp, MemberLost, Supervisor
from profilers.records.readings import Window
from tests.planner.pairs import (
    STEPS,
    has_checkpoint,
    hold,
    left_files,
    new_pair,
    new_plan,
    one_line,
    pair_fleet,
    release,
    run_folders,
    saved_step,
    start,
    training,
)
from tests.running import HANG_S, agents, gone, run, signal_all, until


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return new_pair(tmp_path)


@pytest.mark.chaos
def test_a_worker_that_dies_or_hangs_is_dropped_and_comes_back_and_no_step_is_lost(pair: Path) -> None:
    hold(pair)
    command = start(pair, "--evaluate-every", "1000")
    command.says("tx2 joined")
    until(lambda: has_checkpoint(pair), lambda: command.errors)
    signal_all(agents(pair, "tx2"), signal.SIGKILL)
    command.says("tx2 was dropped")
    command.says("tx2 joined", times=2)
    signal_all(agents(pair, "tx2"), signal.SIGSTOP)
    command.says("tx2 is silent")
    release(pair)
    assert command.ended() == 0, command.errors
    (folder,) = run_folders(pair)
    result = json.loads((folder / "result.json").read_text())
    assert saved_step(folder) == STEPS
    assert sum(worker["steps"] for worker in result["workers"].values()) == STEPS
    assert all(worker["steps"] > 0 for worker in result["workers"].values())
    gone(pair)


@pytest.mark.chaos
def test_what_a_worker_uses_that_came_back_is_not_cleaned_away(pair: Path) -> None:
    hold(pair)
    command = start(pair)
    command.says("tx2 joined")
    signal_all(agents(pair, "tx2"), signal.SIGKILL)
    command.says("tx2 joined", times=2)
    cleaned = json.loads(run(pair, "clean", "--yes", "--json", "--device", "tx2").output)
    assert {entry["kind"] for entry in cleaned["caches"][0]["entries"] if entry["in_use"]} == {"data", "model"}
    assert [name.partition("-")[0] for name in cleaned["removed"]["tx2"]] == ["claims"]
    release(pair)
    assert command.ended() == 0, command.errors


@pytest.mark.chaos
def test_a_model_that_fails_is_not_tried_again_and_again(pair: Path) -> None:
    (pair / "tiny.py").write_text("def tiny():\n    return undefined_name\n")
    new_plan(pair, "desktop", "tx2")
    command = run(pair, *training())
    assert command.popen.returncode == 1
    assert "NameError" in one_line(command) and ".py:2" in one_line(command)
    assert not left_files(pair)
    gone(pair)


ORDER: Any = None  # not read


class FailingWorker:
    """A pool, an agent and an order at once, of a worker that fails after each start."""

    def __init__(self, error: PlannerError, *events: Event) -> None:
        self.agents = {"tx2": self}
        self._error = error
        self._events = events

    def reopen(self, name: str) -> "FailingWorker":
        return self

    name = "run worker"

    def start(self, order: object) -> "FailingWorker":
        return self

    def event(self, timeout_s: float) -> Event:
        return Ready()

    def go(self) -> None:
        pass

    def close(self) -> None:
        pass

    def result(self, on_event: Callable[[Event], None]) -> Event:
        for event in self._events:
            on_event(event)
        raise self._error


def test_a_worker_that_the_server_would_send_away_again_fails_the_run() -> None:
    signals = Signals()
    pool: Any = FailingWorker(DeviceLostError("tx2: parameter server closed the connection"))
    supervisor = Supervisor("tx2", pool, False, lambda name: None, signals)
    supervisor.dropped("its model is not the run's", unfit=True)
    assert supervisor.fails_run and supervisor.failure == "tx2: its model is not the run's"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("tx2: parameter server closed the connection", "tx2: its model is not the run's"),
        ("tx2: the agent ended (it last said: Killed)", "tx2: the agent ended (it last said: Killed)"),
    ],
)
def test_a_worker_that_is_given_up_says_so_with_the_servers_reason_if_that_sent_it_away(
    said: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.run.supervisor.LONGEST_PAUSE_S", 0.01)
    signals = Signals()
    pool: Any = FailingWorker(DeviceLostError(said))
    supervisor = Supervisor("tx2", pool, False, lambda name: None, signals)
    supervisor.dropped("its model is not the run's")
    signals.go.set()
    supervisor.start(ORDER)
    until(lambda: supervisor.failure, lambda: "it was not given up")
    events = [signals.events.get(timeout=HANG_S) for _ in range(ATTEMPTS + 1)]
    assert supervisor.failure == told
    assert events == [("tx2", MemberLost(said))] * ATTEMPTS + [("tx2", MemberGivenUp(told))]


@pytest.mark.parametrize(("restarts", "steps", "attempts"), [(True, 0, 1), (False, 3, 0)])
def test_a_member_that_has_never_made_a_step_or_that_all_need_is_not_started_again(
    restarts: bool, steps: int, attempts: int
) -> None:
    signals = Signals()
    report = MemberTelemetry(Window(1.0, {}, ()), TimeSpent(steps))
    pool: Any = FailingWorker(AgentError("tx2: no memory"), report)
    supervisor = Supervisor("tx2", pool, False, lambda name: None, signals, restarts)
    signals.go.set()
    supervisor.start(ORDER)
    until(lambda: supervisor.failure, lambda: "it was not given up")
    assert supervisor.failure == "tx2: no memory"
    events = [signals.events.get(timeout=HANG_S) for _ in range(2 + attempts)]
    assert sum(isinstance(event, MemberLost) for _, event in events) == attempts


@pytest.fixture
def network(tmp_path: Path) -> Iterator[str]:
    """A network namespace at 10.213.77.2, with its end of the link called `inside`."""
    if shutil.which("ip") is None:
        pytest.skip("needs ip (iproute2)")
    name = f"pl{os.getpid() % 100000}"
    commands = (
        f"netns add {name}",
        f"link add {name} type veth peer name inside netns {name}",
        f"addr add 10.213.77.1/24 dev {name}",
        f"link set {name} up",
        f"-n {name} addr add 10.213.77.2/24 dev inside",
        f"-n {name} link set inside up",
        f"-n {name} link set lo up",
    )
    try:
        for command in commands:
            if subprocess.run(["ip", *command.split()], capture_output=True, check=False).returncode != 0:
                pytest.skip(f"`ip {command}` is not allowed here")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def link(network: str, state: str) -> None:
    """Set the inner end: without the outer one, packets would leave by another network."""
    subprocess.run(["ip", "-n", network, "link", "set", "inside", state], check=True)


@pytest.mark.chaos
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_worker_whose_link_is_cut_is_dropped_and_comes_back_with_the_link(pair: Path, network: str) -> None:
    inside = {"prefix": f"ip netns exec {network}", "data_address": "10.213.77.2"}
    pair_fleet(pair, desktop={"data_address": "10.213.77.1"}, tx2=inside)
    hold(pair)
    command = start(pair, "--evaluate-every", "1000")
    command.says("tx2 joined")
    link(network, "down")
    command.says("tx2 was dropped")  # for missing heartbeats, or for bytes that TCP could not deliver
    command.says("tx2: the worker is lost")
    link(network, "up")
    command.says("tx2 joined", times=2)
    release(pair)
    assert command.ended() == 0, command.errors
    (folder,) = run_folders(pair)
    assert saved_step(folder) == STEPS
    gone(pair)
