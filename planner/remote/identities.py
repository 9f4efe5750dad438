"""Identities are the keys to log in with: those of named files, then others of the SSH agent."""

import base64
import copy
import io
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from planner.remote.ssh_config import SshTarget

Labelled = tuple[str, paramiko.PKey]
_CERTIFICATE = "-cert-v01@openssh.com"
#: Seconds in which an agent tells its keys.
ANSWER_S = 5.0
_OPENSSH_KEY = b"openssh-key-v1\0"


class SshAgent(AgentSSH):
    """The SSH agent behind a socket; without keys where nobody answers there.

    problem: why one that is there is of no use.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self.problem: str | None = None
        self._link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if path is None:
            return
        self._link.settimeout(ANSWER_S)
        try:
            self._link.connect(str(path))
            self._connect(self._link)  # type: ignore[attr-defined]  # the stubs leave it out
            self._link.settimeout(None)  # a signature may wait for a person
        except TimeoutError:
            self.problem = f"the SSH agent {path} does not answer within {ANSWER_S:g} s: restart it"
        except (OSError, paramiko.SSHException):  # the agent is gone
            pass

    def close(self) -> None:
        """Close the connection; a thread that waits for a signature returns."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._link.close()


@contextmanager
def identities(hop: SshTarget) -> Iterator[tuple[Sequence[Labelled], Sequence[str]]]:
    """Keys to try at a host, each with a name for messages, and why other files are unusable.

    A file that holds a public key, or a private one that is locked, stands for the agent's key.
    """
    agent = SshAgent(hop.agent)
    try:
        held = {_blob(key): (f"the agent's {key.get_name()}", _certified_by_agent(key)) for key in agent.get_keys()}
        keys: dict[bytes, Labelled] = {}
        unusable = [agent.problem] if agent.problem else []
        for path in hop.key_files:
            loaded, problem = _of_file(path)
            if loaded is not None:
                keys.setdefault(loaded.asbytes(), (str(path), loaded))
            elif (named := _public(path)) in held:
                keys.setdefault(named, held[named])
            elif problem:
                unusable.append(problem)
        certified = list(_certified(hop, {**held, **keys}))
        if not hop.identities_only:
            keys = {**keys, **{blob: labelled for blob, labelled in held.items() if blob not in keys}}
        yield [*certified, *keys.values()], unusable
    finally:
        agent.close()


def _of_file(path: Path) -> tuple[paramiko.PKey | None, str | None]:
    """The private key in a file, or why it is of no use; neither where there is no such file."""
    try:
        key = _of_pkcs8(path) or paramiko.PKey.from_path(path)
        key.public_blob = None  # its certificate comes as a key of its own
        return key, None
    except FileNotFoundError:
        return None, None
    except (TypeError, paramiko.PasswordRequiredException):  # raised by cryptography and paramiko
        return None, f"{path} needs a passphrase: `ssh-add {path}`"
    except (paramiko.SSHException, UnknownKeyType, UnsupportedAlgorithm, ValueError, OSError) as error:
        if _public_in(path):
            return None, f"{path} is a public key, and the agent does not hold its private one: `ssh-add` that"
        return None, f"{path} is no usable private key ({error or type(error).__name__})"


def _of_pkcs8(path: Path) -> paramiko.PKey | None:
    """The key in a file of the format PKCS#8, which ssh reads and paramiko does not."""
    data = path.read_bytes()
    if b"-BEGIN PRIVATE KEY-" not in data:
        return None
    key = serialization.load_pem_private_key(data, None)
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    text = key.private_bytes(*plain).decode()
    for kind in (paramiko.RSAKey, paramiko.ECDSAKey, paramiko.Ed25519Key):
        with suppress(paramiko.SSHException):  # it is of another kind
            return kind.from_private_key(io.StringIO(text))
    return None


def _blob(key: paramiko.PKey) -> bytes:
    """The public half, which is a certificate for a certificate of the agent."""
    return getattr(key, "blob", b"") or key.asbytes()


def _certified_by_agent(key: paramiko.PKey) -> paramiko.PKey:
    """A key of the agent, which says in paramiko's way whether it is a certificate."""
    key.public_blob = getattr(getattr(key, "inner_key", None), "public_blob", None)
    return key


def _certified(hop: SshTarget, keys: Mapping[bytes, Labelled]) -> Iterator[Labelled]:
    """Keys with the certificates that are named, or lie beside a named key."""
    beside = (path.with_name(path.name.removesuffix(".pub") + "-cert.pub") for path in hop.key_files)
    for path in dict.fromkeys((*hop.certificates, *beside)):
        with suppress(OSError, ValueError, paramiko.SSHException, UnknownKeyType):
            certificate = PublicBlob.from_file(str(path))
            kind = certificate.key_type.removesuffix(_CERTIFICATE)
            plain = paramiko.PKey.from_type_string(kind, certificate.key_blob).asbytes()
            if plain in keys:
                yield str(path), _with(keys[plain][1], certificate)


def _with(key: paramiko.PKey, certificate: PublicBlob) -> paramiko.PKey:
    """A copy of a key that shows a certificate."""
    made = AgentKey(key.agent, key.blob, key.comment) if isinstance(key, AgentKey) else copy.copy(key)
    made.public_blob = certificate
    return made


def _public(path: Path) -> bytes | None:
    """The public half of a key file: itself, beside it, or at the start of a locked one."""
    return _public_in(path) or _public_in(path.with_name(path.name + ".pub")) or _public_of_locked(path)


def _public_in(path: Path) -> bytes | None:
    with suppress(OSError, ValueError):
        return bytes(PublicBlob.from_file(str(path)).key_blob)
    return None


def _public_of_locked(path: Path) -> bytes | None:
    """What OpenSSH's format of private keys does not encrypt."""
    with suppress(OSError, ValueError):
        text = path.read_text().partition("KEY-----")[2].partition("-----END")[0]
        data = base64.b64decode(text)
        if data.startswith(_OPENSSH_KEY):
            message = paramiko.Message(data[len(_OPENSSH_KEY) :])
            for _ in range(3):  # cipher, key derivation and its options
                message.get_string()
            message.get_int()  # number of keys
            return bytes(message.get_string())
    return None
