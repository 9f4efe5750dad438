"""What exchanges cost on every pair of devices: 1 MB both ways at 100 Mbit/s takes 80 ms each."""

import math

import numpy as np
import pytest

from planner.predict.inputs import Inputs
from planner.predict.links import PAYLOAD
from profilers.records.links import CurvePoint, IncastProfile
from profilers.records.readings import Samples
from tests.planner import profiles
from tests.planner.predictions import inputs_of, training_of
from tests.planner.profiles import MBIT

TWO = {"a": profiles.device(), "b": profiles.device(profiles.step(0.2))}
THREE = {**TWO, "c": profiles.device()}


def up_s(found: Inputs) -> np.ndarray:
    return found.pairs.seconds(found.message.up)


def test_state_travels_with_the_gradients_and_not_with_the_weights() -> None:
    found = inputs_of(profiles.profile({name: profiles.device(profiles.step(state_bytes=500_000)) for name in "ab"}))
    assert (found.message.up, found.message.down) == (1_500_000, 1_000_000)
    assert found.pairs.seconds(found.message.up)[0, 1] == pytest.approx(0.12)


def test_a_what_if_slows_the_links_of_one_device() -> None:
    found = inputs_of(profiles.profile(THREE), rates={"a": 10 * MBIT})
    slow_s = 1_000_000 / (10 * MBIT * PAYLOAD)
    assert up_s(found)[0, 1] == up_s(found)[1, 0] == pytest.approx(slow_s)
    assert up_s(found)[1, 2] == pytest.approx(0.08)
    assert up_s(found)[0, 0] == pytest.approx(0.001)
    assert found.devices.in_bytes_per_s == pytest.approx([10 * MBIT * PAYLOAD, 100 * MBIT, 100 * MBIT])


def test_a_what_if_faster_than_anything_measured_is_said_to_change_nothing() -> None:
    (note,) = training_of(profiles.profile(TWO), rates={"a": 1000 * MBIT}).notes
    assert note.startswith("--rate a: its links measured 100 Mbit/s at most; a faster network")


def test_of_a_what_if_far_slower_than_anything_measured_it_is_said_what_is_not_known() -> None:
    (note,) = training_of(profiles.profile(TWO), rates={"a": 20 * MBIT}).notes
    assert note.startswith("--rate a: its links measured 100 Mbit/s at most; on a network more than 4 times slower ")
    assert training_of(profiles.profile(TWO), rates={"a": 30 * MBIT}).notes == ()


@pytest.mark.parametrize(
    ("together", "expected"),
    [(50 * MBIT, 100 * MBIT), (99 * MBIT, math.inf)],
)
def test_an_incast_shows_what_a_host_s_link_takes(together: float, expected: float) -> None:
    incasts = (IncastProfile("a", "in", "iperf3", {"b": together, "c": together}),)
    found = inputs_of(profiles.profile(THREE, incasts=incasts))
    assert found.devices.in_bytes_per_s[0] == pytest.approx(expected)
    assert found.devices.out_bytes_per_s[0] == pytest.approx(100 * MBIT)


def test_a_host_s_link_holds_what_all_peers_of_an_incast_got_also_those_that_are_left_out() -> None:
    devices = {**THREE, "d": profiles.device()._replace(steps=(), error="cannot be reached")}
    incasts = (IncastProfile("a", "in", "iperf3", dict.fromkeys("bcd", 33 * MBIT)),)
    found = inputs_of(profiles.profile(devices, incasts=incasts))
    assert found.names == ("a", "b", "c")
    assert found.devices.in_bytes_per_s[0] == pytest.approx(99 * MBIT)


@pytest.mark.parametrize("incasts", [(), (IncastProfile("a", "in", "iperf3", dict.fromkeys("bc", 50 * MBIT)),)])
def test_a_what_if_on_peers_leaves_the_host_s_own_link_as_it_is(incasts: tuple[IncastProfile, ...]) -> None:
    found = inputs_of(profiles.profile(THREE, incasts=incasts), rates={"b": 10 * MBIT, "c": 10 * MBIT})
    assert found.devices.in_bytes_per_s[0] == pytest.approx(100 * MBIT)
    assert up_s(found)[1, 0] == pytest.approx(1_000_000 / (10 * MBIT * PAYLOAD))
    slower = inputs_of(profiles.profile(THREE, incasts=incasts), rates={"a": 10 * MBIT})
    assert slower.devices.in_bytes_per_s[0] == pytest.approx(10 * MBIT * PAYLOAD)


def test_processor_time_is_a_part_for_any_message_and_one_for_each_byte() -> None:
    """To send takes 1 ms and 2 ns a byte, to receive 3 ns a byte."""
    points = tuple(CurvePoint(size, Samples("s", ()), 1e-3 + 2e-9 * size, 3e-9 * size) for size in (1000, 10**5, 10**7))
    links = profiles.links("ab", curve=points, send_stolen_cpu_s=1e-9, receive_stolen_cpu_s=5e-9)
    pairs = inputs_of(profiles.profile(TWO, links=links)).pairs
    assert pairs.sending_s(1_000_000)[0, 1] == pytest.approx(1e-3 + 2e-3, rel=0.01)
    assert pairs.receiving_s(1_000_000)[0, 1] == pytest.approx(3e-3, rel=0.01)
    assert pairs.stolen_by_sending_s(1_000_000)[0, 1] == pytest.approx(3e-3, rel=0.01)  # at least its own
    assert pairs.stolen_by_receiving_s(1_000_000)[0, 1] == pytest.approx(5e-3, rel=0.01)


def test_bytes_that_are_not_encrypted_cost_what_iperf3_took() -> None:
    links = profiles.links("ab", send_cpu_s=3e-9, receive_cpu_s=4e-9, plain_send_cpu_s=1e-9)
    pairs = inputs_of(profiles.profile(TWO, links=links)).pairs
    assert pairs.send_plain_per_byte[0, 1] == pytest.approx(1e-9)
    assert pairs.receive_plain_per_byte[0, 1] == pytest.approx(4e-9)
