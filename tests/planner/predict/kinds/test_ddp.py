"""A step of DistributedDataParallel overlaps the backward pass with the exchange of its buckets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.predict.buckets import FORWARD, Bucket, buckets, filled, ready_evenly
from planner.predict.kinds.collectives import GLOO, NCCL, Network, Transport
from planner.predict.kinds.ddp import ByteCosts, SynchronousStep, Work, synchronous

MIB = 1 << 20
#: When half of the backward pass is done.
HALFWAY = FORWARD + (1 - FORWARD) / 2


def network(n: int, bytes_per_s: float = 1e8, latency_s: float = 0.0) -> Network:
    each = np.full(n, bytes_per_s)
    return Network(np.full((n, n), bytes_per_s), each, each, np.full((n, n), latency_s))


def compute(
    *gradients_s: float, update_s: float = 0.0, cpu: float = 0.0, hop_cpu: float = 0.0, delay: float = 1.0,
    stolen: float | None = None,
) -> Work:  # fmt: skip
    """cpu: seconds of a byte at either end, ``stolen`` beside a computation; hop_cpu: of a hop."""
    n = len(gradients_s)
    alone, beside = (ByteCosts(*np.full((2, n, n), each)) for each in (cpu, cpu if stolen is None else stolen))
    return Work(np.array(gradients_s), np.full(n, update_s), alone, beside, np.full(n, hop_cpu), np.full(n, delay))


def step(
    work: Work, made: list[Bucket], bytes_per_s: float = 1e8, transport: Transport = GLOO, latency_s: float = 0.0
) -> SynchronousStep:
    return synchronous(work, made, transport, network(work.gradient_s.size, bytes_per_s, latency_s))


def test_one_bucket_of_two_equal_devices_follows_their_gradient_and_update() -> None:
    found = step(compute(0.3, 0.3, update_s=0.02), [Bucket(1e7, 1.0)], latency_s=0.001)
    assert found.step_s == pytest.approx(0.3 + 0.02 + 1e7 / 1e8 + 2 * 0.001)
    assert found.busy_s == pytest.approx([0.32, 0.32])
    assert found.sent_bytes == pytest.approx(np.array([[0.0, 1e7], [1e7, 0.0]]))


@pytest.mark.parametrize(("cores", "each"), [(4.0, 1.0), (0.5, 2.0)])
def test_the_processors_work_of_each_hop_counts_and_takes_a_core_at_most(cores: float, each: float) -> None:
    work = compute(0.3, 0.3, 0.3, hop_cpu=0.001, delay=1 / cores)
    found = step(work, [Bucket(3e6, 1.0, messages=2)])
    assert found.step_s == pytest.approx(0.3 + 4e6 / 1e8 + 2 * 4 * 0.001 * each)
    assert found.busy_s == pytest.approx(np.full(3, 0.3 + 2 * 4 * 0.001 / cores))


def test_a_bucket_that_is_ready_earlier_is_exchanged_beside_the_backward_pass() -> None:
    found = step(compute(0.3, 0.3), [Bucket(1e7, HALFWAY), Bucket(2e6, 1.0)])
    assert found.step_s == pytest.approx(0.3 + 0.02)  # the first began at 0.2 and ended as the pass did


def test_a_bucket_waits_for_the_member_that_has_it_last() -> None:
    found = step(compute(0.3, 0.3), [Bucket(1e7, np.array([0.4, 0.8])), Bucket(0.0, 1.0)])
    assert found.step_s == pytest.approx(0.8 * 0.3 + 0.1)


def test_a_bucket_waits_for_the_one_before() -> None:
    found = step(compute(0.3, 0.3), [Bucket(5e7, HALFWAY), Bucket(2e6, 1.0)])
    assert found.step_s == pytest.approx(0.2 + 0.5 + 0.02)


def test_beside_the_backward_pass_an_exchange_has_the_share_of_one_thread() -> None:
    """Half a core for two threads: 40 ms of it take 0.16 s beside the pass, which loses half."""
    work = compute(0.3, 0.3, cpu=1e-8, delay=2.0)
    assert step(work, [Bucket(2e6, HALFWAY), Bucket(0.0, 1.0)]).step_s == pytest.approx(0.3 + 0.08)


def test_what_is_left_of_it_after_the_backward_pass_has_the_processor_alone() -> None:
    """80 ms of half a core: 50 of them beside the pass, which ends at 0.4 s, and 30 after it."""
    work = compute(0.3, 0.3, cpu=1e-8, delay=2.0)
    assert step(work, [Bucket(4e6, HALFWAY), Bucket(0.0, 1.0)]).step_s == pytest.approx(0.4 + 0.06)


def test_a_byte_costs_more_while_something_is_computed_and_its_own_after_that() -> None:
    """2e6 bytes each way: 2 x 1 ns a byte after the backward pass, and 2 x 5 ns beside it."""
    found = step(compute(0.3, 0.3, cpu=1e-9, stolen=5e-9), [Bucket(2e6, 1.0)])
    assert found.busy_s == pytest.approx(np.full(2, 0.3 + 0.004))
    hidden = step(compute(0.3, 0.3, cpu=1e-9, stolen=5e-9), [Bucket(2e6, HALFWAY), Bucket(0.0, 1.0)])
    assert hidden.busy_s == pytest.approx(np.full(2, 0.3 + 0.02))
    assert hidden.step_s == pytest.approx(0.3 + 0.02)


def test_messages_of_a_bucket_follow_one_another() -> None:
    assert step(compute(0.3, 0.3), [Bucket(1e7, 1.0, messages=3)], latency_s=0.001).step_s == pytest.approx(0.406)


def test_a_processor_that_takes_longer_than_the_link_holds_the_exchange() -> None:
    assert step(compute(0.3, 0.3, cpu=2e-8), [Bucket(1e7, 1.0)]).step_s == pytest.approx(0.3 + 0.4)
    assert step(compute(0.3, 0.3, cpu=2e-8, delay=2.0), [Bucket(1e7, 1.0)]).step_s == pytest.approx(0.3 + 0.8)


def test_buckets_are_filled_from_the_last_variable_on_and_the_first_is_small() -> None:
    layers = [26 * MIB // 4, 20 * MIB // 4, 10 * MIB // 4, MIB // 8, MIB // 8]
    ends = FORWARD + (1 - FORWARD) * np.array([0.4, 0.8, 1.0])
    made = buckets(layers)
    assert [each.message_bytes for each in made] == [MIB, 30 * MIB, 26 * MIB]
    assert [each.ready for each in made] == pytest.approx(ends)


def test_measured_shares_tell_the_order_of_the_variables_and_when_each_member_has_a_bucket() -> None:
    """The second variable comes first: a head that is used before the layers after it."""
    layers, ready = [MIB // 4, MIB, MIB // 4], np.array([[0.9, 0.4, 0.5], [1.0, 0.3, 0.7]])
    assert filled(layers, ready) == [[1], [2, 0]]
    first, second = buckets(layers, ready=ready)
    assert (first.message_bytes, second.message_bytes) == (4 * MIB, 2 * MIB)
    np.testing.assert_array_equal([first.ready, second.ready], [[0.4, 0.3], [0.9, 1.0]])


LAYERS = st.lists(st.integers(1, 20_000_000), min_size=1, max_size=12)
GRADIENTS = st.lists(st.floats(1e-4, 10.0), min_size=2, max_size=6)
RATES = st.floats(1e5, 1e10)


@given(LAYERS)
def test_buckets_hold_every_byte_and_are_ready_one_after_the_other(layers: list[int]) -> None:
    made = buckets(layers)
    assert sum(each.message_bytes for each in made) == 4 * sum(layers)
    ready = [each.ready for each in made]
    assert ready == sorted(ready)
    assert made[-1].ready == 1.0


@given(LAYERS)
def test_every_variable_is_in_one_bucket(layers: list[int]) -> None:
    inside = [variable for bucket in filled(layers, ready_evenly(len(layers))) for variable in bucket]
    assert inside == list(range(len(layers)))[::-1]


@given(LAYERS, GRADIENTS, RATES, st.sampled_from((GLOO, NCCL)))
def test_no_step_is_faster_than_its_slowest_member_or_than_the_ring_limit(
    layers: list[int], gradients_s: list[float], rate: float, transport: Transport
) -> None:
    n, found = len(gradients_s), step(compute(*gradients_s), buckets(layers), rate, transport)
    limit_s = 2 * (n - 1) / n * 4 * sum(layers) / rate
    assert found.step_s >= max(gradients_s) * (1 - 1e-9)
    assert found.step_s >= (FORWARD * max(gradients_s) + limit_s) * (1 - 1e-9)
    assert (found.busy_s <= found.step_s).all()


@given(LAYERS, GRADIENTS, RATES, st.floats(1.0, 10.0))
def test_slower_links_and_slower_members_never_make_a_step_faster(
    layers: list[int], gradients_s: list[float], rate: float, factor: float
) -> None:
    made, before_s = buckets(layers), step(compute(*gradients_s), buckets(layers), rate).step_s
    slower = [gradients_s[0] * factor, *gradients_s[1:]]
    assert step(compute(*gradients_s), made, rate / factor).step_s >= before_s * (1 - 1e-9)
    assert step(compute(*slower), made, rate).step_s >= before_s * (1 - 1e-9)
