"""A worker's result has its time and its power; all expectations are worked out by hand."""

from typing import Any

import pytest

from backends.protocol.events import MemberProgress, RunAccount, TimeSpent
from planner.plan.file import PlannedWorker
from planner.profile.power_history import PowerHistory
from planner.provenance import Provenance
from planner.train.telemetry import NO_REPORT, MemberReports
from planner.train.worker_result import WorkerResult, worker_results
from profilers.records.readings import PowerReading, Window
from tests.planner.plans import NAMEPLATE, plan, planned

SENSOR = Provenance("sensor", ("wall",))


def window(duration_s: float, watts: float | None, covers: str = "wall", source: str = "sensor") -> Window:
    return Window(duration_s, {}, (PowerReading("plug", source, covers, watts, 0.0, 5),))


def account(elapsed_s: float = 100.0, **steps: int) -> RunAccount:
    members = {name: MemberProgress(done, None, 0, None, False) for name, done in steps.items()}
    total = sum(steps.values())
    return RunAccount(total, total, elapsed_s, members, True)


def telemetry(names: str, windows: Any = (), spent: Any = ()) -> dict[str, MemberReports]:
    """Of members that all reported the same."""
    starts = [NO_REPORT._replace(spent=each) for each in spent or [TimeSpent()]]
    power = PowerHistory()
    for window in windows:
        power.add(window)
    return {name: MemberReports(power, starts) for name in names}


def one(worker: PlannedWorker, windows: Any = (), spent: Any = (), elapsed_s: float = 100.0) -> WorkerResult:
    return worker_results(plan(worker), account(elapsed_s, a=60), telemetry(worker.name, windows, spent))[worker.name]


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


@pytest.mark.parametrize("covers", ["cpu", "gpu"])
def test_one_of_two_parts_of_a_kind_is_not_a_worker_s_watts(covers: str) -> None:
    readings = (
        PowerReading("0", "counter", covers, 100.0, 1.0, 5),
        PowerReading("1", "unavailable", covers, None, None, 5, "it goes backwards"),
    )
    part = one(planned("a", idle_w=None, busy_w=None), [Window(10.0, {}, readings)])
    assert (part.watts, part.provenance) == (None, Provenance("unavailable", detail="1: it goes backwards"))


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
    part = one(planned("a", source=planned_from), read)
    assert (part.watts, part.provenance) == (watts, source)


def test_windows_in_which_the_sensor_of_the_whole_failed_do_not_mix_with_the_others() -> None:
    assert one(planned("a"), [window(10.0, 40.0), window(10.0, 20.0, "gpu")]).watts == 40.0


def test_without_sensors_the_plan_s_watts_at_the_measured_busy_share() -> None:
    # 50 s of steps, 10 s of evaluation and 6 s of exchanges on one of two cores in 100 s:
    # 10 + 0.63 (50 - 10)
    part = one(
        planned("a"), [window(100.0, None)], [TimeSpent(30, 30.0, 5.0, 4.0, 2.0), TimeSpent(30, 20.0, 5.0, 6.0, 4.0)]
    )
    assert part.watts == pytest.approx(35.2)
    assert part.provenance == ESTIMATED
    assert (part.steps, part.busy_s, part.exchange_s, part.evaluation_s) == (60, 50.0, 10.0, 10.0)


def test_the_server_s_work_loads_its_host() -> None:
    # 40 s of steps in 100 s, and 20 s of the server on one of two cores: 10 + 0.5 (50 - 10)
    spent = [TimeSpent(60, 40.0)]
    ended = account(a=60)._replace(cpu_s=20.0)
    both = worker_results(plan(planned("a"), planned("b")), ended, telemetry("ab", spent=spent))
    assert (both["a"].watts, both["b"].watts) == pytest.approx((30.0, 26.0))


def test_nobody_is_busy_for_longer_than_the_run() -> None:
    assert one(planned("a"), spent=[TimeSpent(60, 120.0)]).watts == 50.0


@pytest.mark.parametrize("unknown", [{"idle_w": None}, {"busy_w": None}])
def test_unknown_watts_are_none_and_never_zero(unknown: dict[str, None]) -> None:
    part = one(planned("a", **unknown))
    assert (part.watts, part.provenance.kind) == (None, "unavailable")


def test_a_worker_that_never_joined_made_no_steps() -> None:
    parts = worker_results(plan(planned("b")), account(a=60), telemetry("b"))
    assert (parts["b"].steps, parts["b"].busy_s) == (0, 0.0)


@pytest.mark.parametrize("watts", [30.0, None])
def test_an_emulated_device_is_labelled_whatever_its_watts_come_from(watts: float | None) -> None:
    made = planned("a", source=NAMEPLATE._replace(emulated=True))
    assert one(made, [window(10.0, watts)]).provenance.emulated


def test_a_worker_s_error_is_the_spread_between_its_windows() -> None:
    part = one(planned("a"), [window(1.0, watts) for watts in (45.0, 55.0, 45.0, 55.0)])
    assert part.watts_error == pytest.approx(5.7735 / 2 / 50)


def test_a_worker_that_was_started_again_has_more_than_one_start() -> None:
    assert one(planned("a"), spent=[TimeSpent(30), TimeSpent(30)]).starts == 2
    assert one(planned("a")).starts == 1
