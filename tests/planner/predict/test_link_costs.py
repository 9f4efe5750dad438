"""What exchanges cost on every pair of devices: 1 MB both ways at 100 Mbit/s takes 80 ms each."""

import math

import numpy as np
import pytest

from planner.predict.costs import costs_of
from planner.predict.link_costs import PAYLOAD
from profilers.records.links import IncastProfile
from profilers.records.steps import ORDER_BYTES, MessageCost
from tests.planner import profiles
from tests.planner.profiles import MBIT

TWO = {"a": profiles.device(), "b": profiles.device(profiles.step(0.2))}
THREE = {**TWO, "c": profiles.device()}
#: Processor seconds of one end for an order, where to send and receive a byte takes 3 ns together.
ORDER_S = 3e-9 * ORDER_BYTES


def test_state_travels_with_the_gradients_and_not_with_the_weights() -> None:
    found = costs_of(profiles.profile({name: profiles.device(profiles.step(state_bytes=500_000)) for name in "ab"}))
    assert (found.up_bytes, found.down_bytes) == (1_500_000, 1_000_000)
    assert found.pairs.up_s[0, 1] == pytest.approx(0.12)
    assert found.pairs.down_s[0, 1] == pytest.approx(0.08)


def test_processor_seconds_of_a_co_located_exchange_and_its_order_are_all_the_host_s() -> None:
    names = {"a": profiles.device(), "b": profiles.device()}
    links = profiles.links(names, send_cpu_s=1e-9, receive_cpu_s=2e-9)
    found = costs_of(profiles.profile(names, links=links))
    one_end_s = 0.003 + ORDER_S
    assert found.pairs.worker_cpu_s == pytest.approx(np.array([[0.0, one_end_s], [one_end_s, 0.0]]))
    both_ends_s = 2 * 0.003 + ORDER_S
    assert found.pairs.host_cpu_s == pytest.approx(np.array([[both_ends_s, one_end_s], [one_end_s, both_ends_s]]))


def test_what_a_computation_lacks_is_at_least_what_the_transfer_itself_used() -> None:
    names = {"a": profiles.device(), "b": profiles.device()}
    taken = profiles.links(
        names, send_cpu_s=1e-9, receive_cpu_s=2e-9, send_stolen_cpu_s=5e-10, receive_stolen_cpu_s=7e-9
    )
    found = costs_of(profiles.profile(names, links=taken))
    local_s, remote_s = 0.006 + ORDER_S, 0.008 + ORDER_S
    assert found.pairs.host_stolen_cpu_s == pytest.approx(np.array([[local_s, remote_s], [remote_s, local_s]]))
    untold = profiles.links(names, send_cpu_s=1e-9, receive_cpu_s=2e-9)
    found = costs_of(profiles.profile(names, links=untold))
    assert found.pairs.host_stolen_cpu_s[0, 1] == pytest.approx(0.003 + ORDER_S)


def test_a_what_if_slows_the_links_of_one_device() -> None:
    found = costs_of(profiles.profile(THREE), rates={"a": 10 * MBIT})
    slow_s = 1_000_000 / (10 * MBIT * PAYLOAD)
    assert found.pairs.up_s[0, 1] == found.pairs.up_s[1, 0] == pytest.approx(slow_s)
    assert found.pairs.up_s[1, 2] == pytest.approx(0.08)
    assert found.pairs.up_s[0, 0] == pytest.approx(0.001)
    assert found.devices.in_bytes_per_s == pytest.approx([10 * MBIT * PAYLOAD, 100 * MBIT, 100 * MBIT])


def test_a_declared_rate_is_a_line_rate_like_a_what_if_s_which_replaces_it() -> None:
    devices = {"a": profiles.device(rate_bytes_per_s=10 * MBIT), "b": profiles.device()}
    assert costs_of(profiles.profile(devices)).pairs.up_s[0, 1] == pytest.approx(0.8 / 0.941)
    assert costs_of(profiles.profile(devices), rates={"a": 1000 * MBIT}).pairs.up_s[0, 1] == pytest.approx(0.08)


