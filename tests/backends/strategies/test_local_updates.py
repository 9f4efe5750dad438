"""The texts of ``local`` and ``outer``, and the momentum that makes up for averaging."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.frameworks.optimizer import DELAYED_NESTEROV, NESTEROV
from backends.strategies.local_updates import LocalSpec, OuterSpec, automatic_momentum
from backends.strategies.strategy import Strategy


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("none", LocalSpec()),
        ("steps:every=20", LocalSpec("steps", every=20)),
        ("time:seconds=1.5,after=100", LocalSpec("time", seconds=1.5, after=100)),
        ("speed:every=8,reset=yes,normalize=yes", LocalSpec("speed", every=8, reset=True, normalize=True)),
    ],
)
def test_a_local_part_is_parsed_and_written_alike(text: str, spec: LocalSpec) -> None:
    assert LocalSpec.from_text(text) == spec
    assert spec.as_text() == text
    assert bool(spec) == (text != "none")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("average", OuterSpec()),
        ("nesterov:gain=0.7,momentum=0.9", OuterSpec("nesterov", 0.7, 0.9)),
        ("delayed-nesterov:every=4", OuterSpec("delayed-nesterov", every=4)),
    ],
)
def test_an_outer_part_is_parsed_and_written_alike(text: str, spec: OuterSpec) -> None:
    assert OuterSpec.from_text(text) == spec
    assert spec.as_text() == text


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (LocalSpec, "hours", "unknown local 'hours'"),
        (LocalSpec, "time:every=3", "local time has no option every; known: after, normalize, reset, seconds"),
        (LocalSpec, "none:every=3", "local none has no option every; known: none"),
        (LocalSpec, "steps:every=0", "every is a whole number from 1 on, not '0'"),
        (LocalSpec, "time:seconds=inf", "seconds is a finite number above 0"),
        (LocalSpec, "time:reset=maybe", "reset is yes or no"),
        (OuterSpec, "nesterov:momentum=1", "momentum is a number from 0 to below 1"),
        (OuterSpec, "average:momentum=0.5", "outer average has no option momentum; known: gain"),
    ],
)
def test_what_does_not_fit_is_named(kind: type[LocalSpec] | type[OuterSpec], text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kind.from_text(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("allreduce:outer=nesterov", "an outer step needs rounds"),
        ("crossover:local=steps", "excludes topology random"),
        ("dlion:local=steps,knowledge=none", "excludes batching dynamic"),
        ("diloco:optimizer=lars", "excludes optimizer lars"),
        ("diloco:outer=delayed-nesterov", "excludes topology ring"),
        ("diloco:topology=all,sync=asynchronous", "no common start; possible with it: synchronous, bounded"),
        ("parameter-server:local=steps,sync=synchronous,outer=delayed-nesterov", "excludes sync synchronous"),
    ],
)
def test_parts_that_do_not_go_with_rounds_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Strategy.from_text(text)


def test_a_member_alone_makes_no_rounds_but_keeps_its_optimizer() -> None:
    found = Strategy.from_text("diloco:optimizer=adam").of_one_member()
    assert not found.local
    assert found.optimizer.name == "adam"
    assert Strategy.from_text("dlion").of_one_member().batching == "fixed"
    assert Strategy.from_text("gaia").of_one_member() == Strategy.from_text("gaia")


@given(st.integers(1, 500), st.integers(2, 12))
def test_equal_members_get_the_momentum_that_multiplies_the_step_by_their_number(steps: int, members: int) -> None:
    assert 1 / (1 - automatic_momentum(1.0, [steps] * members)) == pytest.approx(members)


def test_unequal_members_get_the_momentum_of_the_issue() -> None:
    # 200^2 / (100^2 + 2 * 50^2) = 2.67
    assert 1 / (1 - automatic_momentum(1.0, [100, 50, 50])) == pytest.approx(8 / 3)
    assert automatic_momentum(1.0, [7]) == 0.0


@given(st.permutations([1, 7, 31, 50, 400]))
def test_the_order_of_members_changes_nothing(steps: list[int]) -> None:
    assert automatic_momentum(0.9, steps) == automatic_momentum(0.9, sorted(steps))


def test_settings_name_the_optimizer_and_its_numbers() -> None:
    assert OuterSpec("nesterov", 0.7, 0.9).settings([5, 5])[:2] == (0.7, 0.9)
    assert OuterSpec("nesterov").settings([5, 5]).kind == NESTEROV
    assert OuterSpec().settings([5, 5])[:2] == (1.0, 0.0)
    delayed = OuterSpec("delayed-nesterov").settings([5, 5, 5])
    assert (delayed.kind, delayed.delay) == (DELAYED_NESTEROV, 3)
