"""What can go wrong on the way to a device, and what the operator is told."""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest

from planner.errors import DeviceLostError, HostKeyError, LoginError, RemoteError
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests import sshserver
from tests.running import HANG_S, until
from tests.sshserver import Faults, new_key, ssh_server, write_key

MakeTarget = Callable[..., SshTarget]


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def answer(target: SshTarget, **options: float) -> bytes:
    remote = SshRemote("tx2", target, **options)
    try:
        return remote.spawn(["echo", "hello"]).read(100)
    finally:
        remote.close()


def told(target: SshTarget, kind: type[RemoteError], **options: float) -> str:
    with pytest.raises(RemoteError) as caught:
        answer(target, **options)
    assert type(caught.value) is kind or issubclass(type(caught.value), kind)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestHostKeys:
    def test_an_unknown_key_is_refused_and_not_stored(
        self, client_key: paramiko.PKey, target_of: MakeTarget, known_hosts: Path
    ) -> None:
        with ssh_server(client_key) as server:
            message = told(target_of(server, known=""), HostKeyError)
            assert f"host key of [127.0.0.1]:{server.port} is not known" in message
            assert server.host_keys[0].fingerprint in message
            assert message.endswith("check it and run `planner trust tx2`")
            assert known_hosts.read_text() == ""
            assert server.logins == 0

    def test_a_changed_key_names_the_line_and_both_fingerprints(
        self, client_key: paramiko.PKey, target_of: MakeTarget, known_hosts: Path
    ) -> None:
        old = new_key()
        with ssh_server(client_key) as server:
            message = told(target_of(server, known="# mine\n" + server.known_line(old)), HostKeyError)
            assert "has changed" in message
            assert f"{known_hosts}:2 holds" in message
            assert old.fingerprint in message
            assert server.host_keys[0].fingerprint in message
            assert message.endswith("run `planner trust tx2`")
            assert (server.connects, server.logins) == (1, 0)

    def test_a_host_with_several_keys_is_asked_for_the_one_on_record(
        self, client_key: paramiko.PKey, target_of: MakeTarget
    ) -> None:
        keys = (new_key(), paramiko.RSAKey.generate(2048))
        with ssh_server(client_key, host_keys=keys) as server:
            assert answer(target_of(server, known=server.known_line(keys[1]))) == b"hello\n"


class TestLogins:
    def test_a_refused_login_names_user_host_keys_and_remedy_and_is_not_repeated(
        self, client_key: paramiko.PKey, target_of: MakeTarget, key_file: Path
    ) -> None:
        with ssh_server(client_key, Faults(refuse_login=True)) as server:
            message = told(target_of(server), LoginError)
            assert f"tx2: someone@127.0.0.1:{server.port} refuses the login (tried {key_file})" in message
            assert f"ssh-copy-id -p {server.port} someone@127.0.0.1" in message
            assert (server.connects, server.logins) == (1, 1)

    def test_a_second_key_is_tried(
        self, client_key: paramiko.PKey, target_of: MakeTarget, key_file: Path, tmp_path: Path
    ) -> None:
        other = write_key(new_key(), tmp_path / "id_other")
        with ssh_server(client_key) as server:
            assert answer(target_of(server, key_files=(other, tmp_path / "absent", key_file))) == b"hello\n"

    def test_a_key_with_a_passphrase_is_left_to_the_agent(
        self, client_key: paramiko.PKey, target_of: MakeTarget, tmp_path: Path
    ) -> None:
        locked = write_key(client_key, tmp_path / "id_locked", password="secret")
        broken = tmp_path / "id_broken"
        broken.write_text("no key\n")
        with ssh_server(client_key) as server:
            message = told(target_of(server, key_files=(locked, broken)), LoginError)
        assert f"no key to try; {locked} needs a passphrase: `ssh-add {locked}`" in message
        assert f"{broken} is no usable private key" in message


