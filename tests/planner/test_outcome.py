"""Every expectation below is worked out by hand."""

from typing import Any

import pytest

from planner import outcome
from planner.errors import RecordError
from planner.outcome import Worker
from planner.planfile import PlannedWorker
from profilers.records import PowerReading, Window, encode
from tests.planner.plans import plan, planned

SENSOR = "sensor: wall"


def window(
    duration_s: float, watts: float | None, covers: str = "wall", source: str = "sensor"
) -> dict[str, Any]:
    reading = PowerReading("plug", source, covers, watts, 0.0, 5)
    made: dict[str, Any] = encode(Window(duration_s, {}, (reading,)))
    return made


def account(elapsed_s: float = 100.0, evaluations: Any = (), **steps: int) -> dict[str, Any]:
    return {
        "elapsed_s": elapsed_s,
        "evaluations": list(evaluations),
        "workers": {name: {"steps": done} for name, done in steps.items()},
    }


def one(worker: PlannedWorker, windows: Any = (), spent: Any = (), elapsed_s: float = 100.0) -> Worker:
    name = worker.name
    parts = outcome.workers(plan(worker), account(elapsed_s, a=60), {name: windows}, {name: spent})
    return parts[name]


def worker(steps: int, watts: float | None = 40.0, source: str = SENSOR) -> Worker:
    return Worker(steps, 0.0, 0.0, 0.0, watts, source)


def evaluated(step: int, seconds: float, by: str) -> dict[str, Any]:
    return {"step": step, "loss": 1.0, "accuracy": 0.5, "seconds": seconds, "worker": by}


# -- watts of a worker -----------------------------------------------------------------------------


def test_windows_count_by_their_length() -> None:
    part = one(planned("a"), [window(10.0, 20.0), window(30.0, 40.0)])
    assert (part.watts, part.source) == (35.0, SENSOR)


def test_of_nested_sensors_the_one_that_covers_most_counts_and_no_rail_counts_twice() -> None:
    readings = (
        PowerReading("ina:board", "sensor", "board", 9.0, 0.0, 5),
        PowerReading("ina:gpu", "sensor", "rail", 5.0, 0.0, 5),
        PowerReading("ina:cpu", "sensor", "rail", 2.0, 0.0, 5),
    )
    part = one(planned("a"), [encode(Window(10.0, {}, readings))])
    assert (part.watts, part.source) == (9.0, "sensor: board")


def test_a_window_without_watts_does_not_pull_the_mean_down() -> None:
    assert one(planned("a"), [window(10.0, None), window(10.0, 30.0)]).watts == 30.0


def test_without_sensors_the_plan_s_watts_at_the_measured_busy_share() -> None:
    # 50 s of steps, 10 s of evaluation and 6 s of exchanges on one of two cores in 100 s: 10 + 0.63 (50 - 10)
    part = one(planned("a"), [window(100.0, None)], [(30, 30.0, 5.0, 4.0, 2.0), (30, 20.0, 5.0, 6.0, 4.0)])
    assert part.watts == pytest.approx(35.2)
    assert part.source == "fleet file, at the measured busy share"
    assert (part.steps, part.busy_s, part.exchange_s, part.evaluation_s) == (60, 50.0, 10.0, 10.0)


def test_nobody_is_busy_for_longer_than_the_run() -> None:
    assert one(planned("a"), spent=[(60, 120.0, 0.0, 0.0, 0.0)]).watts == 50.0


def test_a_run_of_no_time_is_idle() -> None:
    assert one(planned("a"), elapsed_s=0.0).watts == 10.0


@pytest.mark.parametrize("unknown", [{"idle_w": None}, {"busy_w": None}])
def test_unknown_watts_are_none_and_never_zero(unknown: dict[str, None]) -> None:
    part = one(planned("a", **unknown))
    assert (part.watts, part.source) == (None, "unavailable")


