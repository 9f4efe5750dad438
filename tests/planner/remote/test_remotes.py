"""One contract for every way to reach a device."""

import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from planner.errors import DeviceLostError
from planner.fleet.device import Device, SshLogin
from planner.remote import connect
from planner.remote.base import Process, Remote
from planner.remote.local import LocalRemote, Pipe
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests.running import HANG_S, lives, until
from tests.sshserver import ssh_server

BIG = 10 << 20
PYTHON = sys.executable


@pytest.fixture(params=["local", "ssh", "the ssh program"])
def remote(
    request: pytest.FixtureRequest, client_key: paramiko.PKey, key_file: Path, target_of: Callable[..., SshTarget]
) -> Iterator[Remote]:
    if request.param == "local":
        here = LocalRemote("device")
        yield here
        here.close()
        return
    with ssh_server(client_key) as server:
        target = target_of(server)
        there = SshRemote("device", target) if request.param == "ssh" else by_program(target, key_file)
        yield there
        there.close()


def by_program(target: SshTarget, key_file: Path) -> Remote:
    if shutil.which("ssh") is None:
        pytest.skip("not installed: ssh")
    config = key_file.with_name("config")
    config.write_text(f"Host *\n UserKnownHostsFile {target.known_hosts[0]}\n GlobalKnownHostsFile none\n")
    login = SshLogin(target.hostname, target.port, target.user, key_file, ssh_config=config, program=True)
    return connect(Device(name="device", ssh=login))


def read_all(process: Process) -> bytes:
    return b"".join(iter(lambda: process.read(1 << 16), b""))


def wait_until(condition: Callable[[], bool], timeout_s: float = 300.0) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return condition()


def test_arguments_arrive_as_they_are(remote: Remote) -> None:
    words = ["a b", "'quoted\"", "$HOME", "*", "", "ü;&|"]
    process = remote.spawn([PYTHON, "-c", "import sys; print(ascii(sys.argv[1:]))", *words])
    assert read_all(process).decode().strip() == ascii(words)


def test_a_process_takes_ten_megabytes_and_gives_them_back(remote: Remote) -> None:
    process = remote.spawn([PYTHON, "-c", f"import sys; d = sys.stdin.buffer.read({BIG}); sys.stdout.buffer.write(d)"])
    data = os.urandom(BIG)
    process.write(data)
    assert read_all(process) == data
    process.close()


def test_input_and_output_flow_at_the_same_time(remote: Remote) -> None:
    process = remote.spawn(["cat"])
    data = os.urandom(BIG)
    writer = threading.Thread(target=process.write, args=(data,))
    writer.start()
    received = b""
    while len(received) < BIG:
        received += process.read(1 << 16)
    writer.join()
    assert received == data
    process.close()


def test_unread_errors_do_not_hold_a_process_up_and_their_end_is_kept(remote: Remote) -> None:
    code = f"import sys; sys.stderr.write('x' * {BIG}); sys.stderr.write('the end'); print('done')"
    process = remote.spawn([PYTHON, "-c", code])
    assert read_all(process) == b"done\n"
    errors = process.errors()
    assert errors.endswith(b"x" * 100 + b"the end")
    assert len(errors) == 1 << 16
    process.close()


def test_what_a_failed_process_said_is_there_when_its_output_ends(remote: Remote) -> None:
    process = remote.spawn(["no-such-command"])
    assert read_all(process) == b""
    assert b"no-such-command" in process.errors()
    process.close()


def test_writing_to_a_process_that_has_ended_says_so(remote: Remote) -> None:
    process = remote.spawn(["true"])
    assert read_all(process) == b""
    with pytest.raises(DeviceLostError, match="device: the process there has ended"):
        until(lambda: process.write(b"x" * 65536), lambda: "it takes more and more")
    process.close()


def test_close_ends_a_process_that_reads_its_input(remote: Remote) -> None:
    process = remote.spawn([PYTHON, "-c", "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"])
    pid = int(process.read(100))
    assert lives(pid)
    process.close()
    assert wait_until(lambda: not lives(pid))


def test_close_wakes_a_reader_and_may_be_repeated(remote: Remote) -> None:
    process = remote.spawn(["cat"])
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(process.read(10)))
    reader.start()
    process.close()
    process.close()
    reader.join(HANG_S)
    assert got == [b""]
    with pytest.raises(DeviceLostError):
        process.write(b"x")


def test_close_wakes_a_writer_whom_nobody_reads(remote: Remote) -> None:
    process = remote.spawn(["sleep", "20"])
    told: list[str] = []

    def write() -> None:
        try:
            process.write(bytes(BIG))
        except DeviceLostError as error:
            told.append(str(error))

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.3)
    process.close()
    writer.join(HANG_S)
    assert told == ["device: the process there has ended"]


def test_closing_a_remote_ends_its_processes_and_may_be_repeated(remote: Remote) -> None:
    process = remote.spawn([PYTHON, "-c", "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"])
    pid = int(process.read(100))
    remote.close()
    remote.close()
    assert wait_until(lambda: not lives(pid))


def test_a_local_remote_forgets_processes_that_were_closed() -> None:
    remote = LocalRemote("device")
    remote.spawn(["cat"]).close()
    stays, last = remote.spawn(["cat"]), remote.spawn(["cat"])
    assert remote._processes == [stays, last]
    remote.close()


def test_a_local_process_that_does_not_listen_is_killed_with_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planner.remote.local._CLOSE_S", 0.2)
    process = LocalRemote("device").spawn(["sh", "-c", "sleep 60 & echo $! $$; wait"])
    pids = [int(word) for word in process.read(100).split()]
    process.close()
    assert wait_until(lambda: not any(lives(pid) for pid in pids))


def test_ctrl_c_does_not_reach_a_local_process() -> None:
    process = LocalRemote("device").spawn([PYTHON, "-c", "import os; print(os.getpid() == os.getsid(0))"])
    assert read_all(process) == b"True\n"


def test_connect_chooses_by_the_device() -> None:
    assert isinstance(connect(Device(name="here")), LocalRemote)


def test_whoever_closes_a_stopped_local_process_second_also_finds_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.remote.local._CLOSE_S", 0.5)
    stops = "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    process = LocalRemote("device").spawn([PYTHON, "-c", stops])
    pid = int(process.read(100))
    first = threading.Thread(target=process.close)
    first.start()
    assert wait_until(lambda: process.closed)
    process.close()
    assert not lives(pid)
    first.join()


def test_a_pipe_is_not_closed_under_a_thread_that_reads_it() -> None:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None and process.stdout is not None
    pipe, read = Pipe(process.stdout), queue.Queue[bytes]()
    descriptor = process.stdout.fileno()
    threading.Thread(target=lambda: read.put(pipe.read(10)), daemon=True).start()
    until(pipe._in_use.locked, lambda: "nobody reads")

    assert not pipe.close(0.01)
    os.fstat(descriptor)  # still open
    process.stdin.write(b"last")
    assert read.get(timeout=HANG_S) == b"last"

    assert pipe.close(HANG_S) and pipe.close(0)
    assert pipe.read(10) == b""
    process.stdin.close()
    process.wait()
