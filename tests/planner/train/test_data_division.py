"""The division of a run's data is kept with it, and a resumed run goes on with the same one."""

from pathlib import Path
from typing import Any

import pytest

from backends.protocol.events import Ready
from backends.protocol.member_specs import DataPart
from planner.errors import PlanError, RunError
from planner.json_records import save
from planner.paths import RunFolder
from planner.train.data_division import DataDivision, data_division
from planner.train.orders import Options
from tests.planner.plans import plan, planned

BOTH = plan(planned("a", 75.0), planned("b", 25.0))
FEW = Options(partition="labels=2", seed=3)


@pytest.fixture
def before(tmp_path: Path) -> RunFolder:
    """A run of both devices, whose data were divided by label."""
    run = RunFolder(tmp_path)
    made = data_division(BOTH, FEW).held({"a": Ready({"0": 30}), "b": Ready({"1": 10})})
    save(made, run.partition)
    return run


def test_samples_are_divided_by_the_steps_that_are_expected() -> None:
    made = data_division(BOTH, FEW)
    assert made == DataDivision("labels=2", 3, {"a": 75.0, "b": 25.0})
    assert made.parts()["b"] == DataPart((75.0, 25.0), 1, 3, "labels=2", ("a", "b"))
    assert not data_division(BOTH, Options()).by_label


def test_a_resumed_run_keeps_the_samples_of_each_device(before: RunFolder) -> None:
    alone = plan(planned("b", 500.0))
    made = data_division(alone, FEW, before)
    assert made.parts()["b"] == data_division(BOTH, FEW).parts()["b"]
    assert made.labels == {}
    save(made, before.partition)  # and the run after that one, though it had one device
    assert data_division(BOTH, FEW, before).parts() == data_division(BOTH, FEW).parts()


def test_a_device_that_the_samples_were_not_divided_among_cannot_come_in(before: RunFolder) -> None:
    with pytest.raises(
        PlanError, match=r"cannot resume .* on c: its samples were divided among a, b \(--partition lab"
    ):
        data_division(plan(planned("a"), planned("c")), FEW, before)


@pytest.mark.parametrize("other", [{"partition": "labels=1"}, {"seed": 4}, {"partition": "iid"}])
def test_another_partition_or_seed_divides_anew(before: RunFolder, other: dict[str, Any]) -> None:
    options = FEW._replace(**other)
    assert data_division(plan(planned("c")), options, before).weights == {"c": 50.0}


def test_a_run_that_was_not_divided_by_label_divides_by_its_plan(tmp_path: Path) -> None:
    assert data_division(BOTH, FEW, RunFolder(tmp_path)).weights == {"a": 75.0, "b": 25.0}


def test_members_that_divide_differently_are_refused() -> None:
    with pytest.raises(RunError, match="--partition labels=2: a, b divide the samples differently"):
        data_division(BOTH, FEW).held({"a": Ready({"0": 1}, "abc"), "b": Ready({"0": 1}, "abd")})


@pytest.mark.parametrize(
    ("options", "samples", "expected"),
    [
        (FEW, 100, ["60 of 100 samples are on no device of this run (--partition labels=2)"]),
        (FEW, 40, []),
        (FEW, None, []),
        (Options(), 100, []),
    ],
)
def test_samples_that_are_on_no_device_are_told(options: Options, samples: int | None, expected: list[str]) -> None:
    made = data_division(BOTH, options).held({"a": Ready({"0": 30}), "b": Ready({"1": 10})})
    assert made.notes(samples) == expected
