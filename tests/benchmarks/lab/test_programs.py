"""What a lab lacks on this machine is named with its remedy."""

import os
import sys

import pytest

from benchmarks.lab import programs
from benchmarks.lab.errors import LabError


def test_a_program_that_fails_is_named_with_what_it_said() -> None:
    assert programs.run_program("sh", "-c", "echo made") == "made\n"
    with pytest.raises(LabError, match="`sh -c echo no room >&2; exit 3` failed: no room"):
        programs.run_program("sh", "-c", "echo no room >&2; exit 3")
    with pytest.raises(LabError, match="failed: exit status 3"):
        programs.run_program("sh", "-c", "exit 3")


def test_missing_programs_are_named_with_the_packages_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs, "find_program", lambda name: None if name in ("ip", "tc", "sshd") else name)
    with pytest.raises(LabError, match="not installed: ip, tc, sshd; remedy: apt install iproute2 openssh-server$"):
        programs.require_machine()


def test_an_ordinary_user_and_another_system_hear_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="sudo"):
        programs.require_machine()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(LabError, match="needs Linux, this is darwin"):
        programs.require_machine()
