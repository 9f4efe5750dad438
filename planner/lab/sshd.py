"""A real sshd for each device, with keys of the lab's own."""

import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from planner.lab.programs import find_program

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
_PAUSE_S = 0.05


def ensure_key(path: Path) -> None:
    """Make a pair of keys where there is none."""
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def configure(folder: Path, client: Path, address: str) -> list[str]:
    """Write a device's host key and configuration; the command that serves them."""
    ensure_key(folder / "host_key")
    config = folder / "sshd_config"
    config.write_text(_CONFIG.format(port=PORT, address=address, folder=folder, client=client))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd, started by root, insists on it
    return [str(find_program("sshd")), "-D", "-e", "-f", str(config)]


def known_host(folder: Path, address: str) -> str:
    """The device's line of a known_hosts file."""
    kind, key, *_ = (folder / "host_key.pub").read_text().split()
    return f"{address} {kind} {key}\n"


def wait(address: str, limit_s: float) -> bool:
    """Whether an sshd answers there within that time."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        try:
            with socket.create_connection((address, PORT), timeout=limit_s) as link:
                if link.recv(4) == b"SSH-":
                    return True
        except OSError:
            time.sleep(_PAUSE_S)
    return False


def config_of(lab: Path) -> Path:
    """The client's configuration, which a fleet file names."""
    return lab / "ssh_config"


def write_client(lab: Path, known_hosts: Iterable[str]) -> None:
    """The client's configuration, so that nothing of the user's own is read and no host key is asked for."""
    known = lab / "known_hosts"
    known.write_text("".join(known_hosts))
    config_of(lab).write_text(f"Host *\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n")
