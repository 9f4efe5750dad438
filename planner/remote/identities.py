"""Identities are the keys to log in with: files first, then those of the SSH agent."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.pkey import UnknownKeyType

from planner.remote.ssh_config import SshTarget

Labelled = tuple[str, paramiko.PKey]


@contextmanager
def identities(hop: SshTarget) -> Iterator[tuple[Sequence[Labelled], Sequence[str]]]:
    """Keys to try at a host, each with a name for messages, and why other files are unusable."""
    keys: list[Labelled] = []
    unusable: list[str] = []
    for path in hop.key_files:
        try:
            keys.append((str(path), paramiko.PKey.from_path(path)))
        except FileNotFoundError:
            continue
        except (TypeError, paramiko.PasswordRequiredException):  # raised by cryptography and paramiko
            unusable.append(f"{path} needs a passphrase: `ssh-add {path}`")
        except (paramiko.SSHException, UnknownKeyType, UnsupportedAlgorithm, ValueError, OSError) as error:
            unusable.append(f"{path} is no usable private key ({error or type(error).__name__})")
    agent = paramiko.Agent()
    try:
        keys += _of_agent(agent, hop, {key.asbytes() for _, key in keys})
        yield keys, unusable
    finally:
        agent.close()


def _of_agent(agent: paramiko.Agent, hop: SshTarget, tried: set[bytes]) -> list[Labelled]:
    """The agent's keys; with IdentitiesOnly, only those whose .pub file is named."""
    named = {blob for path in hop.key_files for blob in _public(path)}
    return [
        (f"the agent's {key.get_name()}", key)
        for key in agent.get_keys()
        if key.asbytes() not in tried and (not hop.identities_only or key.asbytes() in named)
    ]


def _public(path: Path) -> Iterator[bytes]:
    with suppress(OSError, ValueError, IndexError):
        yield base64.b64decode(path.with_name(path.name + ".pub").read_text().split()[1])
