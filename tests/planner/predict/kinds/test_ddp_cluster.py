"""Steps of torch.distributed by hand: 1 MB of gradients at 100 Mbit/s, one bucket.

A gradient takes 0.1 s, an update 10 ms, and to add 1 MB 2 ms, of which a ring adds half.
"""

import math

import numpy as np
import pytest

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import ddp
from planner.predict.kinds.collectives import NCCL
from planner.predict.kinds.cycles import Cycles
from planner.predict.run import factors
from tests.planner import profiles
from tests.planner.predictions import candidate, inputs_of, solve, training_of, with_inputs

ALLREDUCE = Strategy.from_text("allreduce")
LAYERS = (150_000, 100_000)
RATE = 100 * profiles.MBIT
ADDED_S = 0.002 / 2
GLOO_ONLY, WITH_NCCL = ("gloo",), ("gloo", "nccl")


def costs(
    *gradients_s: float, engine: str = "torch", latency_s: float = 0.0, cores: float = 4.0, **step: object
) -> Inputs:
    made = {"layers": LAYERS, "collectives": GLOO_ONLY, **step}
    names = "abcd"[: len(gradients_s)]
    devices = {
        name: profiles.device(profiles.step(each, **made), cores=cores)
        for name, each in zip(names, gradients_s, strict=True)
    }
    links = profiles.links(names, latency_s=latency_s) if latency_s else profiles.links(names)
    profile = profiles.profile(devices)._replace(links=links)
    return inputs_of(profile, strategy=ALLREDUCE, engine=Engine.from_text(engine))


def solved(found: Inputs) -> Cycles:
    everyone = (1 << len(found.names)) - 1
    return solve(found, Candidates(np.array([everyone]), np.array([0])))


def step_s(*gradients_s: float, **changes: object) -> float:
    cycle_s = solved(costs(*gradients_s, **changes)).cycle_s[0]
    assert (cycle_s == cycle_s[0]).all()
    return float(cycle_s[0])


def test_no_exchange_overlaps_with_the_wait_for_a_batch() -> None:
    layers = (8_000_000, 8_000_000)  # of which the last is exchanged while the first is computed
    found = costs(0.1, 0.1, layers=layers)
    waiting = with_inputs(found, data_s=np.array([0.06, 0.06]))
    updating = costs(0.04, 0.04, layers=layers, update_s=profiles.seconds(0.07))
    assert solved(waiting).cycle_s == pytest.approx(solved(updating).cycle_s)
    assert (solved(waiting).cycle_s > solved(found).cycle_s).all()


def test_the_slowest_device_sets_the_pace_of_all() -> None:
    found = solved(costs(0.1, 0.5))
    assert found.cycle_s[0] == pytest.approx(np.full(2, 0.5 + 1e6 / RATE + 0.01))
    assert found.busy[0] == pytest.approx([0.11 / 0.59, 0.51 / 0.59])


def test_the_slowest_members_two_small_messages_a_hop_count() -> None:
    """b receives what a sends and sends on to c; a small message costs it 2 ms of half a core."""
    found = costs(0.1, 0.1, 0.1, accelerator="cpu", cores=0.5)
    receive_cpu_s = np.zeros((3, 3))
    receive_cpu_s[0, 1] = receive_cpu_s[2, 1] = 0.002
    small = with_inputs(found, receive_cpu_s=receive_cpu_s)
    assert solved(small).cycle_s[0, 0] == pytest.approx(solved(found).cycle_s[0, 0] + 4 * 2 * 0.002 / 0.5)


def test_half_precision_halves_the_exchange() -> None:
    for hook in ("fp16", "bf16"):
        assert step_s(0.1, 0.1, engine=f"torch:hook={hook}") == pytest.approx(0.1 + 0.5e6 / RATE + 0.01)


def test_powersgd_sends_two_factors_of_every_large_variable() -> None:
    sent = 4 * 2 * 3 * (math.sqrt(150_000) + math.sqrt(100_000))
    found = costs(0.1, 0.1, engine="torch:hook=powersgd,rank=3", latency_s=0.001)
    assert solved(found).cycle_s[0, 0] == pytest.approx(0.1 + sent / RATE + 3 * 2 * 0.001 + 0.01)


def test_powersgd_sends_a_small_variable_whole() -> None:
    assert solved(costs(0.1, 0.1, engine="torch:hook=powersgd", layers=(12,))).network_bytes[0, 0] == pytest.approx(48)


def test_members_that_all_have_nccl_use_it_and_others_gloo() -> None:
    def latency_s(**changes: object) -> float:
        return step_s(0.1, 0.1, **changes) - (0.1 + 1e6 / RATE + 0.01)

    assert latency_s(collectives=WITH_NCCL) == pytest.approx(2 * NCCL.hop_s)
    assert latency_s(collectives=WITH_NCCL, engine="torch:backend=gloo") == pytest.approx(0.0, abs=1e-9)
    assert latency_s(collectives=WITH_NCCL, accelerator="cpu") == pytest.approx(0.0, abs=1e-9)


def test_gloo_copies_what_an_accelerator_made_and_nccl_does_not() -> None:
    slow_copy = profiles.seconds(1.0)
    assert step_s(0.1, 0.1, copy_s=slow_copy) == pytest.approx(0.1 + 1.0 + ADDED_S + 0.01)
    assert step_s(0.1, 0.1, copy_s=slow_copy, collectives=WITH_NCCL) < 0.3


