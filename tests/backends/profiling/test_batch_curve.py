"""Which other batch sizes are timed, for how long, and what is left out where time is short."""

from collections.abc import Callable

import pytest

from backends.profiling import batch_curve
from profilers.records.steps import BatchTiming


class Steps:
    """Steps that take a second an image, and count themselves by batch size."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def at(self, size: int) -> Callable[[], float]:
        def step() -> float:
            self.made.append(size)
            return float(size)

        return step


def fits(size: int, work: Callable[[], BatchTiming]) -> BatchTiming:
    return work()


@pytest.mark.parametrize(
    ("batch", "sizes"), [(1, ()), (3, ()), (4, (2,)), (7, (3,)), (8, (4, 2)), (16, (8, 4)), (33, (16, 8))]
)
def test_half_and_a_quarter_are_timed_but_never_a_single_image(batch: int, sizes: tuple[int, ...]) -> None:
    assert batch_curve.smaller_sizes(batch) == sizes


@pytest.mark.parametrize(("limit_s", "counted"), [(1e9, batch_curve.MOST), (-1.0, batch_curve.FEWEST)])
def test_sizes_have_their_samples_without_the_warm_up(
    monkeypatch: pytest.MonkeyPatch, limit_s: float, counted: int
) -> None:
    monkeypatch.setattr(batch_curve, "LIMIT_S", limit_s)
    found = batch_curve.measure(Steps().at, 16, True, fits)
    assert [each.batch for each in found] == [8, 4, 32]
    assert [(len(each.gradient_s.warmup), len(each.gradient_s.values)) for each in found] == [(1, counted)] * 3
    assert all(set(each.gradient_s.values) == {float(each.batch)} for each in found)


def test_the_double_size_is_left_out_where_it_takes_long_or_does_not_fit_into_the_memory() -> None:
    for found in (
        batch_curve.measure(Steps().at, 16, False, fits),
        batch_curve.measure(Steps().at, 16, True, lambda size, work: None),
    ):
        assert [each.batch for each in found] == [8, 4]