class TestAlgorithms:
    @pytest.mark.parametrize(
        ("kind", "names"),
        [("_preferred_ciphers", ("aes128-cbc", "3des-cbc")), ("_preferred_macs", ("hmac-md5", "hmac-sha1-96"))],
    )
    def test_a_server_that_has_weak_ones_only_is_not_reached(
        self, client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch, kind: str,
        names: tuple[str, ...],
    ) -> None:  # fmt: skip
        monkeypatch.setattr(sshserver._Transport, kind, names)
        if kind == "_preferred_macs":  # which a cipher like GCM does without
            monkeypatch.setattr(sshserver._Transport, "_preferred_ciphers", ("aes128-ctr",))
        with ssh_server(client_key) as server:
            assert "speaks no common algorithm" in told(target_of(server), LoginError)

    def test_a_server_as_of_old_boards_is_reached(
        self, client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """OpenSSH 7.2, as far as paramiko has its algorithms."""
        monkeypatch.setattr(sshserver._Transport, "_preferred_ciphers", ("aes128-ctr", "aes192-ctr", "aes256-ctr"))
        monkeypatch.setattr(sshserver._Transport, "_preferred_macs", ("hmac-sha2-256", "hmac-sha2-512", "hmac-sha1"))
        monkeypatch.setattr(sshserver._Transport, "_preferred_kex", ("ecdh-sha2-nistp256",))
        with ssh_server(client_key) as server:
            assert answer(target_of(server)) == b"hello\n"


class TestDroppedConnections:
    def test_they_are_tried_again(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key, Faults(drop_connects=2)) as server:
            assert answer(target_of(server)) == b"hello\n"
            assert server.connects == 3

    def test_a_server_that_never_answers_costs_one_timeout(
        self, client_key: paramiko.PKey, target_of: MakeTarget
    ) -> None:
        with ssh_server(client_key, Faults(stall=True)) as server:
            assert "dropped the connection (try 1 of 4" in told(target_of(server), RemoteError, timeout_s=0.5)
            assert server.connects == 1


class TestUnreachable:
    def test_the_name_has_no_address(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key) as server:
            message = told(target_of(server, hostname="no-such-host.invalid"), RemoteError)
        assert "the name no-such-host.invalid has no address" in message

    def test_no_answer_in_time(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key) as server, socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            port = full.getsockname()[1]
            fillers = [socket.socket() for _ in range(3)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            message = told(target_of(server, port=port), RemoteError, timeout_s=0.3)
            for filler in fillers:
                filler.close()
        assert f"no answer from 127.0.0.1:{port} within 0.3 s" in message


class TestLostConnections:
    def test_a_reader_is_told(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key, Faults(drop_after_bytes=100_000)) as server:
            process = SshRemote("tx2", target_of(server)).spawn(["head", "-c", "1000000", "/dev/zero"])
            received = 0
            with pytest.raises(DeviceLostError, match="tx2: the connection was lost"):
                while data := process.read(1 << 14):
                    received += len(data)
            assert received <= 100_000

    def test_a_writer_is_told(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key) as server:
            remote = SshRemote("tx2", target_of(server))
            process = remote.spawn(["sleep", "2"])
            server.hang_up()
            with pytest.raises(DeviceLostError, match="tx2: the connection was lost"):
                until(lambda: process.write(b"x" * 65536), lambda: "it takes more and more")
            with pytest.raises(DeviceLostError, match="tx2: the connection was lost"):
                remote.spawn(["true"])
            remote.close()

    def test_a_server_that_does_not_start_the_command_costs_one_timeout(
        self, client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        released = threading.Event()
        monkeypatch.setattr(sshserver._Session, "check_channel_exec_request", lambda *_: released.wait(HANG_S))
        with ssh_server(client_key) as server:
            remote = SshRemote("tx2", target_of(server), timeout_s=0.5)
            with pytest.raises(DeviceLostError, match=r"tx2: sshd did not start a command within 0\.5 s"):
                remote.spawn(["true"])
            remote.close()
            released.set()

    def test_closing_wakes_a_writer_on_a_link_that_takes_nothing_any_more(
        self, client_key: paramiko.PKey, target_of: MakeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("planner.remote.ssh._CLOSE_S", 0.5)
        pipe, pid = tmp_path / "pipe.py", tmp_path / "pid"
        pipe.write_text(f"import os\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n" + TestProxyCommands.PIPE)
        with ssh_server(client_key) as server:
            proxy = f"{sys.executable} {pipe} {server.port}"
            remote = SshRemote("tx2", target_of(server, proxy_command=proxy))
            process = remote.spawn(["sleep", "2"])
            os.kill(int(pid.read_text()), signal.SIGSTOP)
            told: list[DeviceLostError] = []

            def write() -> None:
                try:
                    process.write(bytes(5_000_000))
                except DeviceLostError as error:
                    told.append(error)

            writer = threading.Thread(target=write)
            writer.start()
            time.sleep(0.3)
            process.close()
            writer.join(HANG_S)
            assert len(told) == 1
            remote.close()


class TestJumps:
    def test_a_device_behind_two_hosts(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with (
            ssh_server(client_key) as first,
            ssh_server(client_key) as second,
            ssh_server(client_key) as last,
        ):
            hops = (target_of(first), target_of(second))
            assert answer(target_of(last, jumps=hops)) == b"hello\n"
            assert first.forwards == [("127.0.0.1", second.port)]
            assert second.forwards == [("127.0.0.1", last.port)]

    def test_the_key_of_each_hop_is_checked(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key) as jump, ssh_server(client_key) as last:
            message = told(target_of(last, jumps=(target_of(jump, known=""),)), HostKeyError)
            assert f"tx2: host key of [127.0.0.1]:{jump.port} is not known" in message
            assert last.connects == 0

    def test_the_login_at_a_jump_host_is_named(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key, Faults(refuse_login=True)) as jump, ssh_server(client_key) as last:
            message = told(target_of(last, jumps=(target_of(jump, user="porter"),)), LoginError)
        assert f"tx2: porter@127.0.0.1:{jump.port} refuses the login" in message

    def test_a_device_that_the_jump_host_does_not_reach(self, client_key: paramiko.PKey, target_of: MakeTarget) -> None:
        with ssh_server(client_key) as jump:
            with ssh_server(client_key) as gone:
                target = target_of(gone, jumps=(target_of(jump),))
            message = told(target, RemoteError)
        assert f"tx2: the jump host does not reach 127.0.0.1:{target.port}" in message

    def test_a_device_that_drops_connections_behind_a_jump_host(
        self, client_key: paramiko.PKey, target_of: MakeTarget
    ) -> None:
        with ssh_server(client_key) as jump, ssh_server(client_key, Faults(drop_connects=2)) as last:
            assert answer(target_of(last, jumps=(target_of(jump),))) == b"hello\n"
            assert (jump.connects, last.connects) == (1, 3)

    def test_a_connection_that_is_dropped_before_this_end_knows_of_it_is_tried_again(
        self, client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened, answers = paramiko.Transport.open_channel, [paramiko.SSHException("Unable to open channel.")]

        def open_channel(transport: paramiko.Transport, kind: str, *args: object, **options: object) -> object:
            if kind == "direct-tcpip" and answers:
                raise answers.pop()
            return opened(transport, kind, *args, **options)

        monkeypatch.setattr(paramiko.Transport, "open_channel", open_channel)
        with ssh_server(client_key) as jump, ssh_server(client_key) as last:
            assert answer(target_of(last, jumps=(target_of(jump),))) == b"hello\n"
            assert last.connects == 1


class TestProxyCommands:
    PIPE = (
        "import os, socket, sys, threading\n"
        "link = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "def pump():\n"
        "    while data := os.read(0, 65536): link.sendall(data)\n"
        "threading.Thread(target=pump, daemon=True).start()\n"
        "while data := link.recv(65536): os.write(1, data)\n"
    )

    def test_a_program_carries_the_bytes(
        self, client_key: paramiko.PKey, target_of: MakeTarget, tmp_path: Path
    ) -> None:
        pipe = tmp_path / "pipe.py"
        pipe.write_text(self.PIPE)
        with ssh_server(client_key) as server:
            command = f"{sys.executable} {pipe} {server.port}"
            assert answer(target_of(server, proxy_command=command)) == b"hello\n"

    def test_one_that_ends_at_once_is_a_dropped_connection(
        self, client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("planner.remote.ssh_login._FIRST_PAUSE_S", 0.01)
        with ssh_server(client_key) as server:
            assert "dropped the connection (try 4 of 4" in told(target_of(server, proxy_command="true"), RemoteError)
            missing = told(target_of(server, proxy_command="no-such-program"), RemoteError)
            assert "ProxyCommand: " in missing and "no-such-program" in missing


def test_paramiko_writes_nothing_on_screen(
    client_key: paramiko.PKey,
    target_of: MakeTarget,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr("planner.remote.ssh_login._FIRST_PAUSE_S", 0.01)
    with ssh_server(client_key, Faults(drop_connects=99)) as server:
        told(target_of(server), RemoteError)
    assert capfd.readouterr() == ("", "")
