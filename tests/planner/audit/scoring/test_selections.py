import math

import numpy as np
import pytest

from planner.audit.scoring.cases import Case, Estimates, cases_of
from planner.audit.scoring.measured import MeasuredRun
from planner.audit.scoring.selections import Selection, measurement_errors, select
from profilers.stats import Z95
from tests.planner import audits

ALONE = {"a": 10.0, "b": 9.8, "c": 5.0}


def case(rates: dict[str, float] = ALONE, **changes: object) -> Case:
    """Three devices alone, of which a is predicted fastest, then b, then c."""
    runs = [audits.run({name: rate}, **changes) for name, rate in rates.items()]
    return cases_of(audits.audit(audits.fleet(0.1, 0.2, 0.3), runs))[0]


def guess(*times_s: float, watts: float = 50.0) -> Estimates:
    return Estimates(np.array(times_s), np.full(len(times_s), watts))


def choose(of: Case, by: Estimates | int, metric: str = "time", error: float = 0.0) -> Selection:
    found = select(of, by, metric, np.full(len(of.runs), error))
    assert found is not None
    return found


def test_the_best_measured_is_a_hit_without_regret() -> None:
    found = choose(case(), guess(1, 2, 3))
    assert (found.hit, found.hit_tied, found.first_two, found.first_two_tied) == (True,) * 4
    assert (found.regret, found.tau, found.among) == (0.0, 1.0, 3)
    assert found.chosen == found.best
    assert found.best.workers == ("a",)


def test_a_miss_is_in_the_first_two_and_costs_what_it_measures_more() -> None:
    found = choose(case(), guess(2, 1, 3))
    assert (found.hit, found.hit_tied, found.first_two) == (False, False, True)
    assert found.regret == pytest.approx(10 / 9.8 - 1)
    assert found.tau == pytest.approx(1 / 3)
    assert choose(case(), guess(2, 1, 3), "edp").regret == pytest.approx((10 / 9.8) ** 2 - 1)


def test_neither_of_the_first_two() -> None:
    found = choose(case({"a": 10.0, "b": 9.0, "c": 5.0}), guess(3, 2, 1))
    assert found.chosen.workers == ("c",)
    assert (found.first_two, found.first_two_tied, found.tau) == (False, False, -1.0)


def test_a_tie_is_what_the_errors_of_both_allow() -> None:
    gap = math.log(10 / 9.8)
    assert choose(case(), guess(2, 1, 3), error=1.01 * gap / Z95 / math.sqrt(2)).hit_tied
    assert not choose(case(), guess(2, 1, 3), error=0.99 * gap / Z95 / math.sqrt(2)).hit_tied


def test_equal_predictions_go_to_the_smaller_cluster_and_the_faster_server() -> None:
    assert choose(case(), guess(1, 1, 1)).chosen.server == "a"
    assert choose(case(), guess(1, 1, 1)).tau is None


def test_a_fixed_choice_has_neither_second_nor_order() -> None:
    found = choose(case(), 1, "energy")
    assert (found.first_two, found.first_two_tied, found.tau) == (None, None, None)
    assert (found.hit, found.chosen.workers) == (False, ("b",))


def test_only_configurations_whose_metric_is_known_take_part() -> None:
    some = cases_of(audits.audit(audits.fleet(0.1, 0.2, 0.3), [
        audits.run({"a": 10.0}, watts=None), audits.run({"b": 9.0}), audits.run({"c": 5.0}),
    ]))[0]  # fmt: skip
    assert choose(some, guess(1, 2, 3)).among == 3
    assert choose(some, guess(1, 2, 3), "power").among == 2
    assert select(some, 0, "power", np.zeros(3)) is None
    assert select(case({"a": 1.0}), guess(1), "time", np.zeros(1)) is None


def test_errors_are_those_within_a_run_or_those_between_repetitions() -> None:
    alone = case(rate_error=0.03, power_error=0.04)
    within = measurement_errors([alone])[0]
    assert within["time"] == pytest.approx([0.03] * 3)
    assert within["power"] == pytest.approx([0.04] * 3)
    assert within["energy"] == pytest.approx([0.05] * 3)
    assert within["edp"] == pytest.approx([math.hypot(0.06, 0.04)] * 3)

    def repeat(run: MeasuredRun) -> MeasuredRun:
        """The second time all are slower alike, and those on host a by exp(0.1) besides."""
        shaken = 0.3 + 0.1 * (run.server == "a")
        return run if run.repetition == 1 else audits.faster(run, math.exp(-shaken))

    fleet = audits.fleet(0.1, 0.2)
    runs = [run for run in audits.as_predicted(fleet, 2, shake=repeat) if len(run.workers) == 1]
    for each in measurement_errors(cases_of(audits.audit(fleet, runs))):
        # Their difference is 0 and then 0.1, whose standard deviation is shared by two.
        assert np.hypot(*each["time"]) == pytest.approx(0.1 / math.sqrt(2), rel=1e-3)
        assert each["power"] == pytest.approx([0.0, 0.0], abs=1e-12)
        assert np.hypot(*each["edp"]) == pytest.approx(0.2 / math.sqrt(2), rel=1e-3)
