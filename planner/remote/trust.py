"""Getting to know a host's key: read it from the host, and store it once the operator has said yes."""

import os
from contextlib import ExitStack
from pathlib import Path

from planner.errors import HostKeyError, RemoteError
from planner.fleet.device import Device
from planner.remote.known_hosts import HostKey, UnknownHostKeyError, known_keys, verify
from planner.remote.ssh_config import resolve
from planner.remote.ssh_login import Way

__all__ = ["HostKey", "fetch_key", "store"]


def fetch_key(device: Device, timeout_s: float = 15.0) -> HostKey:
    """The key that a device shows, without logging in.

    Where a jump host on the way is itself unknown, it is that host's key: store it and ask again.
    Raises RemoteError.
    """
    if device.local:
        raise RemoteError(f"{device.name}: is this machine itself and has no host key to trust")
    target = resolve(device)
    with ExitStack() as stack:
        way = Way(device.name, timeout_s, stack)
        try:
            via = way.enter_all(target.jumps)
        except UnknownHostKeyError as unknown:
            return unknown.host_key
        return way.shown_key(target, way.shake_hands(target, via))


def store(host_key: HostKey, path: Path | None = None) -> bool:
    """Append a key to a known_hosts file, by default its own; False if it is there already.

    Raises HostKeyError where the file holds another key for this host, with the way to remove it, and where
    what is written to it is lost.
    """
    path = path or host_key.path
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, for example
        raise HostKeyError(
            f"{host_key.device}: {path} keeps no key; name a file as UserKnownHostsFile in the ssh configuration"
        )
    try:
        verify(host_key, known_keys(host_key.name, [path]))
    except UnknownHostKeyError:
        try:
            _append(path, f"{host_key.name} {host_key.type} {host_key.base64}\n")
        except OSError as error:
            raise HostKeyError(f"{path}: cannot be written: {error.strerror}; correct its rights") from error
        return True
    return False


def _append(path: Path, line: str) -> None:
    """One write in append mode, so that two programs at once do not mix their lines."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        broken = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (("\n" if broken else "") + line).encode())
    finally:
        os.close(descriptor)
