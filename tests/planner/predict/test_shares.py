"""What a member of a sharded run has in memory, by hand: 10 MB of parameters in three blocks."""

import pytest

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from planner.predict import shares
from planner.predict.memory import Further
from profilers.records.steps import ModelSize
from tests.planner import profiles

MB = 10**6
#: Blocks of 4 MB, 4 MB and 1.2 MB; 0.8 MB are in none.
SIZE = ModelSize(2_500_000, 10 * MB, 0, blocks=(1_000_000, 1_000_000, 300_000))
SHARDED, ADAMW = Engine.from_text("torch:shard=full"), Strategy.from_text("allreduce:optimizer=adamw")


def member_bytes(size: ModelSize, members: int, kept: int = 2, job: bool = True) -> float:
    return shares.member_bytes(profiles.changed(profiles.step(job=job), **size._asdict()), kept, members)


def test_a_member_has_its_share_and_what_it_gathers_of_the_largest_block() -> None:
    gathered = 4 * 4 * MB + 2 * 0.8 * MB
    assert member_bytes(SIZE, members=2) == pytest.approx(40 * MB / 2 + gathered)
    assert member_bytes(SIZE, members=4) == pytest.approx(40 * MB / 4 + gathered)


def test_a_model_without_blocks_is_gathered_whole() -> None:
    assert shares.gathered_bytes(SIZE._replace(blocks=())) == 40 * MB


@pytest.mark.parametrize(("job", "times"), [(True, 1), (False, 2)])
def test_a_member_builds_the_whole_model_however_small_its_share_is(job: bool, times: int) -> None:
    many = SIZE._replace(blocks=(25_000,) * 100)
    assert member_bytes(many, members=100, kept=0, job=job) == times * 10 * MB


def test_frozen_parameters_are_divided_and_gathered_and_have_no_gradients() -> None:
    frozen = ModelSize(0, 0, 10 * MB, blocks=SIZE.blocks, frozen_bytes=10 * MB)
    assert member_bytes(frozen, members=2) == pytest.approx(10 * MB / 2 + 17.6 * MB)


@pytest.mark.parametrize(
    ("accelerator", "host", "gpu"),
    [
        ("cpu", 37.6 - 30, 0),  # weights, gradients and momentum were measured
        ("cuda", 10 - 20, 37.6 - 30),  # a replica has weights and gradients on the host as well
    ],
)
def test_a_member_lacks_what_was_measured_of_a_whole_replica(accelerator: str, host: float, gpu: float) -> None:
    step = profiles.changed(profiles.step(accelerator=accelerator), **SIZE._asdict())
    found = Further.of_member(step, ADAMW, SHARDED, members=2)
    assert found == (pytest.approx(host * MB), pytest.approx(gpu * MB))
