"""A fault comes at its moment, and when what it is for is there."""

from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos import injection, scenario
from tests.chaos.injection import Injector
from tests.chaos.scenario import Fault, Scenario


@pytest.mark.parametrize(("of_host", "processes", "is_due"), [(False, 1, True), (True, 1, False), (True, 2, True)])
def test_a_fault_of_the_host_at_the_start_waits_for_the_host(
    of_host: bool, processes: int, is_due: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(scenario.KILL, "anna", of_host, 0.0, 1.0)
    case = Scenario(1, "planner", "allreduce", ("anna", "bert"), 100, 10, fault, (0.02, 0.06))
    hurt: list[int] = []
    monkeypatch.setattr(injection, "agents", lambda folder, name: list(range(100, 100 + processes)))
    monkeypatch.setattr(injection, "signal_one", lambda process, number: hurt.append(process))
    injector = Injector(case, tmp_path, cast(Any, None), cast(Any, None))
    injector.look()
    assert (injector.at_s is not None, hurt) == (is_due, [100 + of_host] if is_due else [])
