"""Costs at other speeds: steps, their parts and messages were timed at speeds of their own."""

import numpy as np
import pytest

from backends.strategies.engine import Engine
from planner.predict.costs import OWN_ENGINE, Costs, costs_of
from planner.predict.equal_speed import at_speeds
from planner.profile.file import Profile
from profilers.records.readings import MachineSpeed
from profilers.records.steps import MessageCost
from tests.planner import profiles


def speed(slowdown: float) -> MachineSpeed:
    return MachineSpeed(1e-4 * slowdown, 0.0, 100)


def two(accelerator: str = "cpu") -> Profile:
    """Devices a and b: steps were timed at 1, parts of steps at 1.25, and messages at 2."""
    timed = profiles.step(
        0.1,
        accelerator=accelerator, speed=speed(1.0), parts_speed=speed(1.25), between_s=profiles.seconds(0.001),
        messages=(MessageCost(1000, 1e-4, 2e-4), MessageCost(1_000_000, 2e-3, 3e-3)), group_cpu_s=0.01,
    )  # fmt: skip
    probed = profiles.links(
        "ab", send_cpu_s=1e-9, receive_cpu_s=2e-9, send_speed=speed(2.0), receive_speed=speed(2.0),
        plain_send_cpu_s=5e-10, plain_receive_cpu_s=6e-10,
    )  # fmt: skip
    return profiles.profile({name: profiles.device(timed) for name in "ab"})._replace(links=probed)


def slowed(costs: Costs, **now: float) -> Costs:
    return at_speeds(costs, {name: speed(each) for name, each in now.items()}, costs.devices.speeds)


def ratio(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    return np.divide(after, before, out=np.ones_like(before), where=before > 0)


def test_each_part_changes_by_the_speed_at_which_it_was_timed() -> None:
    before = costs_of(two())
    after = slowed(before, a=2.0)
    assert ratio(after.devices.gradient_s, before.devices.gradient_s) == pytest.approx([2.0, 1.0])
    assert ratio(after.devices.step_cpu_s, before.devices.step_cpu_s) == pytest.approx([2.0, 1.0])
    assert ratio(after.devices.update_s, before.devices.update_s) == pytest.approx([2.0, 1.0])
    for part in ("service_s", "between_s"):
        assert ratio(getattr(after.devices, part), getattr(before.devices, part)) == pytest.approx([1.6, 1.0])


def test_messages_change_at_each_end_by_the_speed_of_its_device() -> None:
    before = costs_of(two())
    after = slowed(before, a=3.0, b=2.0)  # 1.5 and 1 of that while links were probed, 2.4 and 1.6 of the parts'
    worker = [[1.0, 1.5], [1.0, 1.0]]  # none of the costs of a message to itself count as the worker's
    host = [[2.4, 1.0], [1.5, 1.6]]
    assert ratio(after.pairs.worker_cpu_s, before.pairs.worker_cpu_s) == pytest.approx(np.array(worker))
    for field in ("host_cpu_s", "host_stolen_cpu_s"):
        assert ratio(getattr(after.pairs, field), getattr(before.pairs, field)) == pytest.approx(np.array(host))
    assert ratio(after.pairs.order_cpu_s, before.pairs.order_cpu_s) == pytest.approx(np.array([[2.4, 1.0], [1.0, 1.6]]))
    assert ratio(after.pairs.up_s, before.pairs.up_s) == pytest.approx(np.array([[2.4, 1.0], [1.0, 1.6]]))


def test_what_torch_distributed_adds_changes_too() -> None:
    before = costs_of(two(), engine=Engine("torch"), allow_plaintext=True)
    after = slowed(before, a=4.0)
    assert before.torch is not None and after.torch is not None
    assert ratio(after.torch.own_cpu_s, before.torch.own_cpu_s) == pytest.approx([4.0, 1.0])
    for costs, former in ((after.torch.alone, before.torch.alone), (after.torch.beside, before.torch.beside)):
        assert ratio(costs.send_s, former.send_s)[0, 1] == ratio(costs.receive_s, former.receive_s)[1, 0] == 2.0
        assert ratio(costs.send_s, former.send_s)[1, 0] == ratio(costs.receive_s, former.receive_s)[0, 1] == 1.0


def test_what_a_gpu_computes_stays_and_messages_do_not() -> None:
    before = costs_of(two("cuda"))
    after = slowed(before, a=4.0)
    assert after.devices.gradient_s == pytest.approx(before.devices.gradient_s)
    assert after.devices.service_s == pytest.approx(before.devices.service_s)
    assert ratio(after.pairs.worker_cpu_s, before.pairs.worker_cpu_s)[0, 1] == pytest.approx(2.0)


@pytest.mark.parametrize("engine", [OWN_ENGINE, Engine("torch")])
def test_at_the_speeds_of_the_profile_and_at_unknown_ones_all_stays(engine: Engine) -> None:
    known = costs_of(two(), engine=engine, allow_plaintext=True)
    unknown = costs_of(profiles.profile({"a": profiles.device()}), engine=engine, allow_plaintext=True)
    for costs, now in ((known, {}), (unknown, {"a": speed(7.0)})):
        same = at_speeds(costs, now, costs.devices.speeds)
        assert same.devices.alone_s == pytest.approx(costs.devices.alone_s)
        assert same.pairs.host_cpu_s == pytest.approx(costs.pairs.host_cpu_s)
