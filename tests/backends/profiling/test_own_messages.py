"""Messages of a device to itself, after gradients."""

from typing import Any

import pytest

from backends.network import framing
from backends.profiling import message_probe, own_messages
from backends.protocol.orders import LoopbackEnds, ServeMessages
from planner.agents.certificates import Authority
from profilers.records.step_costs import ORDER_BYTES


@pytest.fixture(scope="module")
def ends() -> LoopbackEnds:
    authority = Authority()
    return LoopbackEnds(authority.identity(framing.SERVER), authority.identity("sender"))


def test_an_order_and_a_message_cost_both_ends_and_follow_a_gradient_each(
    ends: LoopbackEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_messages, "LIMIT_S", 1e9)
    gradients: list[None] = []
    found = own_messages.measure(ends, lambda: gradients.append(None), 4_000_000)
    assert [each.message_bytes for each in found] == [ORDER_BYTES, 4_000_000]
    assert all(each.send_cpu_s > 0 and each.receive_cpu_s > 0 and each.seconds > 0 for each in found)
    assert found[1].send_cpu_s > found[0].send_cpu_s
    assert len(gradients) == 2 * own_messages.MOST


def test_after_long_gradients_a_few_messages_are_timed(ends: LoopbackEnds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_messages, "LIMIT_S", -1.0)
    gradients: list[None] = []
    own_messages.measure(ends, lambda: gradients.append(None), 100)
    assert len(gradients) == 2 * own_messages.FEWEST


def test_however_long_a_gradient_takes_messages_are_waited_for(
    ends: LoopbackEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float | None] = []

    def serve(task: Any, order: ServeMessages, silence_s: float | None) -> None:
        limits.append(silence_s)
        message_probe.serve(task, order, silence_s)

    monkeypatch.setattr(own_messages, "serve", serve)
    assert len(own_messages.measure(ends, lambda: None, 100)) == 2
    assert limits == [None]


def test_a_device_that_cannot_reach_itself_has_none(ends: LoopbackEnds) -> None:
    strangers = ends._replace(sender=Authority().identity("sender"))
    assert own_messages.measure(strangers, lambda: None, 100) == ()


def test_nor_has_one_that_cannot_listen(ends: LoopbackEnds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_messages, "LOOPBACK", "192.0.2.1")
    assert own_messages.measure(ends, lambda: None, 100) == ()
