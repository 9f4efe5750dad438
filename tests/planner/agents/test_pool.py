"""Agents on devices of this machine."""

import sys
from collections.abc import Iterator

import pytest

from backends.protocol.orders import ReadClock
from planner.agents.pool import AgentPool
from planner.fleet.device import Device, Interpreter
from tests.running import HANG_S

A, B = (Device(name=name, interpreter=Interpreter(sys.executable)) for name in "ab")


@pytest.fixture
def pool() -> Iterator[AgentPool]:
    with AgentPool() as made:
        yield made


def test_who_is_there_already_stays_when_others_are_reached(pool: AgentPool) -> None:
    pool.open([A])
    first = pool.agents["a"]
    pool.open([B])
    pool.open([])
    assert pool.agents["a"] is first and first.call(ReadClock()) and pool.agents["b"].call(ReadClock())
    assert pool.errors == {}


def test_a_pool_that_was_lent_comes_back_with_the_agents_it_had(pool: AgentPool) -> None:
    pool.open([A])
    before = pool.another("a")
    with pool.lent():
        extra = pool.another("a")
    assert pool.agents["a"].call(ReadClock()) and before.call(ReadClock())
    with pytest.raises(Exception, match="a: "):
        extra.call(ReadClock(), timeout_s=HANG_S)


def test_who_was_lost_is_reached_again(pool: AgentPool) -> None:
    pool.open([A, B])
    lost, stays = pool.agents["a"], pool.agents["b"]
    lost.close()
    pool.open([A, B])
    assert pool.agents["b"] is stays and pool.agents["a"] is not lost
    assert pool.agents["a"].call(ReadClock()) and stays.call(ReadClock())


def test_agents_that_were_started_again_and_again_are_not_all_kept(pool: AgentPool) -> None:
    pool.open([A])
    for _ in range(2):
        pool.another("a").close()
    last = pool.another("a")
    assert pool._extra == [last]
