"""A result puts measured beside predicted figures; all expectations are worked out by hand."""

import json
from collections.abc import Iterable

import pytest

from backends.protocol.events import Evaluated, MemberProgress, RunAccount
from backends.training.stopping import NO_IMPROVEMENT, MetricTarget, StopRule
from planner.provenance import Provenance
from planner.train.result import end_of, learning_notes, run_result
from planner.train.worker_result import WorkerResult
from profilers.records.json_values import json_value
from tests.planner.plans import NAMEPLATE, plan, planned

METRICS = ("time_s", "power_w", "energy_j", "edp_js")
SENSOR = Provenance("sensor", ("wall",))
ESTIMATED = NAMEPLATE._replace(detail="fleet file, at the measured busy share")


def account(elapsed_s: float = 100.0, evaluations: Iterable[Evaluated] = (), **steps: int) -> RunAccount:
    members = {name: MemberProgress(done, None, 0, None, False) for name, done in steps.items()}
    total = sum(steps.values())
    return RunAccount(total, total, elapsed_s, members, True, evaluations=tuple(evaluations))


def worker(
    steps: int, watts: float | None = 40.0, source: Provenance = SENSOR, error: float | None = None
) -> WorkerResult:
    return WorkerResult(steps, 0.0, 0.0, 0.0, watts, source, error)


def evaluated(step: int, seconds: float, by: str) -> Evaluated:
    return Evaluated(step, by, 1.0, {"accuracy": 0.5}, seconds)


# -- the run ---------------------------------------------------------------------------------------


def test_evaluations_on_the_way_are_taken_off_the_time_by_the_evaluator_s_share() -> None:
    # a made 3 of 4 steps and evaluated for 8 s: 6 s lost; b 1 of 4 and 4 s: 1 s;
    # the last evaluation comes after the last step.
    parts = {"a": worker(75), "b": worker(25)}
    evaluations = [evaluated(40, 8.0, "a"), evaluated(80, 4.0, "b"), evaluated(100, 9.0, "a")]
    made = run_result(plan(planned("a"), planned("b")), account(107.0, evaluations), parts)
    assert made["measured"]["evaluation_s"] == pytest.approx(7.0)
    assert made["measured"]["time_s"] == pytest.approx(100.0)
    assert made["measured"]["wall_s"] == 107.0


def test_evaluations_are_predicted_by_the_samples_that_they_had() -> None:
    # a sample took 0.01 s on a and 0.02 s on b: 2 s, of which a's share counts, and 8 s, of b's.
    parts = {"a": worker(75), "b": worker(25)}
    evaluations = [evaluated(40, 3.0, "a")._replace(samples=200), evaluated(80, 9.0, "b")._replace(samples=400)]
    workers = planned("a")._replace(evaluation_s=0.01), planned("b")._replace(evaluation_s=0.02)
    made = run_result(plan(*workers), account(107.0, evaluations), parts)
    assert made["predicted"]["evaluation_s"] == pytest.approx(0.75 * 2.0 + 0.25 * 8.0)
    assert made["predicted"]["wall_s"] == pytest.approx(made["predicted"]["time_s"] + 3.5)
    unknown = run_result(plan(planned("a"), planned("b")), account(107.0, evaluations), parts)
    assert (unknown["predicted"]["evaluation_s"], unknown["predicted"]["wall_s"]) == (None, None)


def test_energy_and_edp_follow_from_time_and_power_and_errors_from_both() -> None:
    parts = {"a": worker(50)._replace(build_s=0.5, sender={"cnc_ratio": 0.25}), "b": worker(50, watts=60.0)}
    made = run_result(plan(planned("a"), planned("b")), account(125.0), parts)
    assert {key: made["predicted"][key] for key in METRICS} == {
        "time_s": 100.0, "power_w": 80.0, "energy_j": 8000.0, "edp_js": 800_000.0,
    }  # fmt: skip
    assert {key: made["measured"][key] for key in (*METRICS, "wall_s", "evaluation_s")} == {
        "time_s": 125.0, "power_w": 100.0, "energy_j": 12_500.0, "edp_js": 1_562_500.0,
        "wall_s": 125.0, "evaluation_s": 0.0,
    }  # fmt: skip
    assert made["error"] == pytest.approx({"time_s": -0.2, "power_w": -0.2, "energy_j": -0.36, "edp_js": -0.488})
    assert made["workers"]["a"]["predicted_steps"] == 50.0
    assert (made["workers"]["a"]["build_s"], made["workers"]["b"]["build_s"]) == (0.5, None)
    assert (made["workers"]["a"]["sender"], made["workers"]["b"]["sender"]) == ({"cnc_ratio": 0.25}, {})


def test_one_unknown_worker_makes_the_total_unknown_and_leaves_the_time() -> None:
    parts = {"a": worker(50), "b": worker(50, watts=None, source=Provenance("unavailable"))}
    made = run_result(plan(planned("a"), planned("b")), account(125.0), parts)
    assert [made["measured"][key] for key in ("power_w", "energy_j", "edp_js")] == [None, None, None]
    assert made["error"] == {"time_s": pytest.approx(-0.2), "power_w": None, "energy_j": None, "edp_js": None}
    assert made["measured"]["provenance"]["kind"] == "unavailable"


