"""Every expectation below is worked out by hand."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from backends.protocol.events import Evaluated, MemberProgress, RunAccount, TimeSpent
from backends.strategies.strategy import Strategy
from planner.plan.file import PlannedWorker
from planner.provenance import Provenance
from planner.train import result
from planner.train.result import WorkerResult
from profilers.records import PowerReading, Window, encode
from tests.planner.plans import NAMEPLATE, plan, planned

METRICS = ("time_s", "power_w", "energy_j", "edp_js")
SENSOR = Provenance("sensor", ("wall",))


def window(duration_s: float, watts: float | None, covers: str = "wall", source: str = "sensor") -> Window:
    return Window(duration_s, {}, (PowerReading("plug", source, covers, watts, 0.0, 5),))


def account(elapsed_s: float = 100.0, evaluations: Iterable[Evaluated] = (), **steps: int) -> RunAccount:
    members = {name: MemberProgress(done, None, 0, None, False) for name, done in steps.items()}
    total = sum(steps.values())
    return RunAccount(total, total, elapsed_s, members, True, evaluations=tuple(evaluations))


def one(worker: PlannedWorker, windows: Any = (), spent: Any = (), elapsed_s: float = 100.0) -> WorkerResult:
    name = worker.name
    parts = result.workers(plan(worker), account(elapsed_s, a=60), {name: windows}, {name: spent})
    return parts[name]


def worker(
    steps: int, watts: float | None = 40.0, source: Provenance = SENSOR, error: float | None = None
) -> WorkerResult:
    return WorkerResult(steps, 0.0, 0.0, 0.0, watts, source, error)


def evaluated(step: int, seconds: float, by: str) -> Evaluated:
    return Evaluated(step, by, 1.0, 0.5, seconds)


# -- watts of a worker -----------------------------------------------------------------------------


def test_windows_count_by_their_length() -> None:
    part = one(planned("a"), [window(10.0, 20.0), window(30.0, 40.0)])
    assert (part.watts, part.provenance) == (35.0, SENSOR)


def test_of_nested_sensors_the_one_that_covers_most_counts_and_no_rail_counts_twice() -> None:
    readings = (
        PowerReading("ina:board", "sensor", "board", 9.0, 0.0, 5),
        PowerReading("ina:gpu", "sensor", "rail", 5.0, 0.0, 5),
        PowerReading("ina:cpu", "sensor", "rail", 2.0, 0.0, 5),
    )
    part = one(planned("a"), [Window(10.0, {}, readings)])
    assert (part.watts, part.provenance) == (9.0, Provenance("sensor", ("board",)))


def test_a_window_without_watts_does_not_pull_the_mean_down() -> None:
    assert one(planned("a"), [window(10.0, None), window(10.0, 30.0)]).watts == 30.0


PARTIAL = Provenance("sensor", ("gpu",))
BUSY_SHARE = "at the measured busy share"
ESTIMATED = NAMEPLATE._replace(detail=f"fleet file, {BUSY_SHARE}")


@pytest.mark.parametrize(
    ("planned_from", "covers", "watts", "source"),
    [
        (NAMEPLATE, "wall", 30.0, SENSOR),
        (NAMEPLATE, "gpu", 10.0, ESTIMATED),
        (NAMEPLATE, None, 10.0, ESTIMATED),
        (SENSOR, "gpu", 10.0, Provenance("model", ("wall",), detail=BUSY_SHARE)),
        (PARTIAL, "wall", 30.0, SENSOR),
        (PARTIAL, "gpu", 30.0, PARTIAL),
        (PARTIAL, None, 10.0, Provenance("model", ("gpu",), detail=BUSY_SHARE)),
    ],
)
def test_measured_watts_cover_what_predicted_watts_do(
    planned_from: Provenance, covers: str | None, watts: float, source: Provenance
) -> None:
    read = [window(10.0, 30.0, covers)] if covers else [window(10.0, None)]
    part = one(planned("a")._replace(power_source=planned_from), read)
    assert (part.watts, part.provenance) == (watts, source)


def test_a_part_s_sensor_counts_where_nothing_else_is_known() -> None:
    part = one(planned("a", idle_w=None, busy_w=None), [window(10.0, 30.0, "gpu")])
    assert (part.watts, part.provenance) == (30.0, PARTIAL)


def test_windows_in_which_the_sensor_of_the_whole_failed_do_not_mix_with_the_others() -> None:
    assert one(planned("a"), [window(10.0, 40.0), window(10.0, 20.0, "gpu")]).watts == 40.0


def test_without_sensors_the_plan_s_watts_at_the_measured_busy_share() -> None:
    # 50 s of steps, 10 s of evaluation and 6 s of exchanges on one of two cores in 100 s: 10 + 0.63 (50 - 10)
    part = one(
        planned("a"), [window(100.0, None)], [TimeSpent(30, 30.0, 5.0, 4.0, 2.0), TimeSpent(30, 20.0, 5.0, 6.0, 4.0)]
    )
    assert part.watts == pytest.approx(35.2)
    assert part.provenance == ESTIMATED
    assert (part.steps, part.busy_s, part.exchange_s, part.evaluation_s) == (60, 50.0, 10.0, 10.0)


def test_the_server_s_work_loads_its_host_and_a_device_alone_has_no_server() -> None:
    # 40 s of steps in 100 s, and 20 s of the server on one of two cores: 10 + 0.5 (50 - 10)
    spent = [TimeSpent(60, 40.0)]
    told = account(a=60)._replace(cpu_s=20.0)
    both = result.workers(plan(planned("a"), planned("b")), told, {"a": [], "b": []}, {"a": spent, "b": spent})
    assert (both["a"].watts, both["b"].watts) == pytest.approx((30.0, 26.0))
    alone = result.workers(plan(planned("a")), told, {"a": []}, {"a": spent})
    assert alone["a"].watts == pytest.approx(26.0)


def test_nobody_is_busy_for_longer_than_the_run() -> None:
    assert one(planned("a"), spent=[TimeSpent(60, 120.0)]).watts == 50.0


def test_a_run_of_no_time_is_idle() -> None:
    assert one(planned("a"), elapsed_s=0.0).watts == 10.0


@pytest.mark.parametrize("unknown", [{"idle_w": None}, {"busy_w": None}])
def test_unknown_watts_are_none_and_never_zero(unknown: dict[str, None]) -> None:
    part = one(planned("a", **unknown))
    assert (part.watts, part.provenance.kind) == (None, "unavailable")


def test_a_worker_that_never_joined_made_no_steps() -> None:
    parts = result.workers(plan(planned("b")), account(a=60), {"b": []}, {"b": []})
    assert (parts["b"].steps, parts["b"].busy_s) == (0, 0.0)


@pytest.mark.parametrize("watts", [30.0, None])
def test_an_emulated_device_is_labelled_whatever_its_watts_come_from(watts: float | None) -> None:
    made = planned("a")._replace(power_source=NAMEPLATE._replace(emulated=True))
    assert one(made, [window(10.0, watts)]).provenance.emulated


# -- the run ---------------------------------------------------------------------------------------


def test_evaluations_on_the_way_are_taken_off_the_time_by_the_evaluator_s_share() -> None:
    # a made 3 of 4 steps and evaluated for 8 s: 6 s lost; b 1 of 4 and 4 s: 1 s; the last is outside
    parts = {"a": worker(75), "b": worker(25)}
    evaluations = [evaluated(40, 8.0, "a"), evaluated(80, 4.0, "b"), evaluated(100, 9.0, "a")]
    made = result.result(plan(planned("a"), planned("b")), account(107.0, evaluations), parts, {}, {})
    assert made["measured"]["evaluation_s"] == pytest.approx(7.0)
    assert made["measured"]["time_s"] == pytest.approx(100.0)
    assert made["measured"]["wall_s"] == 107.0


def test_energy_and_edp_follow_from_time_and_power_and_errors_from_both() -> None:
    parts = {"a": worker(50), "b": worker(50, watts=60.0)}
    told = {"a": {"cnc_ratio": 0.25}}
    made = result.result(plan(planned("a"), planned("b")), account(125.0), parts, {"a": 0.5}, told)
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
    made = result.result(plan(planned("a"), planned("b")), account(125.0), parts, {}, {})
    assert [made["measured"][key] for key in ("power_w", "energy_j", "edp_js")] == [None, None, None]
    assert made["error"] == {"time_s": pytest.approx(-0.2), "power_w": None, "energy_j": None, "edp_js": None}
    assert made["measured"]["provenance"]["kind"] == "unavailable"


def test_watts_besides_the_workers_are_in_the_measured_power_as_in_the_predicted() -> None:
    made_plan = plan(planned("a"), power_w=90.0)._replace(besides_w=50.0)
    made = result.result(made_plan, account(100.0), {"a": worker(100)}, {}, {})
    assert (made["besides_w"], made["measured"]["power_w"], made["error"]["power_w"]) == (50.0, 90.0, 0.0)
    unknown = result.result(made_plan, account(100.0), {"a": worker(100, watts=None)}, {}, {})
    assert unknown["measured"]["power_w"] is None


def test_an_unknown_prediction_is_no_error_of_zero() -> None:
    made = result.result(plan(planned("a"), power_w=None), account(125.0), {"a": worker(100)}, {}, {})
    assert (made["predicted"]["energy_j"], made["error"]["energy_j"]) == (None, None)


def test_a_resumed_run_is_compared_with_the_steps_it_made_itself() -> None:
    # 40 of 100 steps were left, at 2 s each
    made = result.result(plan(planned("a")), account(80.0), {"a": worker(40)}, {}, {})
    assert (made["steps"], made["steps_made"]) == (100, 40)
    assert made["predicted"]["time_s"] == pytest.approx(80.0)
    assert made["error"]["time_s"] == pytest.approx(0.0)
    assert made["workers"]["a"]["predicted_steps"] == pytest.approx(40.0)


# -- provenance, uncertainty and contradictions ------------------------------------------------------


def test_every_figure_says_where_it_comes_from() -> None:
    parts = {"a": worker(50), "b": worker(50, source=ESTIMATED)}
    made = result.result(plan(planned("a"), planned("b")), account(125.0), parts, {}, {})
    assert made["workers"]["a"]["provenance"] == {"kind": "sensor", "covers": ["wall"], "emulated": False, "detail": ""}
    assert made["measured"]["provenance"]["kind"] == "nameplate"
    assert made["measured"]["provenance"]["detail"].endswith("in part sensor")
    assert made["predicted"]["provenance"] == encode(NAMEPLATE)
    json.dumps(made, allow_nan=False)


def test_the_uncertainty_of_the_energy_is_that_of_all_workers_watts() -> None:
    parts = {"a": worker(50, 30.0, error=0.1), "b": worker(50, 40.0, error=0.1)}
    two = plan(planned("a"), planned("b"))._replace(energy_uncertainty=0.03)
    made = result.result(two, account(125.0), parts, {}, {})
    assert made["measured"]["energy_uncertainty"] == pytest.approx(1.96 * 5 / 70, rel=1e-3)
    assert made["predicted"]["energy_uncertainty"] == 0.03
    parts["b"] = worker(50, 40.0)
    assert result.result(two, account(125.0), parts, {}, {})["measured"]["energy_uncertainty"] is None


def test_a_worker_s_error_is_the_spread_between_its_windows() -> None:
    part = one(planned("a"), [window(1.0, watts) for watts in (45.0, 55.0, 45.0, 55.0)])
    assert part.watts_error == pytest.approx(5.7735 / 2 / 50)


def test_sensors_that_contradict_each_other_over_a_run_are_told() -> None:
    readings = tuple(PowerReading(covers, "sensor", covers, w, 0.0, 5) for covers, w in (("wall", 20.0), ("gpu", 30.0)))
    part = one(planned("a"), [Window(10.0, {}, readings)] * 3)
    made = result.result(plan(planned("a")), account(100.0), {"a": part}, {}, {})
    assert made["notes"] == ["a: gpu (gpu) 30 W exceeds wall (wall) 20 W, which contains it"]


@pytest.mark.parametrize(
    ("strategy", "steps", "told"), [("dlion", 50, True), ("dlion", 100, False), ("baseline", 50, False)]
)
def test_batches_that_grow_make_a_scaled_prediction_worth_a_note(strategy: str, steps: int, told: bool) -> None:
    made = result.result(
        plan(planned("a"))._replace(strategy=Strategy.from_text(strategy)), account(100.0), {"a": worker(steps)}, {}, {}
    )
    assert any("recommend --steps" in note for note in made["notes"]) == told


@pytest.mark.parametrize(
    ("loss", "classes", "learnt"), [(2.29, 10, True), (2.303, 10, False), (0.6, 2, True), (0.7, 2, False)]
)
def test_a_loss_that_is_no_better_than_guessing_is_told(loss: float, classes: int, learnt: bool) -> None:
    notes = result.learnt([Evaluated(step, "a", each, 0.5, 1.0) for step, each in enumerate((9.0, loss))], classes)
    assert (notes == []) == learnt
    assert all("lower the learning rate" in note for note in notes)
    assert result.learnt([], classes) == []
