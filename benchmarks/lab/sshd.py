"""Each lab device runs a real sshd, with keys of the lab's own."""

import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import LabError
from .programs import find_program

PORT = 22

_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {client}.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""


def ensure_key(path: Path) -> None:
    """Make a pair of keys unless it is complete. Raises LabError."""
    if path.exists() and Path(f"{path}.pub").exists():
        return
    path.unlink(missing_ok=True)
    make = [str(find_program("ssh-keygen")), "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    done = subprocess.run(make, check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{path}: ssh-keygen makes no key: {' '.join((done.stderr or done.stdout).split())}")


def configure(folder: Path, client: Path, address: str) -> list[str]:
    """Write a device's host key and configuration; return the command that starts its sshd."""
    ensure_key(folder / "host_key")
    config = folder / "sshd_config"
    config.write_text(_CONFIG.format(port=PORT, address=address, folder=folder, client=client))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # required by an sshd that root starts
    return [str(find_program("sshd")), "-D", "-e", "-f", str(config)]


def known_host(folder: Path, address: str) -> str:
    kind, key, *_ = (folder / "host_key.pub").read_text().split()
    return f"{address} {kind} {key}\n"


def answers(address: str, limit_s: float) -> bool:
    """Whether an sshd sends its banner within that time."""
    try:
        with socket.create_connection((address, PORT), timeout=limit_s) as link:
            return link.recv(4) == b"SSH-"
    except OSError:
        return False


def config_of(lab: Path) -> Path:
    """The path of the client's configuration, which a fleet file names."""
    return lab / "ssh_config"


def write_client(lab: Path, known_hosts: Iterable[str]) -> None:
    """Write the client's configuration, independent of the user's own, with known host keys."""
    known = lab / "known_hosts"
    known.write_text("".join(known_hosts))
    config_of(lab).write_text(f"Host *\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n")
