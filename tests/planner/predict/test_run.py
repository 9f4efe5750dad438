import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from planner.plan.recommend import make_plan, recommend
from planner.predict.clusters import Candidates, enumerate_clusters
from planner.predict.kinds.cycles import COMPUTE, SERVER_CPU, SERVER_LINK, SLOW_LINK
from planner.predict.run import Bill, Predictions, factors, predict, run_time, start_times
from tests.planner import profiles
from tests.planner.predictions import candidate, everything, index, inputs_of, known
from tests.planner.profiles import MBIT
from tests.planner.requests import asked


def arrays(found: Predictions) -> list[np.ndarray]:
    """All that was predicted, by candidate."""
    return [getattr(found, name) for name in Predictions._fields if name != "candidates"]


def test_a_device_alone_computes_and_updates_and_uses_no_network() -> None:
    one = known(0.1)
    found = everything(one)
    assert found.time_s == pytest.approx([1000 * 0.11])
    assert found.power_w == pytest.approx([50.0])
    assert found.network_bytes == [0.0]
    assert found.shares[0, COMPUTE] == 1.0


def test_two_workers_share_the_steps_by_their_rates() -> None:
    two = known(0.1, 0.3)
    found = everything(two)
    i = index(found, two, "ab", "a")
    assert found.steps[i].sum() == pytest.approx(1000)
    assert found.steps[i] * found.cycle_s[i] == pytest.approx(found.time_s[i] - found.start_s[i])
    assert found.network_bytes[i] == pytest.approx(found.steps[i, 1] * 2_000_000)


def test_power_lies_between_idle_and_busy_and_others_count_when_asked() -> None:
    two = known(0.1, 0.1)
    members, billed = everything(two), everything(two, bill=Bill(count_idle=True, extra_w=5.0))
    i, alone = index(members, two, "ab", "a"), index(members, two, "a", "a")
    assert ((members.device_w[i] > 10) & (members.device_w[i] <= 50)).all()
    assert billed.power_w[i] == pytest.approx(members.power_w[i] + 5)
    assert billed.power_w[alone] == pytest.approx(50 + 10 + 5)
    assert (billed.besides_w[i], billed.besides_w[alone]) == (5, 15)
    assert not members.besides_w.any()


def test_unknown_watts_stay_unknown() -> None:
    devices = {"a": profiles.device(), "b": profiles.device(idle_w=None)}
    found = everything(both := inputs_of(profiles.profile(devices)))
    assert found.one(index(found, both, "a", "a")).power_w == pytest.approx(50.0)
    assert found.one(index(found, both, "ab", "a")).power_w is None


# -- Eq. 4 -----------------------------------------------------------------------------------------


def test_a_worker_still_building_at_the_end_contributes_nothing() -> None:
    rate, build_s = np.array([[1.0, 1.0]]), np.array([0.0, 50.0])
    assert run_time(10, rate, build_s) == pytest.approx([10.0])
    assert run_time(100, rate, build_s) == pytest.approx([75.0])


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.floats(0, 1000)), min_size=1, max_size=6),
    st.integers(1, 10_000),
)
def test_the_run_time_is_the_root_of_equation_four(workers: list[tuple[float, float]], steps: int) -> None:
    rate, build_s = np.array(workers).T
    time_s = run_time(steps, rate[None], build_s)[0]
    assert (rate * np.maximum(0, time_s - build_s)).sum() == pytest.approx(steps)


# -- before the first step: models are built, 1 MB of weights takes 80 ms --------

LAYERS = (200_000, 25_000, 20_000, 5_000)


def begins_s(
    strategy: str, mask: int = 7, host: int = 2, first_step_s: float = 0.0, engine: str = "planner"
) -> np.ndarray:
    devices = {
        name: profiles.device(
            profiles.step(build_s=build_s, layers=LAYERS, first_step_s=first_step_s, collectives=("gloo",))
        )
        for name, build_s in (("a", 1.0), ("b", 5.0), ("c", 2.0))
    }
    how = {"strategy": Strategy.from_text(strategy), "engine": Engine.from_text(engine)}
    found = inputs_of(profiles.profile(devices), **how)
    return start_times(found, Candidates(np.array([mask]), np.array([host])))[0]


def test_a_server_has_its_weights_from_the_worker_beside_it_over_loopback() -> None:
    assert begins_s("parameter-server") == pytest.approx([2.001, 5.0, 2.001])
    assert begins_s("parameter-server", mask=6) == pytest.approx([0.0, 5.0, 2.001])
    assert begins_s("parameter-server", host=1) == pytest.approx([5.001, 5.001, 5.001])


def test_what_workers_get_first_are_all_weights() -> None:
    whole, dropped = begins_s("parameter-server"), begins_s("layer-drop")
    more_s = (dropped - whole)[:2]
    sent = 0.05 + (0.8**2 + 0.1**2 + 0.08**2 + 0.02**2) / 2  # of a dense message, by each of the three
    assert more_s == pytest.approx(0.08 * (1 - sent) ** 3, rel=0.01)  # what later answers leave out


