import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.audit.scoring.baselines import PLANNER, RULES
from planner.audit.scoring.measured import Extrapolation, MeasuredRun
from planner.audit.scoring.scoreboard import Scoreboard, overheads, score
from planner.audit.scoring.selections import Hits, Spread, summarise
from planner.errors import AuditError
from planner.plan.rank import METRICS
from tests.planner import audits, profiles

GRADIENTS_S = st.lists(st.floats(0.02, 2.0), min_size=2, max_size=3)


def perfect(*gradients_s: float, repetitions: int = 1) -> Scoreboard:
    fleet = audits.fleet(*gradients_s)
    return score([audits.audit(fleet, audits.as_predicted(fleet, repetitions))])


def noisy(seed: int, factor: float = 1.0) -> Scoreboard:
    """Measurements some 5 % off, all of them then times a factor."""
    shaken = random.Random(seed)
    fleet = audits.fleet(0.1, 0.17, 0.3)

    def shake(run: MeasuredRun) -> MeasuredRun:
        return audits.faster(run, factor * shaken.gauss(1, 0.05))._replace(rate_error=0.02, power_error=0.01)

    return score([audits.audit(fleet, audits.as_predicted(fleet, 2, shake=shake))])


@given(GRADIENTS_S)
@settings(max_examples=25, deadline=None)
def test_a_perfect_prediction_always_hits_and_regrets_nothing(gradients_s: list[float]) -> None:
    found = perfect(*gradients_s).planner.summary
    assert found is not None
    for hits in found[:4]:
        assert hits == Hits(len(METRICS), len(METRICS))
    assert found.worst.regret == pytest.approx(0.0, abs=1e-9)
    assert found.mean_tau == pytest.approx(1.0)


@given(st.integers(0, 1000), st.floats(0.1, 10.0))
@settings(max_examples=15, deadline=None)
def test_measuring_everything_faster_changes_no_hit(seed: int, factor: float) -> None:
    before, after = noisy(seed), noisy(seed, factor)
    for rule in set(RULES) - {"one α, one β"}:  # which is fitted to what is measured
        pairs = zip(before.rules[rule].selections, after.rules[rule].selections, strict=True)
        for one, other in pairs:
            assert one[:11] == other[:11]
            assert one.regret == pytest.approx(other.regret, abs=1e-9)


