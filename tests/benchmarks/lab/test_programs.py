"""What a lab lacks on this machine is named with its remedy."""

import os

import pytest

from benchmarks.lab import programs
from benchmarks.lab.errors import LabError


def test_missing_programs_are_named_with_the_packages_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs, "find_program", lambda name: None if name in ("ip", "tc", "sshd") else name)
    with pytest.raises(LabError, match="not installed: ip, tc, sshd; remedy: apt install iproute2 openssh-server$"):
        programs.require_machine()
