import numpy as np
import pytest

from planner.audit.scoring.cases import cases_of
from planner.audit.scoring.measured import MeasuredRun
from planner.audit.scoring.repeatability import from_other_repetitions
from planner.audit.scoring.scoreboard import MEASURED_BEFORE, Scoreboard, score
from tests.planner import audits

FLEET = audits.fleet(0.1, 0.17)


def repeated(*speeds: float) -> list[MeasuredRun]:
    """A run of every configuration in each repetition, that many times as fast as predicted."""

    def at_speed(run: MeasuredRun) -> MeasuredRun:
        return audits.faster(run, speeds[run.repetition - 1])

    return audits.as_predicted(FLEET, len(speeds), shake=at_speed)


def scored(runs: list[MeasuredRun]) -> Scoreboard:
    return score([audits.audit(FLEET, runs)])


def test_a_repetition_is_foretold_by_the_others_alone() -> None:
    first, second, third = from_other_repetitions(cases_of(audits.audit(FLEET, repeated(1.0, 2.0, 4.0))))
    assert first.time_s / third.time_s == pytest.approx(np.sqrt(1.0 * 2.0) / np.sqrt(2.0 * 4.0))
    assert second.time_s / third.time_s == pytest.approx(np.sqrt(1.0 * 2.0) / np.sqrt(1.0 * 4.0))
    assert first.power_w == pytest.approx(third.power_w)


def test_one_repetition_foretells_nothing() -> None:
    (only,) = from_other_repetitions(cases_of(audits.audit(FLEET, repeated(1.0))))
    assert np.isnan(only.time_s).all()
    assert np.isnan(only.power_w).all()
    assert scored(repeated(1.0)).rules[MEASURED_BEFORE].summary is None


def test_a_configuration_that_no_other_repetition_has_is_unknown() -> None:
    runs = repeated(1.0, 1.0)[:-1]
    first, second = from_other_repetitions(cases_of(audits.audit(FLEET, runs)))
    assert np.isnan(first.time_s).sum() == 1
    assert np.isfinite(second.time_s).all()


def test_whoever_has_measured_all_chooses_as_well_as_a_repetition_resembles_another() -> None:
    def unlike(run: MeasuredRun) -> MeasuredRun:
        return audits.faster(run, 10.0) if run.repetition == 2 and len(run.workers) == 1 else run

    alike = scored(repeated(1.0, 1.0)).rules[MEASURED_BEFORE]
    other = scored(audits.as_predicted(FLEET, 2, shake=unlike)).rules[MEASURED_BEFORE]
    assert alike.summary is not None and alike.summary.best.share == 1.0
    assert set(alike.errors.values()) == {None}
    assert [each.hit for each in other.selections if each.metric == "time"] == [False, False]


def test_a_single_run_is_held_against_the_prediction_and_against_its_other_repetitions() -> None:
    predicted, foretold = scored(repeated(1.0, 2.0)).single
    assert predicted is not None and foretold is not None
    assert predicted.number == foretold.number == 4  # two clusters of two, twice
    assert (predicted.least, predicted.greatest) == pytest.approx((0.0, 1.0), abs=1e-3)
    assert (foretold.least, foretold.greatest) == pytest.approx((-0.5, 1.0), abs=1e-3)


def test_a_run_without_another_repetition_counts_for_neither() -> None:
    assert scored(repeated(1.0)).single == (None, None)
