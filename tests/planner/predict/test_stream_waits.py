"""Steps wait for samples that arrive in streams. Batches are of 32 samples if nothing else is said.

A device alone makes a step in 0.11 s: a gradient takes 0.1 s, an update 0.01 s.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from backends import models
from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from planner.errors import PlanError
from planner.predict import stream_waits as stream_rates
from planner.predict.cycle import batches, shared_batches, waiting_shares
from planner.predict.inputs import Inputs
from planner.predict.run import Predictions
from planner.predict.stream_waits import StreamRates, least_cycles, unknown_rates
from planner.profile.file import Profile
from profilers.records.readings import StreamRate
from profilers.records.steps import Contention
from tests.planner import profiles
from tests.planner.predict.test_run import arrays
from tests.planner.predictions import everything, index, inputs_of, training_of

#: 4, 1 and 0.25 s in which a batch of 32 arrives.
SLOW, EVEN, FAST = 8.0, 32.0, 128.0
SYNCHRONOUS = "parameter-server:sync=synchronous"


def three(stream: str | None, strategy: str = "parameter-server", **options: object) -> Inputs:
    """Devices a, b and c, whose gradients take 0.1, 0.4 and 1.7 s."""
    spec = None if stream is None else StreamSpec.from_text(stream)
    return inputs_of(profiles.three(), strategy=Strategy.from_text(strategy), stream=spec, **options)


def cycles(costs: Inputs, found: Predictions, members: str, host: str = "a") -> list[float]:
    return found.cycle_s[index(found, costs, members, host)][: len(members)].tolist()


# -- cycles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "cycle_s"), [(SLOW, 4.0), (EVEN, 1.0), (1000.0, 0.11)])
def test_a_device_alone_is_as_slow_as_the_slower_of_its_step_and_its_stream(rate: float, cycle_s: float) -> None:
    costs = three(f"replay:{rate}")
    found = everything(costs, steps=100)
    alone = index(found, costs, "a", "a")
    assert found.cycle_s[alone, 0] == pytest.approx(cycle_s)
    assert found.time_s[alone] == pytest.approx(100 * cycle_s)
    assert found.power_w[alone] == pytest.approx(10 + 40 * 0.11 / cycle_s)  # it idles while it waits


def test_workers_that_wait_for_nobody_have_cycles_of_their_own() -> None:
    free, costs = three(None), three(f"replay:b@{SLOW}/1000")
    before, found = everything(free), everything(costs)
    a, _, c = cycles(free, before, "abc")
    assert cycles(costs, found, "abc") == pytest.approx([a, 4.0, c])


@pytest.mark.parametrize("strategy", [SYNCHRONOUS, "allreduce", "hop", "crossover", "parameter-server:sync=bounded"])
def test_the_slowest_stream_holds_up_all_that_wait_for_one_another(strategy: str) -> None:
    costs = three(f"replay:b@{SLOW}/{FAST}", strategy)
    found = everything(costs)
    assert cycles(costs, found, "abc") == pytest.approx([4.0] * 3)
    assert cycles(costs, found, "a") == pytest.approx([0.25])  # alone, its own stream counts


def test_rounds_of_local_steps_wait_for_the_samples_of_all_their_steps() -> None:
    """10 steps of each: those of b take 40 s to arrive."""
    costs = three(f"replay:b@{SLOW}/1e9", "local-sgd:local=steps:every=10")
    assert cycles(costs, everything(costs), "abc") == pytest.approx([4.0] * 3)
    unequal = three(f"replay:a@{SLOW}/1e9", "local-sgd:local=speed:every=40")  # 40 of a take 160 s
    found = everything(unequal)
    assert cycles(unequal, found, "ab") == pytest.approx([4.0, 160 / 11])  # b makes 11 in as long as a makes 40


# -- batches ---------------------------------------------------------------------------------------


def test_a_batch_that_follows_the_stream_is_what_arrives_in_a_second() -> None:
    """An image more adds 0.1 x 0.4 / 16 = 2.5 ms on a: 40 take 0.1 + 8 x 0.0025 = 0.12 s."""
    costs = three("replay:a@40/b@2000/c@2.4,least=5", "scadles")
    found = everything(costs)
    assert batches(costs, found.candidates)[0].tolist() == [40.0, 1024.0, 5.0]
    assert costs.batches.sizes.images[2:].tolist() == [pytest.approx((40 + 1024 + 5) / 3)] * 2
    assert cycles(costs, found, "a") == pytest.approx([1.0])
    alone = index(found, costs, "a", "a")
    assert found.free_s[alone, 0] == pytest.approx(0.12 + 0.01)
    details = training_of(profiles.three(), strategy=Strategy.from_text("scadles"), stream=costs.streams.spec).details
    (told,) = (note for note in details if note.startswith("batches are what arrives in a second"))
    assert told.endswith(": 40 on a, timed from 16 to 32; 1024 on b, timed from 16 to 32; 5 on c, timed from 16 to 32")
    assert not any("drawn" in note for note in details)


def test_a_part_of_a_global_batch_arrives_as_late_as_it_is_large() -> None:
    costs = three(f"replay:a@{SLOW}/1e9", SYNCHRONOUS, global_batch=64)
    found = everything(costs)
    at = index(found, costs, "ab", "a")
    part = shared_batches(costs, found.candidates.members(3))[at, 0]
    assert found.cycle_s[at, :2] == pytest.approx([part / SLOW] * 2)


def test_a_batch_dealt_out_by_speed_is_smaller_where_others_on_the_kernel_compute() -> None:
    beside = Contention(("a", "b"), 2.0, 0.0)
    steps = {"a": profiles.step(0.1, contention=beside), "b": profiles.step(0.1)}
    fleet = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    costs = inputs_of(fleet, strategy=Strategy.from_text("dlion"))
    found = everything(costs)
    at = index(found, costs, "ab", "a")
    dealt = batches(costs, found.candidates)[at]
    assert dealt.sum() == pytest.approx(2 * costs.batches.sizes.images[2]) and dealt[0] < dealt[1]
    fixed_s, image_s = 0.2 - 32 * 2 * costs.devices.image_s[0], 2 * costs.devices.image_s[0]
    assert fixed_s + dealt[0] * image_s == pytest.approx(
        0.1 + (dealt[1] - 32) * costs.devices.image_s[1]
    )  # both end at once


def test_a_host_that_waits_for_its_samples_still_serves_the_others() -> None:
    fast, slow = (three(f"replay:a@{rate}/1e9") for rate in (1e9, 8.0))
    at = index(everything(fast), fast, "ab", "a")
    link = everything(slow).cycle_s[at]
    watts = [everything(each).device_w[at, 0] - each.watts.idle_w[0] for each in (fast, slow)]
    assert link[0] == pytest.approx(4.0) and link[1] < 1.0
    serving = 0.002 / 4 / link[1]  # updates of 2 ms on one of four cores
    assert watts[1] / 40 == pytest.approx(0.1 / link[0] + 0.0005 / link[0] + serving, rel=0.01)


# -- waits and buffers -----------------------------------------------------------------------------


def waits(costs: Inputs, found: Predictions, members: str, host: str = "a") -> list[float]:
    return waiting_shares(costs, found.candidates, found.free_s)[index(found, costs, members, host)].tolist()


def test_where_workers_wait_for_one_another_only_those_with_the_slowest_stream_wait_for_it() -> None:
    """A round takes F s without waits, and its gradient takes b 1.3 s less than c: the samples of b
    come F - 1.3 s before its end."""
    costs = three(f"replay:b@{SLOW}/1e9", SYNCHRONOUS)
    found = everything(costs)
    free_s = found.free_s[index(found, costs, "abc", "a"), 0]
    assert waits(costs, found, "abc") == pytest.approx([0, 1 - (free_s - 1.3) / 4.0, 0])
    equal = three(f"replay:{SLOW}", SYNCHRONOUS)
    assert waits(equal, everything(equal), "abc") == pytest.approx([1 - free_s / 4.0] * 3)


def rounds_by_hand(arrive_s: list[float], work_s: list[float], exchange_s: float) -> tuple[float, list[float]]:
    """Seconds of a round, and for how many of them each member waits for its samples, in the end.

    Batch k of a member is there after k + 1 times ``arrive_s``.
    """
    now_s, starts_s, waited_s = 0.0, [], []
    for number in range(400):
        begun_s = [max(now_s, (number + 1) * each_s) for each_s in arrive_s]
        starts_s.append(now_s)
        waited_s.append([each_s - now_s for each_s in begun_s])
        now_s = max(begun + work for begun, work in zip(begun_s, work_s, strict=True)) + exchange_s
    return (starts_s[-1] - starts_s[-101]) / 100, np.mean(waited_s[-101:-1], axis=0).tolist()


@given(
    st.lists(st.integers(1, 40), min_size=3, max_size=3), st.lists(st.integers(1, 20), min_size=3, max_size=3),
    st.integers(0, 10),
)  # fmt: skip
def test_rounds_and_waits_are_those_of_rounds_that_are_made_one_by_one(
    arrive: list[int], work: list[int], exchange: int
) -> None:
    assume(max(arrive) != max(work) + exchange)  # how long waits last there depends on the first one
    arrive_s, work_s, exchange_s = [each / 10 for each in arrive], [each / 10 for each in work], exchange / 10
    round_s, waited_s = rounds_by_hand(arrive_s, work_s, exchange_s)
    members, one = np.ones((1, 3), bool), np.ones((1, 3))
    free_s = np.full((1, 3), max(work_s) + exchange_s)
    least_s = least_cycles(np.array([arrive_s]), one, members, together=True)
    found = stream_rates.waiting_shares(
        free_s, least_s, np.array([arrive_s]), np.array([work_s]), one, members, together=True
    )
    assert np.maximum(free_s, least_s)[0].tolist() == pytest.approx([round_s] * 3)
    assert (found * np.maximum(free_s, least_s))[0].tolist() == pytest.approx(waited_s, abs=1e-9)


def streams(text: str, *rates: float) -> StreamRates:
    return StreamRates(StreamSpec.from_text(text), np.array(rates), np.zeros(len(rates)), np.full(len(rates), np.nan))


def test_a_buffer_grows_by_what_steps_do_not_use() -> None:
    made = streams("replay:1", 100.0, 32.0, 50.0)
    samples, cycle_s = np.full((1, 3), 32.0), np.array([[0.5, 1.0, np.inf]])
    surplus = made.surplus(samples, cycle_s)
    assert surplus.tolist() == [[100 - 64, 0, 0]]  # the last is no member
    assert made.buffered(samples, surplus, np.full((1, 3), 10.0)).tolist() == [[360, 0, 0]]


def test_truncation_keeps_what_arrives_in_a_second_or_a_batch() -> None:
    made = streams("replay:1,policy=truncate", 100.0, 20.0)
    samples, seconds = np.full((1, 2), 32.0), np.full((1, 2), 10.0)
    assert made.buffered(samples, np.array([[36.0, 5.0]]), seconds).tolist() == [[100, 32]]
    assert made.buffered(samples, np.array([[0.5, 0.0]]), seconds).tolist() == [[5, 0]]


# -- properties ------------------------------------------------------------------------------------

STRATEGIES = st.sampled_from(
    ["parameter-server", SYNCHRONOUS, "allreduce", "hop", "ad-psgd", "dlion", "local-sgd", "async-diloco", "scadles"]
)
RATES = st.tuples(*[st.floats(0.1, 1e4)] * 3)


def with_rates(costs: Inputs, rates: tuple[float, ...]) -> Predictions:
    assert costs.streams is not None
    return everything(costs._replace(streams=costs.streams._replace(rate=np.array(rates))))


@settings(max_examples=25, deadline=None)
@given(STRATEGIES, RATES, st.tuples(*[st.floats(1.0, 10.0)] * 3))
def test_a_faster_stream_never_makes_a_cluster_slower(
    strategy: str, rates: tuple[float, ...], factor: tuple[float, ...]
) -> None:
    costs = three("replay:50", strategy)
    faster = tuple(rate * more for rate, more in zip(rates, factor, strict=True))
    slow, fast = with_rates(costs, rates), with_rates(costs, faster)
    assert (fast.time_s <= slow.time_s * (1 + 1e-9)).all()
    assert (slow.time_s >= everything(costs._replace(streams=None)).time_s * (1 - 1e-9)).all()


@settings(max_examples=20, deadline=None)
@given(STRATEGIES.filter(lambda name: name != "scadles"))
def test_with_streams_of_infinite_rate_everything_is_as_without_any(strategy: str) -> None:
    costs = three("replay:50", strategy)
    found = with_rates(costs, (np.inf,) * 3)
    for one, other in zip(arrays(found), arrays(everything(three(None, strategy))), strict=True):
        np.testing.assert_array_equal(one, other)


# -- rates -----------------------------------------------------------------------------------------


def test_the_mean_of_a_rate_that_changes_counts_and_no_damaged_sample() -> None:
    costs = three("replay:100,shape=bursts,factor=5,malformed=4,at=b")
    assert costs.streams is not None
    assert costs.streams.rate.tolist() == pytest.approx([100, 100 * 1.4 * 0.75, 100])
    details = training_of(profiles.three(), stream=costs.streams.spec).details
    assert any("counts with its mean" in note for note in details)


def measured(*names: str) -> Profile:
    """The directories of these devices were watched."""
    made = profiles.three()
    for name in names:
        made = made.with_device(name, streams={f"directory:/data/{name}": StreamRate(SLOW, 0.01, 10.0, 3000.0)})
    return made


def test_from_elsewhere_the_measured_rate_counts_whatever_is_done_with_the_samples() -> None:
    spec = StreamSpec.from_text("directory:/data/{device},policy=truncate")
    costs = inputs_of(measured("a", "b", "c"), stream=spec)
    assert costs.streams is not None
    assert costs.streams.rate.tolist() == [SLOW] * 3 and costs.streams.sample_bytes.tolist() == [3000.0] * 3
    assert costs.streams.error.tolist() == [0.01] * 3


def test_a_device_whose_rate_is_unknown_is_left_out_with_the_remedy() -> None:
    spec = StreamSpec.from_text("directory:/data/{device}")
    costs = inputs_of(measured("a", "b"), stream=spec)
    remedy = "run `planner profile --stream directory:/data/{device}`"
    assert costs.names == ("a", "b")
    assert training_of(measured("a", "b"), stream=spec).left_out["c"].endswith(remedy)
    with pytest.raises(PlanError, match="--stream: the rate of its stream is unknown; run `planner profile"):
        inputs_of(measured(), stream=spec)


def test_a_replay_without_a_rate_for_a_device_and_one_of_damaged_samples_leave_it_out() -> None:
    profile = profiles.three()
    reasons = unknown_rates(profile, "abc", StreamSpec.from_text("replay:a@3/b@4"))
    assert list(reasons) == ["c"] and "no rate for c" in reasons["c"]
    damaged = unknown_rates(profile, "abc", StreamSpec.from_text("replay:30,malformed=1,at=b"))
    assert damaged == {"b": "replay:30,malformed=1,at=b: no sound sample arrives there"}


def test_the_size_of_a_replayed_image_is_known_for_the_models_own_shape() -> None:
    known = models.model("cifar10")
    step = profiles.step(model="cifar10", fingerprint=models.fingerprint(known))
    profile = profiles.profile({"a": profiles.device(step), "b": profiles.device(step)})
    costs = inputs_of(profile, stream=StreamSpec.from_text("replay:30"))
    assert costs.streams is not None
    pixels = int(np.prod(known.input_shape))
    assert (costs.streams.sample_bytes > pixels).all() and (costs.streams.sample_bytes < pixels + 400).all()
    other = three("replay:30")
    assert other.streams is not None and np.isnan(other.streams.sample_bytes).all()
