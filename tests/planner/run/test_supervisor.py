"""Workers that are ended, stopped, cut off or cannot work: real processes on local devices."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.protocol.events import Ready
from backends.training.step_watch import PREPARING_S
from planner.agents.call import Event
from planner.errors import AgentError, DeviceLostError, JobError
from planner.run.restarts import ATTEMPTS, Restarts
from planner.run.supervisor import READY_S, Signals, Supervisor, first_events
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
    assert cleaned["removed"]["tx2"] == []  # the worker that came back removed the dead one's claims
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


class FailingWorker:
    """An agent and a call at once, of a worker that tells these events after a start and fails."""

    name = "tx2"

    def __init__(self, error: Exception, *events: Event) -> None:
        self._error = error
        self._events = events

    def start(self, order: object) -> "FailingWorker":
        return self

    def first(self, kind: type, timeout_s: float) -> Event:
        return Ready()

    def go(self) -> None:
        pass

    def close(self) -> None:
        pass

    def result(self, silence_s: float | None, on_event: Callable[[Event], None]) -> Event:
        for event in self._events:
            on_event(event)
        raise self._error


def events_of(worker: Any, restarts: bool = True, signals: Signals | None = None) -> list[str]:
    """The kinds of events of a worker from its go to its end; its error is the last of them."""
    told = signals or Signals()
    told.go.set()
    policy = Restarts(lambda: worker) if restarts else None
    supervisor = Supervisor("tx2", worker, None, told, (Ready,), policy)
    kinds = []
    while (event := told.events.get(timeout=HANG_S)[1]) is not None:
        kinds.append(type(event).__name__)
    return [*kinds, str(supervisor.error)]


class LeavingWorker(FailingWorker):
    """Its connection has ended; it tells its error once it is asked to, or ends with its agent."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(error or DeviceLostError("tx2: the agent ended"))
        self.told = threading.Event()
        self.speaks = error is not None

    def close(self) -> None:
        self.told.set()

    def result(self, silence_s: float | None, on_event: Callable[[Event], None]) -> Event:
        closed = self.told.wait(0.1 if self.speaks else HANG_S)
        raise DeviceLostError("tx2: the agent ended") if closed else self._error


def test_an_agent_that_prepares_ends_itself_before_it_counts_as_hung() -> None:
    """Its import, the job's function and its data may each take the limit of such a part."""
    assert READY_S > 3 * PREPARING_S


@pytest.mark.parametrize("error", [JobError("tx2: KeyError: 'x'"), None])
def test_a_worker_that_is_dropped_may_first_say_what_it_failed_with(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr("planner.run.supervisor.LAST_WORDS_S", 0.1 if error is None else HANG_S)
    signals = Signals()
    signals.go.set()
    supervisor = Supervisor("tx2", LeavingWorker(error), None, signals, (Ready,))  # type: ignore[arg-type]
    supervisor.end_agent()
    until(lambda: supervisor.ended, lambda: "it did not end")
    assert str(supervisor.error) == ("tx2: the agent ended" if error is None else "tx2: KeyError: 'x'")


def test_a_worker_that_fails_is_started_again_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.run.restarts.LONGEST_PAUSE_S", 0.01)
    lost = FailingWorker(DeviceLostError("tx2: the agent ended"))
    kinds = ["MemberLost", *["MemberRestarted", "MemberLost"] * (ATTEMPTS - 1)]
    assert events_of(lost) == [*kinds, "tx2: the agent ended"]


def test_a_device_that_dies_as_the_order_is_given_has_failed_and_was_not_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planner.run.restarts.LONGEST_PAUSE_S", 0.01)

    class Dying(FailingWorker):
        starts = 0

        def start(self, order: object) -> "FailingWorker":
            self.starts += 1
            if self.starts > 1:
                raise self._error
            return self

    dying = Dying(DeviceLostError("tx2: the agent ended"))
    assert events_of(dying)[-1] == "tx2: the agent ended"
    assert dying.starts == ATTEMPTS


def test_an_error_of_the_job_is_known_also_where_the_run_ended_first() -> None:
    signals = Signals()
    signals.over.set()
    assert events_of(FailingWorker(JobError("tx2: KeyError: 'x'")), signals=signals) == ["tx2: KeyError: 'x'"]


def test_an_error_that_nobody_foresaw_and_one_of_a_member_that_all_need_are_the_last() -> None:
    assert events_of(FailingWorker(KeyError("x"))) == ["tx2: KeyError: 'x'"]
    assert events_of(FailingWorker(DeviceLostError("tx2: gone")), restarts=False) == ["tx2: gone"]


def test_nobody_is_started_again_when_the_run_is_over() -> None:
    signals = Signals()
    signals.over.set()
    assert events_of(FailingWorker(DeviceLostError("tx2: gone")), signals=signals) == ["None"]


def test_an_order_that_fails_before_it_is_ready_is_not_waited_for() -> None:
    class Unready(FailingWorker):
        def first(self, kind: type, timeout_s: float) -> Event:
            raise self._error

    unready: Any = Unready(AgentError("tx2: no memory"))
    supervisor = Supervisor("tx2", unready, None, Signals(), (Ready,))
    with pytest.raises(AgentError, match="tx2: no memory"):
        first_events({"tx2": supervisor}, Ready)


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