def test_a_what_if_faster_than_anything_measured_is_said_to_change_nothing() -> None:
    (note,) = costs_of(profiles.profile(TWO), rates={"a": 1000 * MBIT}).notes
    assert note.startswith("--rate a: its links measured 100 Mbit/s at most; a faster network")


def test_of_a_what_if_far_slower_than_anything_measured_it_is_said_what_is_not_known() -> None:
    (note,) = costs_of(profiles.profile(TWO), rates={"a": 20 * MBIT}).notes
    assert note.startswith("--rate a: its links measured 100 Mbit/s at most; on a network more than 4 times slower ")
    assert costs_of(profiles.profile(TWO), rates={"a": 30 * MBIT}).notes == ()


@pytest.mark.parametrize(
    ("together", "expected"),
    [(50 * MBIT, 100 * MBIT), (99 * MBIT, math.inf)],
)
def test_an_incast_shows_what_a_host_s_link_takes(together: float, expected: float) -> None:
    incasts = (IncastProfile("a", "in", "iperf3", {"b": together, "c": together}),)
    found = costs_of(profiles.profile(THREE, incasts=incasts))
    assert found.devices.in_bytes_per_s[0] == pytest.approx(expected)
    assert found.devices.out_bytes_per_s[0] == pytest.approx(100 * MBIT)


def test_a_host_s_link_holds_what_all_peers_of_an_incast_got_also_those_that_are_left_out() -> None:
    devices = {**THREE, "d": profiles.device()._replace(steps=(), error="cannot be reached")}
    incasts = (IncastProfile("a", "in", "iperf3", dict.fromkeys("bcd", 33 * MBIT)),)
    found = costs_of(profiles.profile(devices, incasts=incasts))
    assert found.names == ("a", "b", "c")
    assert found.devices.in_bytes_per_s[0] == pytest.approx(99 * MBIT)


@pytest.mark.parametrize("incasts", [(), (IncastProfile("a", "in", "iperf3", dict.fromkeys("bc", 50 * MBIT)),)])
def test_a_what_if_on_peers_leaves_the_host_s_own_link_as_it_is(incasts: tuple[IncastProfile, ...]) -> None:
    found = costs_of(profiles.profile(THREE, incasts=incasts), rates={"b": 10 * MBIT, "c": 10 * MBIT})
    assert found.devices.in_bytes_per_s[0] == pytest.approx(100 * MBIT)
    assert found.pairs.up_s[1, 0] == pytest.approx(1_000_000 / (10 * MBIT * PAYLOAD))
    slower = costs_of(profiles.profile(THREE, incasts=incasts), rates={"a": 10 * MBIT})
    assert slower.devices.in_bytes_per_s[0] == pytest.approx(10 * MBIT * PAYLOAD)


def test_what_a_device_sends_to_itself_costs_what_it_does_after_gradients_where_that_is_known() -> None:
    messages = (MessageCost(ORDER_BYTES, 1e-4, 2e-4), MessageCost(1_000_000, 3e-3, 5e-3))
    names = {"a": profiles.device(profiles.step(messages=messages)), "b": profiles.device()}
    links = profiles.links(names, send_cpu_s=1e-9, receive_cpu_s=2e-9)
    found = costs_of(profiles.profile(names, links=links)).pairs
    assert found.order_cpu_s[0, 0] == pytest.approx(3e-4)
    assert found.order_cpu_s[1, 1] == pytest.approx(ORDER_S)
    assert found.host_cpu_s[0, 0] == pytest.approx(2 * 8e-3 + 3e-4)
    assert found.worker_cpu_s[0, 1] == pytest.approx(0.003 + 3e-4)
    assert found.worker_cpu_s[1, 0] == pytest.approx(0.003 + ORDER_S)
