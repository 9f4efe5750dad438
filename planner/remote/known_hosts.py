"""Host keys are verified and stored in known_hosts files (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from planner.errors import HostKeyError
from profilers.whole_file import whole_file

#: Characters of a known_hosts pattern that may match several hosts.
PATTERN_CHARACTERS = "*?!"


class HostKey(NamedTuple):
    """A host key that was received on the way to ``device``.

    name: the host's name in known_hosts files.
    files: the known_hosts files that may hold its key; a new key is stored in the first.
    """

    device: str
    name: str
    type: str
    base64: str
    files: tuple[Path, ...]

    @property
    def fingerprint(self) -> str:
        """SHA256:…, as OpenSSH prints it."""
        return fingerprint(self.base64)


class KnownKey(NamedTuple):
    """One line of a known_hosts file."""

    path: Path
    line: int
    marker: str
    names: tuple[str, ...]
    type: str
    base64: str

    @property
    def fingerprint(self) -> str:
        """SHA256:…, as OpenSSH prints it."""
        return fingerprint(self.base64)


class UnknownHostKeyError(HostKeyError):
    """No known_hosts file holds a key for this host."""

    def __init__(self, host_key: HostKey) -> None:
        super().__init__(
            f"{host_key.device}: host key of {host_key.name} is not known ({host_key.type} "
            f"{host_key.fingerprint}): check it and run `planner trust {host_key.device}`"
        )
        self.host_key = host_key


class ChangedHostKeyError(HostKeyError):
    """The host presents a key other than the one on record."""

    def __init__(self, host_key: HostKey, recorded: KnownKey) -> None:
        super().__init__(
            f"{host_key.device}: host key of {host_key.name} has changed: {recorded.path}:{recorded.line} holds "
            f"{recorded.type} {recorded.fingerprint}, the host shows {host_key.type} {host_key.fingerprint} (someone "
            f"may intercept the connection); if you know why it changed, run `planner trust {host_key.device}`"
        )
        self.host_key = host_key
        self.recorded = recorded


def fingerprint(key: str) -> str:
    """The SHA-256 fingerprint of a key in base64."""
    digest = hashlib.sha256(base64.b64decode(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def known_keys(name: str, paths: Iterable[Path]) -> list[KnownKey]:
    """Lines of these files for that host; a missing file holds none."""
    return [key for path in paths for key in _read(path) if matches(key.names, name)]


def without_port(name: str) -> str:
    """The host of ``[host]:port``, whose key ssh takes too where the longer name has none."""
    host = re.fullmatch(r"\[(.*)\]:\d+", name)
    return host[1] if host else name


def verify(host_key: HostKey) -> None:
    """Compare a host key with those on record.

    Raises UnknownHostKeyError where there is none, ChangedHostKeyError where the key differs,
    HostKeyError where it is revoked.
    """
    known = known_keys(host_key.name, host_key.files)
    of_host = known_keys(without_port(host_key.name), host_key.files)
    revoked = [key for key in (*known, *of_host) if key.marker == "@revoked" and key.base64 == host_key.base64]
    if revoked:
        raise HostKeyError(
            f"{host_key.device}: {host_key.name} shows a host key that {revoked[0].path}:{revoked[0].line} "
            f"revokes ({host_key.fingerprint}); give the device a new one with ssh-keygen -A"
        )
    plain = [key for key in known if not key.marker]
    if any(key.base64 == host_key.base64 for key in plain):
        return
    if plain:
        old = next((key for key in plain if key.type == host_key.type), plain[0])
        raise ChangedHostKeyError(host_key, old)
    if any(key.base64 == host_key.base64 and not key.marker for key in of_host):
        return
    raise UnknownHostKeyError(host_key)


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
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> HostKeyError:
    return HostKeyError(f"{path}: cannot be written: {error.strerror}; make room or write access there")


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
            raise _unwritten(path, error) from error
    store(host_key)


def matches(names: Sequence[str], name: str) -> bool:
    """Whether the first field of a line, split at its commas, matches that host."""
    if any(_one(pattern[1:], name) for pattern in names if pattern.startswith("!")):
        return False
    return any(_one(pattern, name) for pattern in names)


def _one(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        return _hashed(pattern, name)
    expression = re.escape(pattern.lower()).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name.lower()) is not None


def _hashed(pattern: str, name: str) -> bool:
    """|1|salt|digest, the HMAC-SHA1 of the name (HashKnownHosts)."""
    _, _, salt, digest = (pattern + "||").split("|")[:4]
    try:
        found = hmac.new(base64.b64decode(salt), name.lower().encode(), hashlib.sha1).digest()
        return hmac.compare_digest(found, base64.b64decode(digest))
    except ValueError:
        return False


def _read(path: Path) -> Iterator[KnownKey]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):  # ssh passes over it
        return
    except OSError as error:
        raise HostKeyError(f"{path}: known hosts cannot be read: {error.strerror}; correct its rights") from error
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) >= 3 and not fields[0].startswith("#") and _is_base64(fields[2]):
            yield KnownKey(path, number, marker, tuple(fields[0].split(",")), fields[1], fields[2])


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _remove(path: Path, name: str, keys: list[KnownKey]) -> None:
    """Rewrite a known_hosts file without these keys of a host; other hosts keep theirs."""
    lines: dict[int, bytes] = dict(enumerate(path.read_bytes().split(b"\n"), 1))
    for key in keys:
        _, rest = lines.pop(key.line).split(None, 1)
        others = [other for other in key.names if not matches([other], name)]
        if others:
            lines[key.line] = ",".join(others).encode() + b" " + rest
    path = path.resolve()  # a link stays one
    with whole_file(str(path)) as stream:
        stream.write(b"\n".join(lines[number] for number in sorted(lines)))
        os.fchmod(stream.fileno(), path.stat().st_mode & 0o777)


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
