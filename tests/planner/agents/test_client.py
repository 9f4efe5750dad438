"""An agent and its controller, on this machine and over SSH: what is asked, answered, and lost."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import MeasureIdle, ReadClock, TimeSteps
from planner.agents.answers import Failure
from planner.agents.client import CHUNK_BYTES, UNREACHED, AgentClient
from planner.errors import AgentError, DeviceLostError
from planner.fleet.device import Device, Interpreter
from planner.jobs.shipping import ship_model
from planner.remote.base import Remote
from planner.remote.local import LocalProcess, LocalRemote
from planner.remote.ssh import SshRemote
from tests.planner.conftest import MakeTarget
from tests.running import HANG_S, lives, until
from tests.sshserver import ssh_server


@pytest.fixture(params=["local", "ssh"])
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    if request.param == "local":
        made: Remote = LocalRemote("tx2")
        yield made
        made.close()
        return
    target_of: MakeTarget = request.getfixturevalue("target_of")
    with ssh_server(request.getfixturevalue("client_key")) as server:
        made = SshRemote("tx2", target_of(server))
        yield made
        made.close()


@pytest.fixture
def here() -> Iterator[LocalRemote]:
    """This machine, for what does not depend on the way to a device."""
    made = LocalRemote("tx2")
    yield made
    with suppress(DeviceLostError):
        made.close()


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(
        name="tx2", interpreter=Interpreter(sys.executable, environment={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    )


def gone(pid: int) -> None:
    until(lambda: not lives(pid), lambda: f"{pid} is left behind")


def fetched(agent: AgentClient, path: str) -> bytes:
    content = bytearray()
    agent.fetch(path, content.extend)
    return bytes(content)


def test_results_events_and_files_come_back(device: Device, remote: Remote) -> None:
    agent = AgentClient.launch(device, remote)
    content = os.urandom(300_000) + b"\n"
    path = agent.store("some.bin", content)
    slow = agent.start(MeasureIdle(0.3))
    assert abs(agent.call(ReadClock()) - time.time()) < 60
    assert fetched(agent, path) == content
    assert slow.result(HANG_S).duration_s > 0


def test_a_failure_over_there_is_one_line_and_its_traceback_is_in_the_log(
    device: Device, remote: Remote, tmp_path: Path
) -> None:
    log = tmp_path / "remote.log"
    agent = AgentClient.launch(device, remote, log)
    with pytest.raises(AgentError) as raised:
        fetched(agent, "/no/such/file")
    assert "tx2" in str(raised.value) and "/no/such/file" in str(raised.value) and str(log) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "Traceback" in log.read_text() and "Traceback" in raised.value.remote_traceback
    assert agent.call(ReadClock()) > 0


def test_a_mistake_in_a_file_beside_a_users_model_is_named_by_the_users_own_path(
    here: LocalRemote, device: Device, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text("from .layers_of_mine import block\ndef net():\n    return block()\n")
    (tmp_path / "layers_of_mine.py").write_text("from . import sizes\n\ndef block():\n    return sizes.missing\n")
    (tmp_path / "sizes.py").write_text("")
    agent = AgentClient.launch(device, here)
    model = ship_model(agent, f"{tmp_path}/net.py:net")
    with pytest.raises(AgentError) as raised:
        agent.call(TimeSteps(ReplicaSpec("torch", model), 2, "adaptive"))
    assert str(raised.value).startswith("tx2: time steps: AttributeError")
    assert str(raised.value).endswith(f"at {tmp_path}/layers_of_mine.py:4")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_agent_is_noticed_by_whoever_waits_and_whoever_comes(
    device: Device, remote: Remote, ending: signal.Signals
) -> None:
    agent = AgentClient.launch(device, remote)
    waiting = agent.start(MeasureIdle(60.0))
    os.kill(agent.pid, ending)
    with pytest.raises(DeviceLostError, match="tx2"):
        waiting.result(HANG_S)
    with pytest.raises(DeviceLostError, match="tx2"):
        agent.call(ReadClock(), timeout_s=HANG_S)
    with pytest.raises(DeviceLostError, match="tx2"):
        agent.store("some.bin", bytes(1_000_000))


def test_no_answer_in_time_is_an_error(device: Device, remote: Remote) -> None:
    with pytest.raises(DeviceLostError, match=r"`measure idle` within 0\.1 s"):
        AgentClient.launch(device, remote).call(MeasureIdle(60.0), timeout_s=0.1)


@pytest.mark.parametrize("how", ["agent", "remote"])
def test_closing_ends_it_even_while_it_works(device: Device, remote: Remote, how: str) -> None:
    agent = AgentClient.launch(device, remote)
    waiting = agent.start(MeasureIdle(60.0))
    close: Callable[[], None] = agent.close if how == "agent" else remote.close
    close()
    close()
    gone(agent.pid)
    with suppress(DeviceLostError):
        waiting.result(HANG_S)  # its last word or its loss, but soon


def test_an_agent_that_was_closed_here_is_not_said_to_have_been_killed(device: Device, remote: Remote) -> None:
    closed, killed = AgentClient.launch(device, remote), AgentClient.launch(device, remote)
    closed.close()
    os.kill(killed.pid, signal.SIGKILL)
    told = {}
    for agent in (closed, killed):
        gone(agent.pid)
        until(lambda agent=agent: agent._lost is not None, lambda agent=agent: agent.name)
        with pytest.raises(DeviceLostError) as raised:
            agent.start(ReadClock())
        told[agent] = str(raised.value)
    assert "tx2: the agent ended" in told[closed] and "killed" not in told[closed]
    assert "tx2: the agent ended: perhaps its process was killed" in told[killed]


def test_a_cut_connection_is_noticed_and_the_agent_ends(
    device: Device, client_key: paramiko.PKey, target_of: MakeTarget
) -> None:
    with ssh_server(client_key) as server:
        agent = AgentClient.launch(device, SshRemote("tx2", target_of(server)))
        waiting = agent.start(MeasureIdle(60.0))
        server.hang_up()
        with pytest.raises(DeviceLostError, match="tx2: the connection was lost"):
            waiting.result(HANG_S)
        gone(agent.pid)


def test_a_stopped_agent_is_ended_on_this_machine(here: LocalRemote, device: Device) -> None:
    agent = AgentClient.launch(device, here)
    os.kill(agent.pid, signal.SIGSTOP)
    agent.close()
    gone(agent.pid)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.agents.client.PING_S", 0.1)
    monkeypatch.setattr("planner.agents.client.SILENCE_S", 1.0)


@pytest.mark.usefixtures("impatient")
def test_an_agent_that_stops_while_a_file_is_sent_is_lost(device: Device, remote: Remote) -> None:
    agent = AgentClient.launch(device, remote)
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeviceLostError, match="tx2: nothing was heard from it for 1 s"):
            agent.store("some.bin", bytes(20_000_000))
    finally:
        with suppress(ProcessLookupError):
            os.kill(agent.pid, signal.SIGKILL)


@pytest.mark.usefixtures("impatient")
def test_a_file_that_goes_on_moving_may_take_its_time(
    here: LocalRemote, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AgentClient.launch(device, here)
    monkeypatch.setattr("planner.agents.client.SILENCE_S", 3.0)
    write = LocalProcess.write

    def slowly(process: LocalProcess, data: bytes) -> None:
        time.sleep(0.2)
        write(process, data)

    monkeypatch.setattr(LocalProcess, "write", slowly)
    content = bytes(25 * CHUNK_BYTES)
    assert len(fetched(agent, agent.store("some.bin", content))) == len(content)


def test_what_python_prints_as_it_starts_is_passed_over(here: LocalRemote, device: Device, tmp_path: Path) -> None:
    noise = "import os\nos.write(1, b'{}\\n[1]\\nloading, ')\n"
    (tmp_path / "sitecustomize.py").write_text(noise)
    noisy = replace(
        device,
        interpreter=device.interpreter._replace(
            environment={**device.interpreter.environment, "PYTHONPATH": str(tmp_path)}
        ),
    )
    assert AgentClient.launch(noisy, here).call(ReadClock()) > 0


def test_a_full_disk_here_hides_no_failure_over_there(here: LocalRemote, device: Device) -> None:
    with pytest.raises(AgentError, match="tx2: fetch file: .*/no/such/file") as raised:
        fetched(AgentClient.launch(device, here, Path("/dev/full")), "/no/such/file")
    assert "/dev/full" not in str(raised.value)


def test_a_failure_of_the_data_plane_names_the_device_and_what_to_do(here: LocalRemote, device: Device) -> None:
    agent = AgentClient.launch(device, here)
    for message, expected in (
        ("parameter server did not answer in time", "tx2: parameter server did not answer in time"),
        ("cannot reach 10.0.0.1:5: timed out", f"tx2: cannot reach 10.0.0.1:5: timed out; {UNREACHED}"),
    ):
        told = agent.failure("work", Failure("WireError", message, ""))
        assert isinstance(told, DeviceLostError) and str(told) == expected
    assert "data_address" in UNREACHED


def test_an_agent_that_is_killed_within_a_file_is_lost(here: LocalRemote, tmp_path: Path) -> None:
    shell = tmp_path / "python"
    said = 'planner:have\\n{"hello": {"python": "3.6.9", "pid": 7}}\\n'
    shell.write_text(f"#!/bin/sh\nprintf '{said}'; read order; printf '{{\"id\": 1, \"blob\": 99}}\\nhalf'\n")
    shell.chmod(0o755)
    agent = AgentClient.launch(Device(name="tx2", interpreter=Interpreter(str(shell))), here)
    with pytest.raises(DeviceLostError, match="tx2: the agent ended"):
        fetched(agent, "some.bin")
    agent.close()


HOSTILE = """
import os, sys
os.write(1, b'planner:have\\n{"hello": {"python": "3.6.9", "pid": 7}}\\n')
sys.stdin.buffer.readline()
data = memoryview(eval(sys.argv[1]))
while data:
    data = data[os.write(1, data):]
