"""Trust is established by fetching a host's key and storing it once the operator agrees."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from planner.errors import HostKeyError, RemoteError
from planner.fleet.device import Device
from planner.remote.known_hosts import (
    ChangedHostKeyError,
    HostKey,
    KnownKey,
    UnknownHostKeyError,
    known_keys,
    matches,
)
from planner.remote.ssh_config import resolve
from planner.remote.ssh_login import Login

#: Characters of a known_hosts pattern that may match several hosts.
PATTERN_CHARACTERS = "*?!"


def fetch_key(device: Device, timeout_s: float = 15.0) -> HostKey:
    """The host key of a device, without logging in.

    Where a jump host's key is unknown or has changed, returns that key: store it and fetch again.
    Raises RemoteError.
    """
    if device.local:
        raise RemoteError(f"{device.name}: is this machine itself and has no host key to trust")
    target = resolve(device)
    with ExitStack() as stack:
        login = Login(device.name, timeout_s, stack)
        try:
            via = login.pass_hosts(target.jumps)
        except (UnknownHostKeyError, ChangedHostKeyError) as error:
            return error.host_key
        return login.shown_key(target, login.shake_hands(target, via))


def store(host_key: HostKey) -> None:
    """Append a key to the first of its known_hosts files.

    Raises HostKeyError where that file cannot be written or is not a regular file.
    """
    path = host_key.files[0]
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, for example
        raise HostKeyError(
            f"{host_key.device}: {path} keeps no key; name a file as UserKnownHostsFile in the ssh configuration"
        )
    try:
        _append(path, f"{host_key.name} {host_key.type} {host_key.base64}\n")
    except OSError as error:
        raise HostKeyError(f"{path}: cannot be written: {error.strerror}; correct its rights") from error


def replace(host_key: HostKey) -> None:
    """Store a key in place of all that are on record for its host.

    Raises HostKeyError, before any change, where a line matches other hosts too by a pattern.
    """
    recorded = [key for key in known_keys(host_key.name, host_key.files) if not key.marker]
    for key in recorded:
        if any(sign in name for name in key.names for sign in PATTERN_CHARACTERS):
            raise HostKeyError(
                f"{host_key.device}: {key.path}:{key.line} holds a key for {','.join(key.names)}, among them "
                f"{host_key.name}; remove or change the line by hand"
            )
    for path in {key.path for key in recorded}:
        try:
            _remove(path, host_key.name, [key for key in recorded if key.path == path])
        except OSError as error:
            raise HostKeyError(f"{path}: cannot be written: {error.strerror}; correct its rights") from error
    store(host_key)


def _remove(path: Path, name: str, keys: list[KnownKey]) -> None:
    """Rewrite a known_hosts file without these keys of a host; other hosts keep theirs."""
    lines: dict[int, bytes] = dict(enumerate(path.read_bytes().split(b"\n"), 1))
    for key in keys:
        _, rest = lines.pop(key.line).split(None, 1)
        others = [other for other in key.names if not matches([other], name)]
        if others:
            lines[key.line] = ",".join(others).encode() + b" " + rest
    path = path.resolve()  # a link stays one
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as stream:
        stream.write(b"\n".join(lines[number] for number in sorted(lines)))
        os.fchmod(stream.fileno(), path.stat().st_mode & 0o777)
    os.replace(stream.name, path)


def _append(path: Path, line: str) -> None:
    """Append in one write, so that concurrent programs do not mix their lines."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        broken = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (("\n" if broken else "") + line).encode())
    finally:
        os.close(descriptor)
