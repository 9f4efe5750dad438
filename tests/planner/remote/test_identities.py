"""Keys to log in with: files first, then those of the SSH agent."""

from pathlib import Path
from typing import Any

import paramiko
import pytest

from planner.remote.identities import identities
from planner.remote.ssh_config import SshTarget
from tests.sshserver import new_key


class FakeAgent:
    """An SSH agent that holds these keys."""

    def __init__(self, *keys: paramiko.PKey) -> None:
        self._keys = keys
        self.problem: str | None = None
        self.closed = False

    def get_keys(self) -> tuple[paramiko.PKey, ...]:
        return self._keys

    def close(self) -> None:
        self.closed = True


def target(*files: Path, **changes: Any) -> SshTarget:
    return SshTarget("tx2", "tx2", 22, "me", files, (), **changes)


def key_file(path: Path, passphrase: str | None = None) -> paramiko.PKey:
    """A new key in a file, with its public half beside it."""
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(path), passphrase)
    path.with_name(path.name + ".pub").write_text(f"{key.get_name()} {key.get_base64()} me\n")
    return key


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    made = FakeAgent(new_key())
    monkeypatch.setattr("planner.remote.identities.SshAgent", lambda path: made)
    return made


def test_files_come_before_the_agents_keys_and_the_agent_is_closed(tmp_path: Path, agent: FakeAgent) -> None:
    in_file = key_file(tmp_path / "id")
    with identities(target(tmp_path / "id")) as (keys, unusable):
        assert [key.asbytes() for _, key in keys] == [in_file.asbytes(), agent.get_keys()[0].asbytes()]
        assert keys[0][0] == str(tmp_path / "id") and keys[1][0].startswith("the agent's ")
        assert not unusable
    assert agent.closed


def test_an_absent_file_is_passed_over_and_an_unusable_one_has_a_reason(tmp_path: Path, agent: FakeAgent) -> None:
    key_file(tmp_path / "locked", "secret")
    (tmp_path / "text").write_text("no key")
    files = (tmp_path / "absent", tmp_path / "locked", tmp_path / "text")
    with identities(target(*files)) as (keys, (locked, text)):
        assert len(keys) == 1
    assert locked == f"{tmp_path / 'locked'} needs a passphrase: `ssh-add {tmp_path / 'locked'}`"
    assert text.startswith(f"{tmp_path / 'text'} is no usable private key (")


def test_with_identities_only_the_agent_offers_no_key_that_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = key_file(tmp_path / "id", "secret")
    monkeypatch.setattr("planner.remote.identities.SshAgent", lambda path: FakeAgent(new_key(), named))
    with identities(target(tmp_path / "id", identities_only=True)) as (keys, _):
        assert [key.asbytes() for _, key in keys] == [named.asbytes()]


def test_a_key_in_a_file_and_in_the_agent_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_file(tmp_path / "id")
    monkeypatch.setattr("planner.remote.identities.SshAgent", lambda path: FakeAgent(key))
    with identities(target(tmp_path / "id")) as (keys, _):
        assert [label for label, _ in keys] == [str(tmp_path / "id")]