sys.stdin.buffer.read()
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("b'x' * (1 << 26)", "a line of more than 16 MiB came from there"),
        ("b'\"pong\"\\n'", "it says what no agent would: not a JSON object"),
        ("b'[' * 100000 + b'\\n'", "it says what no agent would: not JSON"),
        ('b\'{"id": 1, "blob": 1000000000000000}\\n\'', "1000000000000000 bytes of a file that nobody asked for"),
        ('b\'{"id": 1, "event": {"type": "joined"}}\\n\'', "missing 'member'"),
        ('b\'{"id": 1, "error": 5}\\n\'', "it says what no agent would: failure"),
    ],
    ids=["a line without end", "a text", "deep nesting", "a blob", "half an event", "no error"],
)
def test_a_device_that_says_what_no_agent_would_is_lost_with_one_line(
    here: LocalRemote, tmp_path: Path, said: str, told: str
) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    shell = tmp_path / "python"
    shell.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path / 'hostile.py'} {shlex.quote(said)}\n")
    shell.chmod(0o755)
    agent = AgentClient.launch(Device(name="tx2", interpreter=Interpreter(str(shell))), here)
    with pytest.raises(DeviceLostError, match=r"\Atx2: .*\Z") as lost:
        agent.start(ReadClock()).result(HANG_S)
    assert told in str(lost.value)
    with pytest.raises(DeviceLostError):
        agent.start(ReadClock())
    agent.close()