def test_watts_besides_the_workers_are_in_the_measured_power_as_in_the_predicted() -> None:
    made_plan = plan(planned("a"), power_w=90.0)._replace(besides_w=50.0)
    made = run_result(made_plan, account(100.0), {"a": worker(100)})
    assert (made["besides_w"], made["measured"]["power_w"], made["error"]["power_w"]) == (50.0, 90.0, 0.0)
    unknown = run_result(made_plan, account(100.0), {"a": worker(100, watts=None)})
    assert unknown["measured"]["power_w"] is None


def test_a_resumed_run_is_compared_with_the_steps_it_made_itself() -> None:
    # 40 of 100 steps were left, at 2 s each
    made = run_result(plan(planned("a")), account(80.0), {"a": worker(40)})
    assert (made["steps"], made["steps_made"]) == (100, 40)
    assert made["predicted"]["time_s"] == pytest.approx(80.0)
    assert made["error"]["time_s"] == pytest.approx(0.0)
    assert made["workers"]["a"]["predicted_steps"] == pytest.approx(40.0)


# -- provenance, uncertainty and contradictions ----------------------------------------------------


def test_every_figure_says_where_it_comes_from() -> None:
    parts = {"a": worker(50), "b": worker(50, source=ESTIMATED)}
    made = run_result(plan(planned("a"), planned("b")), account(125.0), parts)
    assert made["workers"]["a"]["provenance"] == {"kind": "sensor", "covers": ["wall"], "emulated": False, "detail": ""}
    assert made["measured"]["provenance"]["kind"] == "nameplate"
    assert made["measured"]["provenance"]["detail"].endswith("in part sensor")
    assert made["predicted"]["provenance"] == json_value(NAMEPLATE)
    json.dumps(made, allow_nan=False)


def test_the_uncertainty_of_the_energy_is_that_of_all_workers_watts() -> None:
    parts = {"a": worker(50, 30.0, error=0.1), "b": worker(50, 40.0, error=0.1)}
    two = plan(planned("a"), planned("b"))._replace(energy_uncertainty=0.03)
    made = run_result(two, account(125.0), parts)
    assert made["measured"]["energy_uncertainty"] == pytest.approx(1.96 * 5 / 70, rel=1e-3)
    assert made["predicted"]["energy_uncertainty"] == 0.03
    parts["b"] = worker(50, 40.0)
    assert run_result(two, account(125.0), parts)["measured"]["energy_uncertainty"] is None


@pytest.mark.parametrize(
    ("strategy", "steps", "told"), [("dlion", 50, True), ("dlion", 100, False), ("baseline", 50, False)]
)
def test_batches_that_grow_make_a_scaled_prediction_worth_a_note(strategy: str, steps: int, told: bool) -> None:
    made = run_result(plan(planned("a"), strategy=strategy), account(100.0), {"a": worker(steps)})
    assert any("recommend --steps" in note for note in made["notes"]) == told


@pytest.mark.parametrize(
    ("loss", "classes", "learnt"), [(2.29, 10, True), (2.303, 10, False), (0.6, 2, True), (0.7, 2, False)]
)
def test_a_loss_that_is_no_better_than_guessing_is_told(loss: float, classes: int, learnt: bool) -> None:
    notes = learning_notes(
        [Evaluated(step, "a", each, {"accuracy": 0.5}, 1.0) for step, each in enumerate((9.0, loss))], classes
    )
    assert (notes == []) == learnt
    assert all("lower the learning rate" in note for note in notes)
    assert learning_notes([], classes) == []


def test_a_time_outside_of_its_interval_is_explained() -> None:
    expected = plan(planned("a")._replace(computing_s=2.0))._replace(time_uncertainty=0.1)
    slow = worker(100)._replace(busy_s=230.0)
    (note,) = run_result(expected, account(115.0), {"a": slow})["notes"]
    assert note.startswith("the run took 115 s, longer than the predicted 90.9 s to 110 s (95 % interval)")
    assert "computing was slower than profiled (a: 2.30 s a step, predicted 2.00 s)" in note
    assert run_result(expected, account(105.0), {"a": slow})["notes"] == []
    assert run_result(expected, account(125.0), {"a": worker(0)})["notes"] == []


@pytest.mark.parametrize(("wanted", "reached", "step"), [(0.5, True, 40), (0.9, False, None)])
def test_the_result_tells_whether_the_target_was_reached_and_when(wanted: float, reached: bool, step: int) -> None:
    courses = [evaluated(step, 0.1, "a")._replace(metrics={"accuracy": step / 80}) for step in (20, 40, 60)]
    ended = end_of(account(evaluations=courses), StopRule(MetricTarget("accuracy", wanted)))
    target = {"metric": "accuracy", "value": wanted, "reached": reached, "step": step}
    assert ended == {"ended": None, "target": target}
    early = account()._replace(finished=False, reason=NO_IMPROVEMENT)
    assert end_of(early, StopRule(patience=3)) == {"ended": NO_IMPROVEMENT, "target": None}
