"""A server keeps what workers give to one another until the receivers' next steps."""

import numpy as np
import pytest

from backends.protocol.frames import SharedSamples
from backends.server.sample_forwarding import ForwardedSamples, SampleForwarding


def samples(step: int, count: int = 2) -> ForwardedSamples:
    return ForwardedSamples(SharedSamples(step, (1,) * count), np.zeros(count, np.uint8))


def most(name: str) -> int:
    return {"a": 4, "b": 4, "c": 1}[name]


@pytest.fixture
def forwarding() -> SampleForwarding:
    made = SampleForwarding()
    made.set_members(("a", "b", "c"))
    return made


def steps(forwarding: SampleForwarding, name: str) -> list[int]:
    return [each.head.step for each in forwarding.take(name)]


def test_each_receiver_gets_them_once(forwarding: SampleForwarding) -> None:
    forwarding.add(("a", "b"), samples(1), most)
    assert (steps(forwarding, "a"), steps(forwarding, "b"), steps(forwarding, "c")) == ([1], [1], [])
    assert steps(forwarding, "a") == []


def test_a_slow_worker_gets_the_newest_that_a_batch_has_room_for(forwarding: SampleForwarding) -> None:
    for step in range(5):
        forwarding.add(("a", "c"), samples(step), most)
    assert steps(forwarding, "a") == [3, 4]
    assert steps(forwarding, "c") == [4]


def test_who_has_left_gets_nothing_and_who_stays_keeps_what_waits(forwarding: SampleForwarding) -> None:
    forwarding.add(("a", "b"), samples(1), most)
    forwarding.set_members(("a", "c"))
    forwarding.add(("b",), samples(2), most)
    forwarding.set_members(("a", "b", "c"))
    assert (steps(forwarding, "a"), steps(forwarding, "b")) == ([1], [])
