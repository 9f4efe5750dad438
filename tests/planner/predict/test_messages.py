"""Seconds that coding messages and updates take; a peer adds its gradient first, in 2 ms."""

import pytest

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from planner.predict.inputs import Inputs
from profilers.records.step_costs import CodecCost, UpdateCost
from tests.planner import profiles
from tests.planner.predictions import inputs_of, training_of
from tests.planner.profiles import seconds, step

CODECS = {
    "dense": CodecCost(profiles.seconds(0.0), profiles.seconds(0.001)),
    "float16": CodecCost(profiles.seconds(0.02), profiles.seconds(0.01)),
    "top-k": CodecCost(profiles.seconds(0.03), profiles.seconds(0.0005)),
}


def known(strategy: str, **changes: object):
    return inputs_of(
        profiles.profile({"a": profiles.device(profiles.step(**changes))}), strategy=Strategy.from_text(strategy)
    )


@pytest.mark.parametrize(
    ("strategy", "send_s", "service_s"),
    [
        ("parameter-server", 0.0, 0.002),
        ("parameter-server:compressor=float16", 0.02, 0.01 + 0.002),  # added to the momentum first
        ("parameter-server:compressor=top-k:share=0.1", 0.03, 0.0005),  # workers have the momentum
    ],
)
def test_a_server_is_sent_what_workers_choose(strategy: str, send_s: float, service_s: float) -> None:
    found = known(strategy, compressors=CODECS)
    assert (found.devices.encode_s[0], found.devices.service_s[0]) == pytest.approx((send_s, service_s))


def test_peers_add_up_their_own_and_what_comes_and_update_by_themselves() -> None:
    found = known("baseline:compressor=float16", compressors=CODECS)
    assert (found.devices.service_s[0], found.devices.add_s[0]) == pytest.approx((0.001 + 0.002, 0.01))


# -- updates ---------------------------------------------------------------------------------------

PLAIN = step(update_s=seconds(0.01), service_s=seconds(0.002))
TIMED = profiles.changed(PLAIN, optimizers={"adam": UpdateCost(seconds(0.03), seconds(0.005))})


def costs(timed: bool, strategy: str) -> Inputs:
    devices = {"a": profiles.device(TIMED if timed else PLAIN)}
    return inputs_of(profiles.profile(devices), strategy=Strategy.from_text(strategy))


#: Of a job whose own optimizer takes 0.05 s alone and 0.06 s in a peer.
OF_JOB = profiles.changed(TIMED,
    own_optimizer=True, update_s=seconds(0.05), service_s=seconds(0.06),
    optimizers={**TIMED.costs.optimizers, "sgd": UpdateCost(seconds(0.01), seconds(0.002))},
)  # fmt: skip


@pytest.mark.parametrize(
    ("optimizer", "alone_s", "peer_s"), [("own", 0.05, 0.062), ("sgd", 0.01, 0.004), ("adam", 0.03, 0.007)]
)
def test_a_job_with_its_own_optimizer_is_predicted_with_the_one_that_is_used(
    optimizer: str, alone_s: float, peer_s: float
) -> None:
    strategy = Strategy.from_text(f"allreduce:optimizer={optimizer}")
    found = inputs_of(profiles.profile({"a": profiles.device(OF_JOB)}), strategy=strategy)
    assert found.devices.update_s == pytest.approx([alone_s])
    assert found.devices.service_s == pytest.approx([peer_s])


def test_a_server_with_adam_takes_an_array_more_and_its_copy() -> None:
    fleet = profiles.profile({"a": profiles.device(TIMED)})
    plain, adam = (
        training_of(fleet, strategy=Strategy.from_text(f"parameter-server:optimizer={name}")).server_headroom
        for name in ("sgd", "adam")
    )
    assert adam.any_bytes - plain.any_bytes == 2 * PLAIN.size.parameter_bytes


CLIPPING = profiles.changed(TIMED, clip_s=seconds(0.004), copy_s=seconds(0.001))


@pytest.mark.parametrize(
    ("engine", "optimizer", "alone_s", "before_sending_s"),
    [("planner", "sgd", 0.014, 0.005), ("planner", "adam", 0.034, 0.005), ("torch", "sgd", 0.014, 0.001)],
)
def test_clipping_takes_time_before_an_update_or_before_a_worker_sends(
    engine: str, optimizer: str, alone_s: float, before_sending_s: float
) -> None:
    """Ranks of torch.distributed clip the mean that they have received."""
    strategy, by = Strategy.from_text(f"allreduce:optimizer={optimizer}"), Engine.from_text(engine)
    fleet = profiles.profile({"a": profiles.device(CLIPPING)})
    found = inputs_of(fleet, strategy=strategy, engine=by, clip_norm=1.0)
    assert found.devices.update_s == pytest.approx([alone_s])
    assert found.devices.copy_s == pytest.approx([before_sending_s])
