"""A client's key, and the targets that lead to servers of the test."""

from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest

from planner.remote.ssh_config import SshTarget
from tests.sshserver import SshServer, new_key, write_key

MakeTarget = Callable[..., SshTarget]


@pytest.fixture(scope="session")
def client_key() -> paramiko.PKey:
    return new_key()


@pytest.fixture
def key_file(client_key: paramiko.PKey, tmp_path: Path) -> Path:
    return write_key(client_key, tmp_path / "id_test")


@pytest.fixture
def known_hosts(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


@pytest.fixture
def target_of(key_file: Path, known_hosts: Path) -> MakeTarget:
    """The way to a server, its host key on record unless ``known`` is another text."""

    def make(server: SshServer, known: str | None = None, **changes: object) -> SshTarget:
        with known_hosts.open("a") as file:
            file.write(server.known_line() if known is None else known)
        target = SshTarget(
            alias="device",
            hostname="127.0.0.1",
            port=server.port,
            user="someone",
            key_files=(key_file,),
            known_hosts=(known_hosts,),
            identities_only=True,
        )
        return target._replace(**changes)

    return make
