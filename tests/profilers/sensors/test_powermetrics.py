"""Watts of a Mac's processor, from what powermetrics prints on three generations of Macs."""

import os
from pathlib import Path

import pytest

from profilers import running_program
from profilers.file_tree import FileTree
from profilers.sensors import powermetrics
from tests.profilers import macs
from tests.running import HANG_S


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(running_program, "SILENCE_S", HANG_S)  # on a busy machine a program is slow to start
    powermetrics._shared.cache_clear()
    yield
    powermetrics._shared.cache_clear()


@pytest.mark.parametrize(
    "text, watts",
    [(macs.APPLE_POWER, [1.172]), (macs.BIG_SUR_POWER, [0.033]), (macs.INTEL_POWER, [2.48]), ("CPU Power: 1 mW\n", [])],
)
def test_the_package_of_each_generation(text: str, watts: list[float]) -> None:
    found = map(powermetrics.parse, text.splitlines(keepends=True))
    assert [each for each in found if each is not None] == pytest.approx(watts)


@pytest.mark.parametrize("is_root", [True, False])
def test_it_is_read_by_root_or_through_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool) -> None:
    with_sudo = (
        {} if is_root else {"powermetrics": f"{macs.needs_root()}{macs.prints(macs.APPLE_POWER)}exec sleep 60\n"}
    )
    monkeypatch.setenv("PATH", f"{macs.plant(tmp_path, **with_sudo)}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 501)
    found = powermetrics.discover(FileTree("/"))
    assert found.missing == ()
    (sensor,) = found.sensors
    assert (sensor.name, sensor.covers, sensor.read()) == ("powermetrics:package", "cpu", 1.172)
    assert sensor.history(0.0, float("inf"))[1] == [1.172, 1.172]  # one when it was tried, one now
    sensor.close()


def test_a_user_who_may_not_is_told_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = "echo sudo: a password is required >&2\nexit 1\n"
    monkeypatch.setenv("PATH", f"{macs.plant(tmp_path, sudo=refuses)}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 501)
    found = powermetrics.discover(FileTree("/"))
    assert (found.sensors, found.missing) == ((), (("powermetrics:package", powermetrics.NEEDS_ROOT),))


def test_other_machines_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert powermetrics.discover(FileTree("/")).missing == ()
