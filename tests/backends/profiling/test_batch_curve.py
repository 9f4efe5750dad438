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


def test_sizes_have_their_samples_without_the_warm_up() -> None:
    steps = Steps()
    found = batch_curve.measure(steps.at, 16, lambda: True, fits)
    assert [each.batch for each in found] == [8, 4, 32]
    assert [len(each.gradient_s.values) for each in found] == [12, 12, 5]
    assert [len(each.gradient_s.warmup) for each in found] == [3, 3, 1]
    assert all(set(each.gradient_s.values) == {float(each.batch)} for each in found)


@pytest.mark.parametrize("with_larger", [True, False])
@pytest.mark.parametrize("batch", [1, 4, 5, 16, 100])
def test_what_remains_is_what_is_then_done(batch: int, with_larger: bool) -> None:
    steps = Steps()
    batch_curve.measure(steps.at, batch, lambda: with_larger, fits)
    assert batch_curve.remaining_steps(batch, with_larger) == pytest.approx(sum(steps.made) / batch)
    assert (2 * batch in steps.made) == with_larger


def test_a_double_size_that_does_not_fit_into_the_memory_is_left_out() -> None:
    found = batch_curve.measure(Steps().at, 16, lambda: True, lambda size, work: None)
    assert [each.batch for each in found] == [8, 4]
