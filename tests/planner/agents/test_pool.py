"""Agents on devices of this machine."""

import sys
from collections.abc import Iterator

import pytest

from backends.protocol.orders import ReadClock
from planner.agents.pool import AgentPool
from planner.fleet.device import Device

A, B = (Device(name=name, python=sys.executable) for name in "ab")


@pytest.fixture
def crew() -> Iterator[AgentPool]:
    with AgentPool() as made:
        yield made


def test_who_is_there_already_stays_when_others_are_reached(crew: AgentPool) -> None:
    crew.open([A])
    first = crew.agents["a"]
    crew.open([B])
    crew.open([])
    assert crew.agents["a"] is first and first.call(ReadClock()) and crew.agents["b"].call(ReadClock())
    assert crew.errors == {}


def test_a_crew_that_was_lent_comes_back_with_the_agents_it_had(crew: AgentPool) -> None:
    crew.open([A])
    before = crew.another("a")
    with crew.lent():
        extra = crew.another("a")
    assert crew.agents["a"].call(ReadClock()) and before.call(ReadClock())
    with pytest.raises(Exception, match="a: "):
        extra.call(ReadClock(), timeout_s=10.0)
