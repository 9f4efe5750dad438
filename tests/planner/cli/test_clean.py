"""`planner clean` on devices of this machine, over SSH, and on one that is off."""

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from backends.agent.claims import Claims
from profilers.addresses_and_ports import free_port
from tests.planner.cli.commands import Planner
from tests.planner.screens import row
from tests.sshserver import ssh_server, write_key

DATA, OTHER, PROJECT = "data-0123456789abcdef.npz", "data-fedcba9876543210.npz", "project-0123456789abcdef"
OFF = "planner: off: nothing listens at 127.0.0.1:"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's cache, with images in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    return left(tmp_path / "here" / "planner", DATA, 2000)


@pytest.fixture(autouse=True)
def remote(planner: Planner, tmp_path: Path, client_key: paramiko.PKey) -> Iterator[Path]:
    """A fleet of this machine, a device behind SSH and one that is off; the second's cache."""
    write_key(client_key, tmp_path / "id_test")
    with ssh_server(client_key) as server:
        (tmp_path / "known_hosts").write_text(server.known_line())
        (tmp_path / "config").write_text(f"Host *\n  UserKnownHostsFile {tmp_path}/known_hosts\n")
        entry = f'python = "{sys.executable}"\nkey = "id_test"\n'
        cache = f'environment = {{ XDG_CACHE_HOME = "{tmp_path}/remote" }}\n'
        (tmp_path / "fleet.toml").write_text(
            f'ssh_config = "config"\n[devices.local]\naddress = "local"\npython = "{sys.executable}"\n'
            f'[devices.remote]\naddress = "someone@127.0.0.1:{server.port}"\n{entry}{cache}'
            f'[devices.off]\naddress = "someone@127.0.0.1:{free_port()}"\n{entry}{cache}'
        )
        yield left(tmp_path / "remote" / "planner", PROJECT + "/net.pt", 3000)


def left(cache: Path, name: str, size: int) -> Path:
    """The cache, with a file of that size."""
    (cache / name).parent.mkdir(parents=True)
    (cache / name).write_bytes(bytes(size))
    return cache


def test_everything_but_run_folders_is_removed(planner: Planner, here: Path, remote: Path, tmp_path: Path) -> None:
    left(tmp_path / "runs", "2026-01-31T12-00-00-cipher/checkpoint.npz", 10)
    ran = planner("clean", "--yes")
    assert ran.code == 1
    (problem,) = ran.err.splitlines()
    assert problem.startswith(OFF)
    assert ran.out.startswith("left by planner: 5.00 kB to remove")
    assert row(ran.out, "this machine, local").split()[3:5] == ["images", DATA]
    assert row(ran.out, "remote").split()[-5:-3] == [PROJECT, "3.00"]
    assert ran.out.endswith("removed 5.00 kB\n")
    assert not here.exists() and not remote.exists()
    assert (tmp_path / "runs" / "2026-01-31T12-00-00-cipher" / "checkpoint.npz").exists()
    again = planner("clean", "--yes", "--device", "remote")
    assert (again.code, again.out, again.err) == (0, "nothing to remove\n", "")
    assert not remote.exists()


def test_one_device_is_cleaned_alone(planner: Planner, here: Path, remote: Path) -> None:
    ran = planner("clean", "--yes", "--device", "remote")
    assert (ran.code, ran.err) == (0, "")
    assert (here / DATA).exists() and not remote.exists()
    assert planner("clean", "--device", "nano").problem().startswith('fleet.toml: no device "nano"')


def test_a_dry_run_removes_nothing(planner: Planner, here: Path, remote: Path) -> None:
    ran = planner("clean", "--dry-run", "--device", "remote", "--json")
    (cache,) = json.loads(ran.out)["caches"]
    assert (cache["devices"], cache["folder"]) == (["remote"], str(remote))
    (entry,) = cache["entries"]
    assert (entry["name"], entry["size_bytes"], entry["in_use"]) == (PROJECT, 3000, False)
    assert json.loads(ran.out)["removed"] == {}
    assert (remote / PROJECT / "net.pt").exists()


def test_it_asks_before_it_removes(planner: Planner, remote: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    ran = planner("clean", "--device", "remote")
    assert ran.out.endswith("Remove it? [y/N]: ")
    assert (ran.code, ran.err) == (1, "planner: nothing was removed\n")
    assert (remote / PROJECT).exists()
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert planner("clean", "--device", "remote").code == 0
    assert not remote.exists()


def test_what_a_run_uses_is_kept_and_told(planner: Planner, remote: Path) -> None:
    (remote / OTHER).write_bytes(bytes(500))
    claims = Claims(str(remote))
    claims.add(PROJECT)
    ran = planner("clean", "--yes", "--device", "remote")
    assert ran.code == 0
    assert [line.endswith("in use: kept") for line in ran.out.splitlines() if PROJECT in line] == [True]
    assert f"remote: a run under way uses some of {remote}" in ran.out
    assert ran.out.endswith("removed 500 B\n")
    assert sorted(name.partition("-")[0] for name in os.listdir(remote)) == ["claims", "project"]
    claims.release()
