"""What logs in with ssh logs in here: real servers, a real agent, and ssh's own configuration."""

import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from backends.protocol.orders import ReadClock
from planner.agents.client import AgentClient
from planner.errors import DeviceLostError, HostKeyError, LoginError, RemoteError
from planner.fleet.device import Device, Interpreter, SshLogin
from planner.remote import connect, known_hosts
from planner.remote.ssh_login import fetch_host_key
from planner.remote.ssh_program import SshProgramRemote
from tests.e2e.conftest import need, new_key, serve
from tests.running import until

ME = getpass.getuser()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key that the servers of the test know."""
    need("sshd", "ssh", "ssh-keygen", "ssh-agent", "ssh-add")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    new_key(tmp_path / "client")
    return tmp_path


@contextmanager
def server(folder: Path, *lines: str, sshd: str = "", known: bool = True, **login: object) -> Iterator[Device]:
    """A device behind an sshd, and a configuration of ssh with these lines."""
    with ExitStack() as stack:
        port = serve(folder, stack, sshd)
        if known:
            key = (folder / f"host_{port}.pub").read_text()
            (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}")
        config = folder / f"config_{port}"
        own = ["Host nano", *lines, "HostName 127.0.0.1", f"User {ME}", f"Port {port}"]
        files = [f"UserKnownHostsFile {folder}/known_hosts", "GlobalKnownHostsFile none"]
        config.write_text("\n".join([*own, *files]) + "\n")
        yield Device(name="tx2", ssh=SshLogin("nano", ssh_config=config, **login))


@contextmanager
def agent_with(key: Path) -> Iterator[str]:
    """The socket of an SSH agent that holds a key, which is no more in its file."""
    socket = f"{key}.sock"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL) as agent:
        try:
            until(Path(socket).exists, lambda: "no agent")
            subprocess.run(["ssh-add", "-q", str(key)], env={**os.environ, "SSH_AUTH_SOCK": socket}, check=True)
            yield socket
        finally:
            agent.terminate()


def greets(device: Device) -> None:
    remote = connect(device)
    try:
        assert remote.spawn(["echo", "it's", "there"]).read_line() == b"it's there"
    finally:
        remote.close()


def sign(authority: Path, public: Path, *options: str) -> None:
    subprocess.run(["ssh-keygen", "-q", "-s", str(authority), "-I", "id", *options, str(public)], check=True)


PROGRAM = pytest.mark.parametrize("program", [False, True], ids=["by paramiko", "by the ssh program"])


@PROGRAM
@pytest.mark.parametrize(
    "agent_line", ["IdentityAgent {socket}", "IdentityAgent $AGENT", "IdentityAgent ${{AGENT}}", ""]
)
def test_a_public_key_stands_for_a_key_of_the_agent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, agent_line: str, program: bool
) -> None:
    for number in range(7):  # more than a server takes: the one that is named has to come first
        new_key(folder / f"other{number}")
    with agent_with(folder / "other0") as socket:
        for key in [*(f"other{number}" for number in range(1, 7)), "client"]:
            subprocess.run(["ssh-add", "-q", folder / key], env={**os.environ, "SSH_AUTH_SOCK": socket}, check=True)
        (folder / "client").unlink()
        monkeypatch.setenv("AGENT" if agent_line else "SSH_AUTH_SOCK", socket)
        lines = [f"IdentityFile {folder}/client.pub", agent_line.format(socket=socket)]
        with server(folder, *lines, program=program) as device:
            greets(device)


@PROGRAM
def test_a_locked_key_without_its_public_half_is_found_in_the_agent(folder: Path, program: bool) -> None:
    with agent_with(folder / "client") as socket:
        locked = ["-q", "-p", "-N", "secret", "-f", str(folder / "client")]
        subprocess.run(["ssh-keygen", *locked], check=True, stdout=subprocess.DEVNULL)
        (folder / "authorized").write_bytes((folder / "client.pub").read_bytes())
        (folder / "client.pub").unlink()
        lines = ["IdentitiesOnly yes", f"IdentityFile {folder}/client", f"IdentityAgent {socket}"]
        sshd = f"Match all\nAuthorizedKeysFile {folder}/authorized\n"
        with server(folder, *lines, sshd=sshd, program=program) as device:
            greets(device)


@PROGRAM
def test_files_may_have_spaces_variables_and_tokens_in_their_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, program: bool
) -> None:
    monkeypatch.setenv("KEYS", str(folder))
    spaced = folder / "My Files"
    spaced.mkdir()
    (folder / "client").rename(folder / "key of 127.0.0.1")
    lines = ['IdentityFile "${KEYS}/key of %h"', f'UserKnownHostsFile "{spaced}/known_hosts" "{folder}/other hosts"']
    with server(folder, *lines, known=False, program=program) as device:
        with pytest.raises(HostKeyError, match="planner trust tx2"):
            greets(device)
        known_hosts.store(fetch_host_key(device))
        assert [path.name for path in spaced.iterdir()] == ["known_hosts"]
        greets(device)


@PROGRAM
def test_a_key_recorded_without_a_port_is_that_of_the_host(folder: Path, program: bool) -> None:
    with server(folder, f"IdentityFile {folder}/client", program=program) as device:
        known = folder / "known_hosts"
        known.write_text("127.0.0.1 " + known.read_text().partition(" ")[2])
        greets(device)


@PROGRAM
@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
@pytest.mark.parametrize("form", ["PEM", "PKCS8"])
def test_keys_of_older_formats_log_in(folder: Path, form: str, kind: str, program: bool) -> None:
    made = ["ssh-keygen", "-q", "-N", "", "-t", kind, "-m", form, "-f", str(folder / "old")]
    subprocess.run(made, check=True)
    (folder / "old.pub").replace(folder / "client.pub")
    with server(folder, f"IdentityFile {folder}/old", program=program) as device:
        greets(device)


@PROGRAM
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
@pytest.mark.parametrize("held_by", ["a file", "a file that is named", "the agent"])
def test_a_certificate_of_the_user_logs_in(folder: Path, held_by: str, kind: str, program: bool) -> None:
    new_key(folder / "authority")
    new_key(folder / "me", kind)
    sign(folder / "authority", folder / "me.pub", "-n", ME)
    lines = [f"IdentityFile {folder}/me"]
    with ExitStack() as stack:
        if held_by == "a file that is named":
            (folder / "me-cert.pub").rename(folder / "certificate.pub")
            lines.append(f"CertificateFile {folder}/certificate.pub")
        elif held_by == "the agent":
            lines = [f"IdentityAgent {stack.enter_context(agent_with(folder / 'me'))}"]
            (folder / "me-cert.pub").unlink()
        device = stack.enter_context(
            server(folder, *lines, sshd=f"TrustedUserCAKeys {folder}/authority.pub\n", program=program)
        )
        greets(device)


def test_the_ssh_program_does_what_paramiko_cannot_and_is_named_as_the_remedy(folder: Path) -> None:
    """Here, a host shows a certificate of an authority."""
    new_key(folder / "authority")
    new_key(folder / "certified", kind="ecdsa")
    sign(folder / "authority", folder / "certified.pub", "-h")
    sshd = f"HostKey {folder}/certified\nHostCertificate {folder}/certified-cert.pub\n"
    with server(folder, f"IdentityFile {folder}/client", sshd=sshd, known=False) as device:
        (folder / "known_hosts").write_text(f"@cert-authority * {(folder / 'authority.pub').read_text()}")
        with pytest.raises(LoginError, match='ssh itself logs in there: set ssh = "program"'):
            greets(device)
        assert device.ssh is not None
        greets(Device(name="tx2", ssh=device.ssh._replace(program=True)))


PASS_DESCRIPTOR = """
import array, socket, sys
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [link.fileno()]))]
socket.socket(fileno=1).sendmsg([b"x"], rights)
"""


@pytest.mark.parametrize("what", ["a key that a command tells", "a socket that a command passes"])
def test_keys_and_ways_that_only_ssh_has_are_named_with_the_remedy(folder: Path, what: str) -> None:
    (folder / "pass.py").write_text(PASS_DESCRIPTOR)
    with server(folder, f"IdentityFile {folder}/client") as device:
        assert device.ssh is not None and device.ssh.ssh_config is not None
        if what.startswith("a key"):
            line = f"KnownHostsCommand /bin/cat {folder}/told"
            (folder / "known_hosts").rename(folder / "told")
        else:
            line = f"ProxyUseFdpass yes\nProxyCommand {sys.executable} {folder}/pass.py %h %p"
            (folder / "told").write_text("")
        with device.ssh.ssh_config.open("a") as config:
            config.write(line + "\n")
        with pytest.raises(LoginError, match='ssh itself logs in there: set ssh = "program"'):
            greets(device)
        if not what.startswith("a key"):
            with pytest.raises(RemoteError, match="or log in once by ssh, which asks whether to store the key"):
                fetch_host_key(device)
        greets(replace(device, ssh=device.ssh._replace(program=True)))


def test_keys_that_a_file_revokes_are_left_to_the_ssh_program(folder: Path) -> None:
    with server(folder, f"IdentityFile {folder}/client", f"RevokedHostKeys {folder}/revoked") as device:
        (folder / "revoked").write_text("")
        with pytest.raises(HostKeyError, match='only the ssh program reads RevokedHostKeys.*set ssh = "program"'):
            greets(device)
        assert device.ssh is not None
        by_program = replace(device, ssh=device.ssh._replace(program=True))
        greets(by_program)
        host_key = next(folder.glob("host_*.pub"))
        (folder / "revoked").write_bytes(host_key.read_bytes())
        with pytest.raises(HostKeyError, match="ost key verification failed"):
            greets(by_program)


@pytest.mark.parametrize("line", ["SessionType none", "StdinNull yes", "RemoteCommand tmux", "RequestTTY force"])
def test_the_ssh_program_runs_the_command_whatever_the_configuration_asks_for(folder: Path, line: str) -> None:
    with server(folder, f"IdentityFile {folder}/client", line, program=True) as device:
        remote = connect(device)
        process = remote.spawn(["cat"])
        process.write(b"it comes\n")
        assert process.read_line() == b"it comes"
        remote.close()


def test_the_ssh_program_drops_processes_that_were_closed(folder: Path) -> None:
    with server(folder, f"IdentityFile {folder}/client", program=True) as device:
        remote = SshProgramRemote(device)
        for _ in range(3):
            process = remote.spawn(["true"])
            process.close()
        assert remote._processes == [process]


@pytest.mark.parametrize(
    ("lines", "kind", "said"),
    [
        (("IdentityFile {folder}/stranger", "IdentitiesOnly yes"), LoginError, "Permission denied"),
        (
            ("IdentityFile {folder}/client", "UserKnownHostsFile {folder}/none"),
            HostKeyError,
            "ost key verification failed",
        ),
        (("Port 1",), RemoteError, "ssh: connect to host 127.0.0.1 port 1: Connection refused"),
    ],
)
def test_what_is_wrong_at_a_jump_host_is_told_by_the_ssh_program(
    folder: Path, lines: tuple[str, ...], kind: type[RemoteError], said: str
) -> None:
    new_key(folder / "stranger")
    gate = "\n".join(["Host gate", *lines]).format(folder=folder)
    nano = f"Host nano\nIdentityFile {folder}/client\nProxyJump gate"
    with server(folder, program=True) as device:
        assert device.ssh is not None and device.ssh.ssh_config is not None
        both = device.ssh.ssh_config.read_text().replace("Host nano", "Host gate nano")
        device.ssh.ssh_config.write_text("\n".join([gate, nano, both]))
        with pytest.raises(kind, match=said):
            greets(device)


@PROGRAM
def test_the_ssh_folder_of_another_home_counts(folder: Path, monkeypatch: pytest.MonkeyPatch, program: bool) -> None:
    own = folder / "my 100% home" / ".ssh"
    own.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(own.parent))
    with server(folder, program=program) as device:
        assert device.ssh is not None and device.ssh.ssh_config is not None
        lines = [line for line in device.ssh.ssh_config.read_text().splitlines() if "KnownHosts" not in line]
        device.ssh.ssh_config.write_text("\n".join(lines) + "\n")
        (folder / "client").rename(own / "id_ed25519")
        (folder / "known_hosts").rename(own / "known_hosts")
        greets(device)


def test_what_the_ssh_program_says_becomes_an_error_with_a_remedy(folder: Path) -> None:
    new_key(folder / "stranger")
    with server(folder, f"IdentityFile {folder}/stranger", "IdentitiesOnly yes", program=True) as device:
        with pytest.raises(LoginError, match="tx2: ssh: .*Permission denied"):
            greets(device)
        (folder / "known_hosts").write_text("")
        with pytest.raises(HostKeyError, match="planner trust tx2"):
            greets(device)
    with pytest.raises(RemoteError, match="tx2: ssh: .*refused"):
        greets(device)


def test_an_agent_works_through_the_ssh_program_and_its_loss_is_told(folder: Path) -> None:
    with server(folder, f"IdentityFile {folder}/client", program=True) as device:
        interpreter = Interpreter(sys.executable, environment={"XDG_CACHE_HOME": str(folder / "cache")})
        device = replace(device, interpreter=interpreter)
        remote = connect(device)
        agent = AgentClient.launch(device, remote)
        assert agent.call(ReadClock()) > 0
        os.kill(sshd_of(agent.pid), signal.SIGKILL)
        until(lambda: agent.lost, lambda: "its loss is not noticed")
        with pytest.raises(DeviceLostError, match="tx2: ssh: .*then run again"):
            agent.call(ReadClock())
        remote.close()


def sshd_of(pid: int) -> int:
    """The sshd that serves a process."""
    while True:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if status["Name"].strip().startswith("sshd"):
            return pid
        pid = int(status["PPid"])
