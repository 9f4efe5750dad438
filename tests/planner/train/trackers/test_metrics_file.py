"""The file is read back by Prometheus' own parser, whole at any time."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from backends.protocol.events import Evaluated, Joined, MemberProgress, MemberTelemetry, Progress, TimeSpent
from planner.agents.call import Event
from planner.train.event_log import EventReporter
from planner.train.events import LogFailed
from planner.train.trackers.figures import MEANINGS, RunFigures
from planner.train.trackers.metrics_file import MetricsFile
from profilers.records.readings import PowerReading, Window
from tests.planner.plans import plan, planned

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(path: Path) -> Samples:
    """Values by name and labels."""
    found: Samples = {}
    for family in text_string_to_metric_families(path.read_text()):
        name = family.name.removeprefix("planner_")
        assert family.documentation == MEANINGS.get(name) or name == "run_active"
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return f"planner_{name}", frozenset({"run": "r 1", **labels}.items())


def telemetry(source: str) -> MemberTelemetry:
    return MemberTelemetry(Window(1.0, {}, (PowerReading("x", source, "board", 7.5, 0.0, 5),)), TimeSpent(30, 3.0, 1.0))


def test_the_newest_figures_are_there_with_the_run_and_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "run.prom"
    file = MetricsFile(path, "r 1", RunFigures(plan(planned("a"), planned("b"))))
    assert samples(path) == {key("run_active"): 1.0}
    for done in (10, 30):
        members = {name: MemberProgress(done // 2, 1.0, done, None, name == "a") for name in "ab"}
        file.add("server", Progress(done, 100, done / 5, members))
    file.add("a", Evaluated(20, "a", 0.25, {"accuracy": 0.5, "f1": 0.75}, 1.0))
    file.add("a", Joined("a"))
    found = samples(path)
    assert found[key("steps_done")] == 30
    assert found[key("steps_per_second")] == 5.0
    assert found[key("worker_bytes_total", worker="b")] == 30
    assert (found[key("worker_connected", worker="a")], found[key("worker_connected", worker="b")]) == (1, 0)
    assert found[key("test_loss")] == 0.25
    assert (found[key("test_metric", metric="accuracy")], found[key("test_metric", metric="f1")]) == (0.5, 0.75)
    file.close()
    assert samples(path) == {**found, key("run_active"): 0.0}
    assert list(tmp_path.iterdir()) == [path]


def test_watts_are_labelled_with_their_source_and_only_the_newest_source_is_there(tmp_path: Path) -> None:
    path = tmp_path / "run.prom"
    file = MetricsFile(path, "r 1", RunFigures(plan(planned("a"))))
    for source in ("sensor", "model"):
        file.add("a", telemetry(source))
    watts = {labels: value for (name, labels), value in samples(path).items() if name == "planner_worker_power_watts"}
    of = {"run": "r 1", "worker": "a", "source": "power model of the board"}
    assert watts == {frozenset(of.items()): 7.5}


def test_a_folder_that_is_gone_is_reported_once_and_the_file_comes_back_with_it(tmp_path: Path) -> None:
    path = tmp_path / "collector" / "run.prom"
    path.parent.mkdir()
    file = MetricsFile(path, "r 1", RunFigures(plan(planned("a"))))
    told: list[Event] = []
    reporter = EventReporter(tmp_path / "events.jsonl", lambda _, event: told.append(event), (file,))
    path.unlink()
    path.parent.rmdir()
    for _ in range(2):
        reporter.report("a", telemetry("sensor"))
    assert told == [LogFailed(f"{path}: No such file or directory"), telemetry("sensor"), telemetry("sensor")]
    path.parent.mkdir()
    reporter.close()
    assert samples(path)[key("run_active")] == 0.0