def test_a_worker_that_never_joined_made_no_steps() -> None:
    parts = outcome.workers(plan(planned("b")), account(a=60), {"b": []}, {"b": []})
    assert (parts["b"].steps, parts["b"].busy_s) == (0, 0.0)


@pytest.mark.parametrize("watts", [30.0, None])
def test_an_emulated_device_is_labelled_whatever_its_watts_come_from(watts: float | None) -> None:
    made = planned("a")._replace(power_source="emulated (slowdown 4), fleet file")
    assert one(made, [window(10.0, watts)]).source.startswith("emulated")


def test_a_window_that_does_not_fit_is_named() -> None:
    with pytest.raises(RecordError, match=r"a\.window: missing 'counters'"):
        one(planned("a"), [{"duration_s": 1.0, "power": []}])


# -- the run ---------------------------------------------------------------------------------------


def test_evaluations_on_the_way_are_taken_off_the_time_by_the_evaluator_s_share() -> None:
    # a made 3 of 4 steps and evaluated for 8 s: 6 s lost; b 1 of 4 and 4 s: 1 s; the last is outside
    parts = {"a": worker(75), "b": worker(25)}
    evaluations = [evaluated(40, 8.0, "a"), evaluated(80, 4.0, "b"), evaluated(100, 9.0, "a")]
    made = outcome.result(plan(planned("a"), planned("b")), account(107.0, evaluations), parts, {})
    assert made["measured"]["evaluation_s"] == pytest.approx(7.0)
    assert made["measured"]["time_s"] == pytest.approx(100.0)
    assert made["measured"]["wall_s"] == 107.0


def test_energy_and_edp_follow_from_time_and_power_and_errors_from_both() -> None:
    parts = {"a": worker(50), "b": worker(50, watts=60.0)}
    made = outcome.result(plan(planned("a"), planned("b")), account(125.0), parts, {"a": 0.5})
    assert made["predicted"] == {"time_s": 100.0, "power_w": 80.0, "energy_j": 8000.0, "edp_js": 800_000.0}
    assert made["measured"] == {
        "time_s": 125.0, "power_w": 100.0, "energy_j": 12_500.0, "edp_js": 1_562_500.0,
        "wall_s": 125.0, "evaluation_s": 0.0,
    }  # fmt: skip
    assert made["error"] == pytest.approx(
        {"time_s": -0.2, "power_w": -0.2, "energy_j": -0.36, "edp_js": -0.488}
    )
    assert made["workers"]["a"]["predicted_steps"] == 50.0
    assert (made["workers"]["a"]["build_s"], made["workers"]["b"]["build_s"]) == (0.5, None)


def test_one_unknown_worker_makes_the_total_unknown_and_leaves_the_time() -> None:
    parts = {"a": worker(50), "b": worker(50, watts=None, source="unavailable")}
    made = outcome.result(plan(planned("a"), planned("b")), account(125.0), parts, {})
    assert [made["measured"][key] for key in ("power_w", "energy_j", "edp_js")] == [None, None, None]
    assert made["error"] == {"time_s": pytest.approx(-0.2), "power_w": None, "energy_j": None, "edp_js": None}
    assert made["power_sources"] == [SENSOR, "unavailable"]


def test_an_unknown_prediction_is_no_error_of_zero() -> None:
    made = outcome.result(plan(planned("a"), power_w=None), account(125.0), {"a": worker(100)}, {})
    assert (made["predicted"]["energy_j"], made["error"]["energy_j"]) == (None, None)


def test_a_resumed_run_is_compared_with_the_steps_it_made_itself() -> None:
    # 40 of 100 steps were left, at 2 s each
    made = outcome.result(plan(planned("a")), account(80.0), {"a": worker(40)}, {})
    assert (made["steps"], made["steps_made"]) == (100, 40)
    assert made["predicted"]["time_s"] == pytest.approx(80.0)
    assert made["error"]["time_s"] == pytest.approx(0.0)
    assert made["workers"]["a"]["predicted_steps"] == pytest.approx(40.0)
