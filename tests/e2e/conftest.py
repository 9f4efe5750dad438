"""Two devices behind real SSH servers on this machine, and a home directory of the tests' own."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.clean_environments import CleanPython, environment
from tests.running import MARK, until

HERE = Path(__file__).resolve().parent
SLOWDOWNS = {"desktop": 1.5, "tx1": 3}
PROGRAMS = ("sshd", "ssh", "ssh-keygen", "iperf3")

SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_{port}
AuthorizedKeysFile {folder}/client.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name the tiers of the tests in this folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("lab" if "lab_machine" in getattr(item, "fixturenames", ()) else "e2e")


def program(name: str) -> str | None:
    """Where a program is; sshd is often outside of an ordinary user's path."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin")


@pytest.fixture(scope="session")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> CleanPython:
    """Makes an environment with these packages and what they need, once a session; its Python."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*packages: str) -> Path:
        if packages not in made:
            made[packages] = environment(tmp_path_factory.mktemp("clean"), packages)
        return made[packages]

    return make


@pytest.fixture(scope="module")
def ssh_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with fleet.toml.

    Each device is this machine, behind an sshd of its own that is not yet trusted.
    """
    need(*PROGRAMS)
    folder = tmp_path_factory.mktemp("fleet")
    new_key(folder / "client")
    with ExitStack() as stack:
        ports = {name: serve(folder, stack) for name in SLOWDOWNS}
        (folder / "config").write_text(
            f"Host *\n  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile none\n"
        )
        (folder / "fleet.toml").write_text(_fleet(folder, ports))
        yield folder


def need(*programs: str) -> None:
    """Skip where a program is not installed."""
    missing = [name for name in programs if program(name) is None]
    if missing and "CI" in os.environ:
        pytest.fail(f"not installed: {', '.join(missing)}")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def _fleet(folder: Path, ports: dict[str, int]) -> str:
    entries = [
        f"""\
[devices.{name}]
address = "{getpass.getuser()}@127.0.0.1:{port}"
key = "client"
python = "{sys.executable}"
slowdown = {SLOWDOWNS[name]}
idle_watts = 3
max_watts = {10 * (place + 1)}
environment = {{ XDG_CACHE_HOME = "{folder}/cache-{name}", {MARK} = "{folder}/{name}", OMP_NUM_THREADS = "1" }}
"""
        for place, (name, port) in enumerate(ports.items())
    ]
    return 'ssh_config = "config"\n\n' + "\n".join(entries)


def serve(folder: Path, stack: ExitStack, more: str = "") -> int:
    """Start an sshd, with ``more`` lines in its configuration; returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    new_key(folder / f"host_{port}")
    config = folder / f"sshd_{port}"
    config.write_text(SSHD.format(port=port, folder=folder) + more)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd, started by root, insists on it
    log = folder / f"log_{port}"
    server = subprocess.Popen([str(program("sshd")), "-D", "-f", str(config), "-E", str(log)])
    stack.callback(server.wait)
    stack.callback(server.terminate)

    def listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(listening, log.read_text)
    return port


def new_key(path: Path, kind: str = "ed25519") -> None:
    """Make a key in a file, with its public half beside it."""
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)