def test_peers_have_made_the_same_weights_and_wait_for_one_another() -> None:
    assert begins_s("baseline").tolist() == [5.0, 5.0, 5.0]
    assert begins_s("baseline", mask=5).tolist() == [2.0, 0.0, 2.0]


def test_ranks_of_torch_have_the_first_ones_weights_along_a_tree() -> None:
    assert begins_s("allreduce", engine="torch") == pytest.approx([5.16, 5.16, 5.16])
    assert begins_s("allreduce", mask=5, engine="torch") == pytest.approx([2.08, 0.0, 2.08])
    assert begins_s("allreduce", mask=2, engine="torch") == pytest.approx([0.0, 5.0, 0.0])


@pytest.mark.parametrize("strategy, mask, host", [("parameter-server", 7, 2), ("baseline", 7, 0), ("baseline", 1, 0)])
def test_what_a_first_step_takes_longer_is_time_before_the_usual_ones(strategy: str, mask: int, host: int) -> None:
    later_s = begins_s(strategy, mask, host, first_step_s=0.75) - begins_s(strategy, mask, host)
    assert later_s == pytest.approx([0.75 * (mask >> device & 1) for device in range(3)])


def test_a_plan_tells_it_and_holds_for_other_numbers_of_steps() -> None:
    devices = {name: profiles.device(profiles.step(build_s=3.0)) for name in "ab"}
    ranked = recommend(
        profiles.profile(devices),
        asked({"time": 1.0}, steps=1000, strategy=Strategy.from_text("baseline"), include=("a", "b")),
    )
    plan = make_plan(ranked, "fleet.toml")
    assert [worker.build_s for worker in plan.workers] == [3.0, 3.0]
    cycle_s = 0.1 + 0.08 + 0.004 + 0.002
    assert plan.prediction.time_s == pytest.approx(3.0 + 500 * cycle_s)
    assert plan.for_steps(10).prediction.time_s == pytest.approx(3.0 + 5 * cycle_s)


# -- bottlenecks -----------------------------------------------------------------------------------


def test_the_bottleneck_is_what_takes_most_of_the_cycles() -> None:
    slow = known(0.1, 0.1, rates={"b": 1 * MBIT})
    found = everything(slow)
    assert found.shares[index(found, slow, "ab", "a")].argmax() == SLOW_LINK

    crowd = known(*[0.1] * 6, rates={"a": 10 * MBIT})
    found = everything(crowd)
    assert found.shares[index(found, crowd, "abcdef", "a")].argmax() == SERVER_LINK

    heavy = known(*[0.1] * 6, service_s=profiles.seconds(0.5), rates=dict.fromkeys("abcdef", 1e10))
    found = everything(heavy)
    assert found.shares[index(found, heavy, "abcdef", "a")].argmax() == SERVER_CPU

    light = known(5.0, 5.0)
    found = everything(light)
    assert found.shares[index(found, light, "ab", "a")].argmax() == COMPUTE
    assert found.shares.sum(axis=1) == pytest.approx(np.ones(len(found.time_s)))


# -- alpha and beta --------------------------------------------------------------------------------


def test_no_server_is_busier_than_its_processor_allows() -> None:
    names = "abcdefgh"
    made = profiles.step(0.1, accelerator="cpu", cpu_s_per_step=0.1)
    fleet = profiles.profile({name: profiles.device(made, cores=1.0) for name in names})
    rates = dict.fromkeys(names, 1000 * MBIT)
    fleet = fleet._replace(links=profiles.links(names, rates, send_cpu_s=16e-9, receive_cpu_s=16e-9))
    rate = 1 / predict(inputs_of(fleet), candidate(0xFF), 1000).cycle_s[0]
    assert rate[0] * 0.1 + rate.sum() * (0.032 + 0.002) <= 1.0


def test_alpha_and_beta_lead_from_the_device_alone_to_the_cluster() -> None:
    three = known(0.1, 0.2, 0.3, rates={"b": 10 * MBIT})
    found = everything(three)
    i = index(found, three, "abc", "a")
    factor = factors(three, candidate(0b111), 0)
    alone_s = three.devices.gradient_s + three.devices.update_s
    assert alone_s * factor.alpha_time * factor.beta_time == pytest.approx(found.cycle_s[i])
    assert three.watts.busy_w * factor.alpha_power * factor.beta_power == pytest.approx(found.device_w[i])
    assert (factor.beta_time[1:] > 1).all()
    assert factor.beta_time[1] > 5 * factor.beta_time[0]


def test_alpha_has_what_the_busier_end_s_processor_takes_for_messages() -> None:
    fleet = profiles.profile({name: profiles.device(profiles.step(0.1), cores=1.0) for name in "ab"})
    dear = profiles.links("ab", send_cpu_s=10e-9, receive_cpu_s=40e-9)
    factor = factors(inputs_of(fleet._replace(links=dear)), candidate(0b11), 0)
    assert factor.alpha_time[1] >= (0.1 + 2 * 0.04) / 0.11  # 1 MB each way


