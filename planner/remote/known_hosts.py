"""Host keys are verified against known_hosts files (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from planner.errors import HostKeyError


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


def verify(host_key: HostKey) -> None:
    """Compare a host key with those on record.

    Raises UnknownHostKeyError where there is none, ChangedHostKeyError where the key differs,
    HostKeyError where it is revoked.
    """
    known = known_keys(host_key.name, host_key.files)
    revoked = [key for key in known if key.marker == "@revoked" and key.base64 == host_key.base64]
    if revoked:
        raise HostKeyError(
            f"{host_key.device}: {host_key.name} shows a host key that {revoked[0].path}:{revoked[0].line} "
            f"revokes ({host_key.fingerprint}); give the device a new one with ssh-keygen -A"
        )
    plain = [key for key in known if not key.marker]
    if any(key.base64 == host_key.base64 for key in plain):
        return
    if not plain:
        raise UnknownHostKeyError(host_key)
    old = next((key for key in plain if key.type == host_key.type), plain[0])
    raise ChangedHostKeyError(host_key, old)


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
    except (FileNotFoundError, NotADirectoryError):
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