def test_a_processor_that_computes_and_exchanges_holds_what_is_slower() -> None:
    """20 ns a byte and end, 1 MB each way: 40 ms of one core, which the link's 80 ms hide."""

    def cycle_s(s_per_byte: float) -> float:
        each = np.full((2, 2), s_per_byte)
        found = with_inputs(
            costs(0.1, 0.1, accelerator="cpu"), send_plain_per_byte=each, receive_plain_per_byte=each,
            send_cpu_per_byte=each, receive_cpu_per_byte=each,
        )  # fmt: skip
        return float(solved(found).cycle_s[0, 0])

    assert cycle_s(20e-9) == pytest.approx(0.1 + 1e6 / RATE + 0.01)
    assert cycle_s(200e-9) == pytest.approx(0.1 + 0.4 + ADDED_S + 0.01)


def test_the_network_is_what_beta_stands_for() -> None:
    found = factors(costs(0.1, 0.1), candidate(0b11), 0)
    assert found.alpha_time == pytest.approx(np.full(2, 0.111 / 0.11))
    assert found.beta_time == pytest.approx(np.full(2, (0.11 + 1e6 / RATE) / 0.111))


def test_a_bucket_begins_when_the_slowest_member_has_its_variables() -> None:
    """The last layer's are there after 60 % of a gradient, and without a measurement at 2/3."""
    layers = (25_000_000, 25_000_000)
    gained_s = step_s(1.0, 0.5, layers=layers) - step_s(1.0, 0.5, layers=layers, ready=(1.0, 0.6))
    assert gained_s == pytest.approx(2 / 3 - 0.6)
    assert step_s(1.0, 0.5, layers=layers, ready=(1.0,)) == step_s(1.0, 0.5, layers=layers)  # of another model


def test_on_an_emulated_device_what_the_group_adds_is_slowed_down_as_well() -> None:
    steps_s = [step_s(0.1, 0.1, group_cpu_s=added_s, slowdown=3.0) for added_s in (0.0, 0.002)]
    assert steps_s[1] - steps_s[0] == pytest.approx(0.006)


@pytest.mark.parametrize(("cores", "own_s"), [(4.0, 0.002), (0.5, 0.004)])
def test_what_the_group_itself_adds_to_a_gradient_is_one_thread_s_work(cores: float, own_s: float) -> None:
    added_s = step_s(0.1, 0.1, group_cpu_s=0.002, cores=cores) - step_s(0.1, 0.1, cores=cores)
    assert added_s == pytest.approx(own_s)


class TestWhatAByteCosts:
    """Encrypted messages cost 3 ns a byte at either end, and 5 ns beside a computation."""

    LINK = profiles.links("ab")[0]._replace(
        curve=(), send_cpu_s=3e-9, receive_cpu_s=3e-9, send_stolen_cpu_s=5e-9, receive_stolen_cpu_s=5e-9
    )

    def costs_s(self, **link: float | None) -> tuple[float, float, float, float]:
        profile = profiles.profile({name: profiles.device(profiles.step(layers=LAYERS)) for name in "ab"})
        made = [self.LINK._replace(source=a, target=b, **link) for a in "ab" for b in "ab"]
        found = inputs_of(profile._replace(links=tuple(made)), strategy=ALLREDUCE, engine=Engine.from_text("torch"))
        work = ddp._work(found, np.array([0, 1]), np.ones(2), uses_nccl=False)
        added = np.array([0.0, ADDED_S / 1e6])
        return tuple(
            float(each.flat[1] - more)
            for cost in (work.alone, work.beside)
            for each, more in zip(cost, added, strict=True)
        )

    def test_without_encryption_it_costs_what_iperf3_took_and_beside_a_computation_so_much_less(self) -> None:
        found = self.costs_s(plain_send_cpu_s=1e-9, plain_receive_cpu_s=2e-9)
        assert found == pytest.approx((1e-9, 2e-9, 3e-9, 4e-9))

    def test_where_that_is_unknown_it_is_that_of_encrypted_messages(self) -> None:
        assert self.costs_s() == pytest.approx((3e-9, 3e-9, 5e-9, 5e-9))

    def test_beside_a_computation_it_costs_no_less_than_alone(self) -> None:
        found = self.costs_s(plain_send_cpu_s=1e-9, plain_receive_cpu_s=None, send_stolen_cpu_s=1e-9)
        assert found == pytest.approx((1e-9, 3e-9, 1e-9, 5e-9))
        assert self.costs_s(send_stolen_cpu_s=None)[2] == pytest.approx(3e-9)


class TestWhoCannot:
    def test_a_device_whose_torch_lacks_it_is_left_out_with_the_reason(self) -> None:
        devices = {
            "jetson": profiles.device(profiles.step(collectives=())),
            "pc": profiles.device(profiles.step(collectives=GLOO_ONLY)),
        }
        found = training_of(profiles.profile(devices), strategy=ALLREDUCE, engine=Engine.from_text("torch"))
        assert found.left_out == {"jetson": "its torch 2.0 was built without torch.distributed"}

    def test_a_remote_device_needs_the_word_that_nothing_is_encrypted(self) -> None:
        step = profiles.step(collectives=GLOO_ONLY)
        devices = {"here": profiles.device(step), "there": profiles.device(step, host="10.0.0.2")}
        profile, torch = profiles.profile(devices), Engine.from_text("torch")
        assert list(training_of(profile, strategy=ALLREDUCE, engine=torch).left_out) == ["there"]
        assert not training_of(profile, strategy=ALLREDUCE, engine=torch, allow_plaintext=True).left_out

    def test_nccl_where_it_is_asked_for(self) -> None:
        devices = {
            "gpu": profiles.device(profiles.step(collectives=WITH_NCCL)),
            "cpu": profiles.device(profiles.step(collectives=GLOO_ONLY, accelerator="cpu")),
        }
        engine = Engine.from_text("torch:backend=nccl")
        found = training_of(profiles.profile(devices), strategy=ALLREDUCE, engine=engine)
        assert found.left_out == {"cpu": "it has no GPU with NCCL; leave backend=nccl out"}
