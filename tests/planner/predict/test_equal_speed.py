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
    """Devices a and b: steps were timed at 1, beside others at 1.1, and parts of steps at 1.25.

    Messages within a device were probed at 1.6, those between devices at 2.
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
    own = {"send_speed": speed(1.6), "receive_speed": speed(1.6)}
    probed = tuple(link._replace(**own) if link.source == link.target else link for link in probed)
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


def test_messages_change_at_each_end_by_the_speed_of_its_device() -> None:
    before = costs_of(two())
    after = slowed(before, a=3.0, b=2.0)  # 1.5 and 1 between devices, 2.4 and 1.6 of the parts
    order_s = np.diagonal(before.pairs.order_cpu_s)  # timed with the parts
    worker_s, host_s = before.pairs.worker_cpu_s, before.pairs.host_cpu_s
    assert (order_s > 0).all() and (worker_s[[0, 1], [1, 0]] > order_s).all()
    assert after.pairs.worker_cpu_s[0, 1] == pytest.approx(1.5 * (worker_s[0, 1] - order_s[0]) + 2.4 * order_s[0])
    assert after.pairs.worker_cpu_s[1, 0] == pytest.approx(worker_s[1, 0] - order_s[1] + 1.6 * order_s[1])
    assert after.pairs.host_cpu_s[1, 0] == pytest.approx(1.5 * (host_s[1, 0] - order_s[0]) + 2.4 * order_s[0])
    assert after.pairs.host_cpu_s[0, 1] == pytest.approx(host_s[0, 1] - order_s[1] + 1.6 * order_s[1])
    assert ratio(after.pairs.send_stolen_cpu_s, before.pairs.send_stolen_cpu_s)[0, 1] == pytest.approx(1.5)
    assert ratio(after.pairs.receive_stolen_cpu_s, before.pairs.receive_stolen_cpu_s)[1, 0] == pytest.approx(1.5)


def test_messages_within_a_device_change_by_its_own_speeds() -> None:
    before = costs_of(two())
    after = slowed(before, a=3.2, b=1.6)  # 2 and 1 of that while they were probed, 2.56 and 1.28 of the parts
    for field in ("host_cpu_s", "host_stolen_cpu_s", "order_cpu_s"):
        changed = ratio(getattr(after.pairs, field), getattr(before.pairs, field))
        assert np.diagonal(changed) == pytest.approx([2.56, 1.28])
    assert ratio(after.pairs.up_s, before.pairs.up_s) == pytest.approx(np.array([[2.0, 1.0], [1.0, 1.0]]))


def test_what_torch_distributed_adds_changes_too() -> None:
    before = costs_of(two(), engine=Engine("torch"), allow_plaintext=True)
    after = slowed(before, a=4.0)
    assert before.torch is not None and after.torch is not None
    beside_over_parts = 1.0 / 1.1 / 1.25  # timed with the parts, and slower beside others as a gradient is
    assert ratio(after.torch.own_cpu_s, before.torch.own_cpu_s)[0] == pytest.approx(4.0 * beside_over_parts)
    for costs, former in ((after.torch.alone, before.torch.alone), (after.torch.beside, before.torch.beside)):
        assert ratio(costs.send_s, former.send_s)[0, 1] == ratio(costs.receive_s, former.receive_s)[1, 0] == 2.0
        assert ratio(costs.send_s, former.send_s)[1, 0] == ratio(costs.receive_s, former.receive_s)[0, 1] == 1.0


def test_what_a_gpu_computes_stays_and_messages_do_not() -> None:
    before = costs_of(two("cuda"))
    after = slowed(before, a=4.0)
    assert after.devices.gradient_s == pytest.approx(before.devices.gradient_s)
    assert after.devices.service_s == pytest.approx(before.devices.service_s)
    assert ratio(after.pairs.send_stolen_cpu_s, before.pairs.send_stolen_cpu_s)[0, 1] == pytest.approx(2.0)
    assert ratio(after.pairs.host_cpu_s, before.pairs.host_cpu_s)[0, 0] == pytest.approx(3.2)


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