@given(st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_ties_and_second_places_only_add_hits(seed: int) -> None:
    for rule in noisy(seed).rules.values():
        for each in rule.selections:
            assert each.regret >= 0
            assert each.hit_tied or not each.hit
            assert each.first_two is None or each.first_two or not each.hit
            assert each.first_two_tied is None or each.first_two_tied or not (each.first_two or each.hit_tied)


def test_every_model_repetition_and_metric_of_every_audit_is_a_selection() -> None:
    fleet = audits.fleet(0.1, 0.2)
    board = score([
        audits.audit(fleet, audits.as_predicted(fleet, repetitions=3), "1000"),
        audits.audit(fleet, audits.as_predicted(fleet, repetitions=1), "100"),
    ])  # fmt: skip
    assert len(board.planner.selections) == (3 + 1) * len(METRICS)
    assert len(board.configurations) == 2 * 4
    assert {name: found.best.of for name, found in board.breakdown("audit").items()} == {"1000": 12, "100": 4}
    assert {found.best for found in board.breakdown("metric").values()} == {Hits(4, 4)}
    assert list(board.breakdown("model")) == ["net"]


def test_errors_of_devices_alone_are_apart_from_those_of_clusters() -> None:
    fleet = audits.fleet(0.1, 0.2)

    def slower_together(run: MeasuredRun) -> MeasuredRun:
        return audits.faster(run, 0.9 if len(run.workers) > 1 else 1.0)

    board = score([audits.audit(fleet, audits.as_predicted(fleet, shake=slower_together))])
    alone, together = board.errors(alone=True)["step"].raw, board.errors(alone=False)["step"].raw
    assert alone is not None and together is not None
    assert (alone.number, together.number) == (2, 2)
    assert alone.worst_abs == pytest.approx(0.0, abs=1e-9)
    assert (together.mean_abs, together.median) == pytest.approx((0.1, -0.1))
    assert board.worst_run(alone=False) == pytest.approx(-0.1)
    assert board.errors(alone=False, audit="100", model="net") == board.errors(alone=False)
    assert board.errors(alone=False, audit="10")["step"].raw is None
    ours = board.rules[PLANNER].errors["time"]
    assert ours is not None and ours.mean_abs == pytest.approx(0.1)
    assert board.rules["all devices"].errors["time"] is None


def test_the_fitted_rule_is_told_with_its_numbers() -> None:
    board = noisy(1)
    assert board.fitted["100"].beta_time > 1
    fitted, bare = (board.rules[name].errors["time"] for name in ("one α, one β", "sum of rates"))
    assert fitted is not None and bare is not None and fitted.mean_abs < bare.mean_abs


def test_extrapolations_and_overheads_are_told() -> None:
    fleet = audits.fleet(0.1)
    foretold = (Extrapolation("net", "a", ("a",), 99.0, 100.0), Extrapolation("net", "a", ("a",), 103.0, 100.0))
    board = score([audits.audit(fleet, audits.as_predicted(fleet), extrapolations=foretold)])
    assert board.extrapolated() == pytest.approx(Spread(2, 0.02, 0.03, 0.01, -0.01, 0.03))
    assert [each.model for each in board.overheads["100"]] == ["net"]
    assert board.planner.summary is None  # one configuration leaves no choice


def test_of_no_errors_there_is_no_spread() -> None:
    assert Spread.of([None]) is None
    assert summarise([]) is None
    assert Hits.among([None]) is None
    assert str(Hits(228, 240)) == "228 of 240"
    assert Hits(3, 4).share == 0.75


def test_nothing_measured_and_labels_used_twice_are_refused() -> None:
    fleet = audits.fleet(0.1)
    with pytest.raises(AuditError, match="nothing was measured"):
        score([audits.audit(fleet, [])])
    with pytest.raises(AuditError, match="2 audits have the label 100"):
        score([audits.audit(fleet, audits.as_predicted(fleet))] * 2)


def test_scores_are_finite() -> None:
    for rule in noisy(3).rules.values():
        assert all(math.isfinite(each.regret) for each in rule.selections)


def test_of_a_repetition_with_a_missing_run_no_choice_is_counted() -> None:
    fleet = audits.fleet(0.1, 0.2)
    whole = audits.audit(fleet, audits.as_predicted(fleet, 2))
    board = score([whole._replace(missing=(("net", 2),))])
    assert {each.repetition for each in board.planner.selections} == {1}
    assert board.missing == {whole.label: 1}
    assert len(board.configurations) == len(score([whole]).configurations)


def test_what_is_measured_for_all_models_is_divided_among_them() -> None:
    steps = (profiles.step(0.09, model="small"), profiles.step(0.19, model="large"))
    device = profiles.device()._replace(steps=steps, took_s={"idle": 4.0, "small": 30.0, "large": 50.0})
    large, small = overheads(profiles.profile({"a": device}), 1000)
    assert (small.model, small.workers) == ("small", 1)
    assert small.profiling_s == pytest.approx(30 + (4 + 5) / 2)
    assert large.profiling_s == pytest.approx(50 + (4 + 5) / 2)
    assert small.share == pytest.approx(34.5 / 100)
    assert large.share == pytest.approx(54.5 / 200)


def test_devices_that_are_one_machine_are_timed_in_turn() -> None:
    local, far = ({"host": host, "port": None} for host in (None, "10.0.0.7"))
    devices = {name: profiles.device(**at) for name, at in {"a": local, "b": far, "c": local}.items()}
    took = {"a": 30.0, "b": 50.0, "c": 40.0}
    parts = {name: each._replace(took_s={"idle": 2.0, "net": took[name]}) for name, each in devices.items()}
    (found,) = overheads(profiles.profile(parts), 1000)
    assert found.profiling_s == pytest.approx((30 + 40) + (2 + 2) + 5)
