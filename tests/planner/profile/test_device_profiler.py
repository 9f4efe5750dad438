"""The samples that arrive at a device are counted, by an agent that is made up."""

from pathlib import Path
from typing import Any, cast

from backends.protocol import orders
from backends.streams.spec import StreamSpec
from planner.agents.client import AgentClient
from planner.errors import AgentError
from planner.fleet.device import Device
from planner.profile.device_profiler import DeviceProfiler
from planner.profile.file import DeviceProfile, Profile, load_profile
from planner.profile.recorder import ProfileRecorder
from planner.profile.request import ProfileRequest
from planner.profile.reuse import declared
from planner.profile.step_timing import StepTimer
from profilers.records.readings import StreamRate
from tests.planner import profiles

PC = Device(name="pc")
RATE = StreamRate(30.0, 0.01, 10.0, 3000.0)
SPEC = StreamSpec.from_text("directory:/data/{device},patience=5")


class Answers:
    """An agent that answers at once; ``watched`` is an error where samples do not arrive."""

    def __init__(self, watched: StreamRate | AgentError) -> None:
        self._watched = watched
        self.orders: list[Any] = []

    def call(self, order: Any, timeout_s: float | None = None) -> Any:
        self.orders.append(order)
        if isinstance(order, orders.WatchStream):
            assert timeout_s is not None and timeout_s > order.seconds + SPEC.patience_s
            if isinstance(self._watched, AgentError):
                raise self._watched
            return self._watched
        return {
            orders.CollectFacts: profiles.facts(),
            orders.MeasureIdle: profiles.window(),
        }[type(order)]


def measured(folder: Path, agent: Answers, stream: StreamSpec | None, before: DeviceProfile) -> DeviceProfile:
    """The device after a profile of its stream alone."""
    request = ProfileRequest((), stream=stream)
    start = Profile(1, "test", 0.0, {"pc": before}, (), (), {})
    recorder = ProfileRecorder(start, folder / "profile.json", lambda *_: None)
    timer = StepTimer(request, {}, lambda *_: None)
    profiler = DeviceProfiler(request, timer, recorder)
    profiler.watch(PC, cast(AgentClient, agent))
    recorder.save()
    return load_profile(folder / "profile.json").devices["pc"]


def known(**changes: Any) -> DeviceProfile:
    return profiles.device()._replace(device=declared(PC), facts=profiles.facts(), **changes)


def test_a_rate_is_kept_by_what_the_device_reads_and_nothing_else_is_measured_again(tmp_path: Path) -> None:
    agent, before = Answers(RATE), known(streams={"socket:h:1": RATE})
    found = measured(tmp_path, agent, SPEC, before)
    assert found.streams == {"socket:h:1": RATE, "directory:/data/pc": RATE}
    assert (found.error, found.failures, found.steps) == (None, {}, before.steps)
    (order,) = (each for each in agent.orders if isinstance(each, orders.WatchStream))
    assert (order.text, order.device, order.seconds) == (SPEC.text, "pc", 10.0)
    assert "stream" in found.took_s


def test_a_device_at_which_nothing_arrives_keeps_its_timings_and_has_no_rate(tmp_path: Path) -> None:
    silent = AgentError("pc: watch stream: no sample has arrived for 5 s")
    before = known(streams={"directory:/data/pc": RATE})
    found = measured(tmp_path, Answers(silent), SPEC, before)
    assert (found.error, found.streams, found.steps) == (None, {}, before.steps)
    assert found.failures == {f"--stream {SPEC.text}": "no sample has arrived for 5 s"}
    assert found.failed((f"--stream {SPEC.text}",)) and not found.failed((f"--stream {SPEC.text}", "net"))


def test_a_device_without_the_framework_that_is_asked_for_has_no_timing_of_it(tmp_path: Path) -> None:
    profiler, recorder = profiler_of(tmp_path, known(), framework="tensorflow")
    no_tensorflow = profiles.facts()._replace(frameworks={"tensorflow": {"error": "tensorflow is not installed"}})
    recorder.note("pc", facts=no_tensorflow)
    assert profiler.timed(PC, "net") is None
    assert recorder.profile.devices["pc"].error is None


class Imports(Answers):
    """An agent whose imports fail, as each ``failing`` says, one after the other."""

    def __init__(self, *failing: bool) -> None:
        super().__init__(RATE)
        self._failing = list(failing)

    def call(self, order: Any, timeout_s: float | None = None) -> Any:
        if not isinstance(order, orders.StartFramework):
            return super().call(order, timeout_s)
        self.orders.append(order)
        if self._failing.pop(0):
            raise AgentError("pc: torch: No module named 'torch'")
        return None


def profiler_of(
    folder: Path, before: DeviceProfile, framework: str | None = None
) -> tuple[DeviceProfiler, ProfileRecorder]:
    request = ProfileRequest(("net",), framework=framework)
    recorder = ProfileRecorder(Profile(1, "test", 0.0, {"pc": before}, (), (), {}), folder / "p.json", lambda *_: None)
    timer = StepTimer(request, {"net": "abc"}, lambda *_: None)
    return DeviceProfiler(request, timer, recorder), recorder


def test_an_import_that_fails_is_tried_again_and_noted_where_the_model_is_timed(tmp_path: Path) -> None:
    profiler, recorder = profiler_of(tmp_path, known()._replace(steps=()))
    agent = cast(AgentClient, Imports(True, True))
    profiler.start_framework(PC, agent)
    assert recorder.profile.devices["pc"].failures == {}
    assert profiler.begin(PC, agent, "net") is None
    assert recorder.profile.devices["pc"].failures == {"net": "No module named 'torch'"}
