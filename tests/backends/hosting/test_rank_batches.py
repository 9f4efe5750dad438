"""Ranks agree on batches, and gradients are weighed by them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.hosting.rank_batches import RankBatches
from backends.strategies.strategy import Strategy
from tests.backends.fakes import BATCH, run_spec
from tests.backends.rank_run import SharedGroup, Table, drawn

BY_RATES = Strategy.from_text("allreduce:batching=stream,aggregation=rates")


class OneOfThree(SharedGroup):
    """The last of three members, of which only the weight is looked at."""

    def __init__(self) -> None:
        super().__init__(Table(3), 2)
        self.part: float | None = None

    def weigh(self, part: float) -> None:
        self.part = part


def batches(folder: Path, **changes: Any) -> tuple[RankBatches, OneOfThree]:
    group = OneOfThree()
    spec = run_spec(folder, 10, stream="replay:S1", **changes)
    return RankBatches(spec, group, drawn(2, BATCH), lambda: 40), group


def test_fixed_batches_stay_and_every_sample_weighs_the_same(tmp_path: Path) -> None:
    made, group = batches(tmp_path, strategy=Strategy.from_text("allreduce"))
    assert made.wanted == BATCH
    assert made.agree(np.array([10, 50, 20])) == 3
    assert (made.size, group.part) == (20, pytest.approx(20 / 80))


def test_batches_that_follow_rates_are_weighed_by_them(tmp_path: Path) -> None:
    made, group = batches(tmp_path, strategy=BY_RATES)
    assert made.wanted == 40
    assert made.agree(np.array([10, 50, 40])) == 3
    assert (made.size, group.part) == (40, pytest.approx(40 / (3 * BATCH)))


def test_a_member_without_samples_does_not_count(tmp_path: Path) -> None:
    made, group = batches(tmp_path, strategy=BY_RATES)
    assert made.agree(np.array([0, 50, 40])) == 2
    assert group.part == pytest.approx(40 / (2 * BATCH))


def test_after_its_end_the_last_batch_is_drawn_again_and_counts_for_nothing(tmp_path: Path) -> None:
    made, group = batches(tmp_path, strategy=BY_RATES)
    last = next(made)
    made.end()
    assert next(made) is last
    assert (made.over, made.wanted, group.part) == (True, 0, 0.0)
    assert made.agree(np.array([10, 50, 0])) == 2
    assert (made.size, group.part) == (BATCH, 0.0)
    assert made.agree(np.zeros(3)) == 0
