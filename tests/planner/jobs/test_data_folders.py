"""Data that lie on devices are compared before a run."""

from typing import Any

import pytest

from backends.protocol.events import FolderContent
from backends.protocol.orders import SurveyData
from planner.errors import RunError
from planner.fleet.device import Device
from planner.jobs.data_folders import require_equal_data

SAME = FolderContent(3, 60, "abc")


class Agent:
    """Answers what a folder of its device holds."""

    def __init__(self, content: FolderContent) -> None:
        self._content = content
        self.asked: list[str] = []

    def call(self, order: SurveyData, limit_s: float) -> FolderContent:
        self.asked.append(order.path)
        return self._content


def fleet(*contents: FolderContent) -> tuple[Any, dict[str, Device]]:
    """Devices d0, d1, ... with their data at /set/0, /set/1, ..."""
    agents = {f"d{number}": Agent(content) for number, content in enumerate(contents)}
    return agents, {name: Device(name=name, data=f"/set/{name[1:]}") for name in agents}


def test_equal_data_at_different_places_are_fine() -> None:
    agents, devices = fleet(SAME, SAME)
    require_equal_data(agents, devices)
    assert [agent.asked for agent in agents.values()] == [["/set/0"], ["/set/1"]]


@pytest.mark.parametrize("other", [SAME._replace(files=2), SAME._replace(bytes=59), SAME._replace(hash="abd")])
def test_what_differs_is_told_of_each_device(other: FolderContent) -> None:
    agents, devices = fleet(SAME, other)
    with pytest.raises(RunError) as failure:
        require_equal_data(agents, devices)
    told = str(failure.value)
    assert "d0: /set/0 has 3 files, 60 bytes, hash abc" in told
    assert f"d1: /set/1 has {other.files} files, {other.bytes} bytes, hash {other.hash}" in told
