"""What is written is read back by TensorBoard itself."""

from pathlib import Path

from backends.protocol.events import Evaluated, Joined, MemberProgress, MemberTelemetry, Progress, TimeSpent
from planner.agents.call import Event
from planner.provenance import Provenance
from planner.train.event_log import EventReporter
from planner.train.events import LogFailed
from planner.train.trackers.figures import RunFigures
from planner.train.trackers.tensorboard_file import TensorBoardFile
from profilers.records.readings import PowerReading, Window
from tests.planner.plans import plan, planned
from tests.tensorboards import scalars

STAND_IN = planned("tx2", source=Provenance("nameplate", ("board",), emulated=True))
PLAN = plan(STAND_IN)


def test_figures_are_scalars_by_name_and_worker_or_metric(tmp_path: Path) -> None:
    file = TensorBoardFile(tmp_path / "logs" / "run", RunFigures(PLAN))
    file.add("server", Progress(10, 100, 2.0, {"tx2": MemberProgress(10, 1.5, 64, None, True)}))
    file.add("server", Progress(30, 100, 4.0, {"tx2": MemberProgress(30, 1.0, 96, None, True)}))
    file.add("tx2", Evaluated(20, "tx2", 0.25, {"accuracy": 0.5}, 1.0))
    watts = PowerReading("chip", "sensor", "board", 7.5, 0.0, 5)
    file.add("tx2", MemberTelemetry(Window(1.0, {}, (watts,)), TimeSpent(30, 3.0, 1.0)))
    file.add("tx2", Joined("tx2"))
    file.close()
    found = scalars(tmp_path / "logs" / "run")
    assert found["train_loss"] == found["worker_loss/tx2"] == [(10, 1.5), (30, 1.0)]
    assert found["steps_per_second"] == [(30, 10.0)]
    assert found["worker_bytes/tx2"] == [(10, 64.0), (30, 96.0)]
    assert (found["test_loss"], found["test_metric/accuracy"]) == ([(20, 0.25)], [(20, 0.5)])
    assert found["worker_power_watts/tx2"] == [(30, 7.5)]
    assert found["worker_exchange_share/tx2"] == [(30, 0.25)]


def test_figures_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    file = TensorBoardFile(tmp_path, RunFigures(PLAN))
    file.add("tx2", Evaluated(20, "tx2", 0.25, {}, 1.0))
    assert scalars(tmp_path)["test_loss"] == [(20, 0.25)]
    file.close()


def test_a_full_disk_is_reported_once_and_the_run_goes_on(tmp_path: Path) -> None:
    file = TensorBoardFile(tmp_path / "run", RunFigures(PLAN))
    file._writer._py_recordio_writer._writer = open("/dev/full", "wb")  # noqa: SIM115 - the writer closes it
    told: list[Event] = []
    reporter = EventReporter(tmp_path / "events.jsonl", lambda _, event: told.append(event), (file,))
    events = [Evaluated(step, "tx2", 0.25, {}, 1.0) for step in range(100)]  # far more than a queue would hold
    for event in events:
        reporter.report("tx2", event)
    reporter.close()
    assert told == [LogFailed(f"{tmp_path}/run: No space left on device"), *events]