def test_a_device_alone_has_factors_of_one() -> None:
    factor = factors(known(0.1, 0.2), candidate(0b01), 0)
    assert [each[0] for each in factor] == pytest.approx([1.0] * 4)
    assert np.isnan([each[1] for each in factor]).all()


# -- invariants over random fleets -----------------------------------------------------------------


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict, dict]:
    names = "abcd"[: draw(st.integers(2, 4))]
    devices, rates = {}, {}
    for name in names:
        gradient_s = draw(st.floats(0.01, 1.0))
        on_cpu = draw(st.booleans())
        cores = draw(st.sampled_from([0.5, 1.0, 4.0]))
        devices[name] = profiles.device(
            profiles.step(
                gradient_s,
                accelerator="cpu" if on_cpu else "cuda",
                cpu_s_per_step=gradient_s * cores,
                build_s=draw(st.floats(0, 20)),
                service_s=profiles.seconds(draw(st.floats(1e-4, 0.05))),
            ),
            cores=cores,
        )
        rates[name] = draw(st.floats(1, 1000)) * MBIT
    return devices, rates


@given(fleets())
@settings(deadline=None, max_examples=40)
def test_the_order_of_devices_changes_nothing(fleet: tuple[dict, dict]) -> None:
    devices, rates = fleet
    one = inputs_of(profiles.profile(devices, rates))
    other = inputs_of(profiles.profile(dict(reversed(devices.items())), rates))
    found, turned = everything(one), everything(other)
    for members in ("".join(c) for n in range(1, len(devices) + 1) for c in itertools.combinations(devices, n)):
        for host in members:
            i, k = index(found, one, members, host), index(turned, other, members, host)
            assert found.time_s[i] == pytest.approx(turned.time_s[k])
            assert found.power_w[i] == pytest.approx(turned.power_w[k])


@given(fleets(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=40)
def test_a_cluster_s_prediction_does_not_depend_on_the_others_tried(
    fleet: tuple[dict, dict], without: bool, count_idle: bool
) -> None:
    found = everything(known := inputs_of(profiles.profile(*fleet)), bill=Bill(count_idle))
    candidates = enumerate_clusters(known.names, known.pairs.reachable, exclude="a" * without, server="b")
    fewer = predict(known, candidates, 1000, Bill(count_idle))
    masks, hosts = found.candidates
    same = [np.flatnonzero((masks == mask) & (hosts == host))[0] for mask, host in zip(*candidates, strict=True)]
    for one, other in zip(arrays(found), arrays(fewer), strict=True):
        assert other == pytest.approx(one[same])


@given(fleets(), st.floats(1.1, 10))
@settings(deadline=None, max_examples=40)
def test_a_faster_network_makes_no_cluster_slower_but_for_what_queues_are_approximated(
    fleet: tuple[dict, dict], factor: float
) -> None:
    devices, rates = fleet
    slow = everything(inputs_of(profiles.profile(devices, rates)), 10_000)
    fast = everything(
        inputs_of(profiles.profile(devices, {name: rate * factor for name, rate in rates.items()})), 10_000
    )
    assert (fast.time_s <= slow.time_s * 1.06).all()


@given(fleets())
@settings(deadline=None, max_examples=40)
def test_no_cluster_beats_its_devices_without_communication(fleet: tuple[dict, dict]) -> None:
    found = everything(known := inputs_of(profiles.profile(*fleet)))
    members = found.candidates.members(len(known.names))
    fastest = np.where(members, 1 / known.devices.gradient_s, 0.0)
    assert (found.time_s >= 1000 / fastest.sum(axis=1) * (1 - 1e-9)).all()


# -- the structure of the optimum without communication --------------------------------------------


@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.floats(1, 100)), min_size=1, max_size=7),
    st.floats(0, 200),
    st.sampled_from([(1.0, 1.0), (1.0, 2.0)]),
)
def test_without_build_times_the_best_set_is_a_prefix_by_watts_per_rate(
    devices: list[tuple[float, float]], base_w: float, powers: tuple[float, float]
) -> None:
    """(P0 + P)^a / R^b with b >= a: energy (1, 1) and EDP (1, 2)."""
    rate, watts = np.array(devices).T
    count = len(devices)
    masks = np.arange(1, 1 << count)
    members = Candidates(masks, np.zeros_like(masks)).members(count)
    time_s = run_time(1000, members * rate, np.zeros(count))
    brute = ((base_w + members @ watts) ** powers[0] * time_s ** powers[1]).min()
    order = np.argsort(watts / rate)
    prefix = (base_w + np.cumsum(watts[order])) ** powers[0] * (1000 / np.cumsum(rate[order])) ** powers[1]
    assert prefix.min() == pytest.approx(brute)
