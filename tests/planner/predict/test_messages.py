"""Processor seconds that coding messages takes."""

import pytest

from backends.strategies.strategy import Strategy
from profilers.records.steps import CodecCost
from tests.planner import profiles
from tests.planner.predictions import inputs_of

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
