"""What a member of a sharded run has in memory, by hand: 10 MB of parameters in three blocks."""

import pytest

from planner.predict import shares
from planner.predict.shares import gathered_bytes
from profilers.records.steps import ModelSize
from tests.planner import profiles

MB = 10**6
#: Blocks of 4 MB, 4 MB and 1.2 MB; 0.8 MB are in none.
SIZE = ModelSize(2_500_000, 10 * MB, 0, blocks=(1_000_000, 1_000_000, 300_000))


def member_bytes(size: ModelSize, kept: int, members: int, job: bool = True) -> float:
    return shares.member_bytes(profiles.changed(profiles.step(job=job), **size._asdict()), kept, members)


def test_a_member_has_its_share_and_what_it_gathers_of_the_largest_block() -> None:
    gathered = 4 * 4 * MB + 2 * 0.8 * MB
    assert member_bytes(SIZE, kept=2, members=2) == pytest.approx(40 * MB / 2 + gathered)
    assert member_bytes(SIZE, kept=2, members=4) == pytest.approx(40 * MB / 4 + gathered)


def test_a_model_without_blocks_is_gathered_whole() -> None:
    assert gathered_bytes(SIZE._replace(blocks=())) == 40 * MB


def test_a_member_builds_the_whole_model_however_small_its_share_is() -> None:
    many = SIZE._replace(blocks=(25_000,) * 100)
    assert member_bytes(many, kept=0, members=100) == 10 * MB
    assert member_bytes(many, kept=0, members=100, job=False) == 20 * MB


def test_frozen_parameters_are_divided_and_gathered_and_have_no_gradients() -> None:
    frozen = ModelSize(0, 0, 10 * MB, blocks=SIZE.blocks, frozen_bytes=10 * MB)
    assert member_bytes(frozen, kept=2, members=2) == pytest.approx(10 * MB / 2 + 17.6 * MB)
