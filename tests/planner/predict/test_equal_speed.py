"""Costs at other speeds: steps and their parts were timed at speeds of their own."""

import numpy as np
import pytest

from backends.strategies.engine import Engine
from planner.predict.costs import OWN_ENGINE, Costs, costs_of
from planner.predict.equal_speed import at_speeds
from planner.predict.link_costs import PairCosts
from planner.profile.file import Profile
from profilers.records.readings import MachineSpeed
from profilers.records.steps import MessageCost
from tests.planner import profiles


def speed(slowdown: float) -> MachineSpeed:
    return MachineSpeed(1e-4 * slowdown, 0.0, 100)


def two(accelerator: str = "cpu") -> Profile:
    """Devices a and b: steps were timed at 1, beside others at 1.1, and parts of steps at 1.25.

    Messages were probed at 2.
    """
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
    beside = (speed(1.1),) * len(costs.names) if any(costs.devices.speeds) else costs.devices.speeds
    return at_speeds(costs, {name: speed(each) for name, each in now.items()}, beside)


def ratio(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    return np.divide(after, before, out=np.ones_like(before), where=before > 0)


def test_each_part_changes_by_the_speed_at_which_it_was_timed() -> None:
    before = costs_of(two())
    after = slowed(before, a=2.2)
    assert ratio(after.devices.gradient_s, before.devices.gradient_s) == pytest.approx([2.0, 1.0])
    assert ratio(after.devices.step_cpu_s, before.devices.step_cpu_s) == pytest.approx([2.0, 1.0])
    assert ratio(after.devices.update_s, before.devices.update_s) == pytest.approx([2.2, 1.0])  # timed alone
    for part in ("service_s", "between_s"):
        assert ratio(getattr(after.devices, part), getattr(before.devices, part)) == pytest.approx([1.76, 1.0])


def test_more_images_change_as_a_gradient_does() -> None:
    by_image = costs_of(two())
    after = slowed(by_image, a=2.2)
    assert ratio(after.devices.image_s, by_image.devices.image_s) == pytest.approx([2.0, 1.0])
    divided = costs_of(two(), global_batch=48)
    shares, slower = divided.shares, slowed(divided, a=2.2).shares
    assert shares is not None and slower is not None
    assert ratio(slower.gradient_s, shares.gradient_s)[:, -1] == pytest.approx([2.0, 1.0])


def test_messages_stay_as_they_were_probed() -> None:
    for engine in (OWN_ENGINE, Engine("torch")):
        before = costs_of(two(), engine=engine, allow_plaintext=True)
        after = slowed(before, a=3.0, b=2.0)
        for field in PairCosts._fields:
            assert getattr(after.pairs, field) == pytest.approx(getattr(before.pairs, field))
        if before.torch is not None and after.torch is not None:
            assert after.torch.beside.send_s == pytest.approx(before.torch.beside.send_s)


def test_what_torch_distributed_adds_changes() -> None:
    before = costs_of(two(), engine=Engine("torch"), allow_plaintext=True)
    after = slowed(before, a=4.0)
    assert before.torch is not None and after.torch is not None
    beside_over_parts = 1.0 / 1.1 / 1.25  # timed with the parts, and slower beside others as a gradient is
    assert ratio(after.torch.own_cpu_s, before.torch.own_cpu_s)[0] == pytest.approx(4.0 * beside_over_parts)


def test_what_a_gpu_computes_stays() -> None:
    before = costs_of(two("cuda"))
    after = slowed(before, a=4.0)
    assert after.devices.gradient_s == pytest.approx(before.devices.gradient_s)
    assert after.devices.service_s == pytest.approx(before.devices.service_s)


def test_at_the_speed_of_the_profile_all_stays() -> None:
    fleet, same = two(), speed(2.0)
    steps = {name: known.steps[0]._replace(speed=same, parts_speed=same) for name, known in fleet.devices.items()}
    links = tuple(link._replace(send_speed=same, receive_speed=same) for link in fleet.links)
    known = profiles.profile({name: profiles.device(step) for name, step in steps.items()})._replace(links=links)
    for engine in (OWN_ENGINE, Engine("torch")):
        unchanged(costs_of(known, engine=engine, allow_plaintext=True), 2.0)


def test_at_unknown_speeds_all_stays() -> None:
    unchanged(costs_of(profiles.profile({name: profiles.device() for name in "ab"})), 7.0)


def unchanged(costs: Costs, now: float) -> None:
    same = at_speeds(costs, {name: speed(now) for name in costs.names}, costs.devices.speeds)
    assert same.devices.alone_s == pytest.approx(costs.devices.alone_s)
    assert same.devices.service_s == pytest.approx(costs.devices.service_s)
    for field in ("up_s", "worker_cpu_s", "host_cpu_s", "host_stolen_cpu_s", "order_cpu_s"):
        assert getattr(same.pairs, field) == pytest.approx(getattr(costs.pairs, field))
    if costs.torch is not None and same.torch is not None:
        assert same.torch.own_cpu_s == pytest.approx(costs.torch.own_cpu_s)
