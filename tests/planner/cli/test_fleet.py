"""`planner init`, `check` and `trust` as the operator meets them."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import typer

from planner.remote import ssh_login
from planner.remote.known_hosts import HostKey, store
from tests.planner.cli.commands import LOCAL, Planner


def test_init_writes_a_fleet_file_once(planner: Planner) -> None:
    assert "planner check" in planner("init").out
    written = Path("fleet.toml").read_text()
    assert "[devices." in written
    assert planner("init").problem() == "fleet.toml exists already; name another file or remove it first"
    assert Path("fleet.toml").read_text() == written


class HostKeys(NamedTuple):
    """A host whose key is on record, and the key that it shows."""

    stored: HostKey
    shown: HostKey

    @property
    def file(self) -> str:
        return self.shown.files[0].read_text()


@pytest.fixture
def changed(planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostKeys:
    """A host that shows another key than the one on record."""
    files = (tmp_path / "known_hosts",)
    keys = HostKeys(*(HostKey("tx2", "tx2.lan", "ssh-ed25519", key, files) for key in ("AAAA", "BBBB")))
    store(keys.stored)
    monkeypatch.setattr(ssh_login, "fetch_host_key", lambda device: keys.shown)
    return keys


def answer(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{said}\n"))


def test_an_unknown_key_is_stored_where_the_operator_agrees(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed.shown.files[0].unlink()
    answer(monkeypatch, "n")
    asked = planner("trust", "tx2.lan")
    assert changed.shown.fingerprint in asked.out
    assert (asked.code, asked.err) == (1, "planner: the key of tx2.lan was not stored\n")
    answer(monkeypatch, "y")
    assert planner("trust", "tx2.lan").out.endswith("stored\n")
    assert "BBBB" in changed.file
    assert "was known already" in planner("trust", "tx2.lan").out


def test_without_an_answer_nothing_is_stored(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = changed.file
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    asked = planner("trust", "tx2.lan")
    assert asked.code == 1
    assert "Nobody answers, as standard input has ended; --replace answers yes" in asked.err
    assert changed.file == before


@pytest.mark.parametrize("raised", [KeyboardInterrupt, typer.Abort])
def test_ctrl_c_at_a_question_is_no_traceback(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    def interrupt() -> str:
        raise raised

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(readline=interrupt))
    asked = planner("trust", "tx2.lan")
    assert (asked.code, asked.err) == (130, "planner: stopped\n")


def test_a_changed_key_is_told_as_such_before_anything_is_asked(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = changed.file
    answer(monkeypatch, "n")
    asked = planner("trust", "tx2.lan")
    warning, stored, shown, *_ = asked.out.splitlines()
    assert warning == "WARNING: the host key of tx2.lan has changed"
    assert changed.stored.fingerprint in stored and "known_hosts:1" in stored
    assert changed.shown.fingerprint in shown
    assert asked.out.index("WARNING") < asked.out.index("Replace the stored one?")
    assert (asked.code, changed.file) == (1, before)


def test_a_changed_key_is_replaced_by_a_yes_to_just_that_or_by_its_own_option(
    planner: Planner, changed: HostKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = changed.file
    refused = planner("trust", "--yes", "tx2.lan")
    assert (refused.code, changed.file) == (1, before)
    assert "--yes does not replace it, --replace does" in refused.err
    answer(monkeypatch, "y")
    assert planner("trust", "tx2.lan").code == 0
    replaced = changed.file
    assert "BBBB" in replaced and "AAAA" not in replaced
    changed.shown.files[0].write_text(before)
    assert planner("trust", "--replace", "tx2.lan").code == 0
    assert changed.file == replaced


def test_trust_needs_an_address(planner: Planner) -> None:
    assert 'write [user@]host[:port], or "local"' in planner("trust", "a b").problem()


def test_trust_of_this_machine_means_nothing(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    assert "no host key to trust" in planner("trust", "a").problem()


@pytest.mark.parametrize("command", ["check", "profile", "train"])
def test_a_missing_fleet_file_is_named_with_the_remedy(planner: Planner, command: str) -> None:
    problem = planner(command, "--fleet", "none.toml").problem()
    assert problem == "none.toml: no such fleet file; `planner init` writes an example to edit"
