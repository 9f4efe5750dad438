"""Pre-training: a measured step does what a worker's step does, and measuring ends when it is told
to.
"""

from pathlib import Path
from typing import Any

import pytest

from backends import models
from backends.agent.main import AgentTask
from backends.frameworks import base
from backends.profiling import batch_curve, step_parts, step_profile, update_costs
from backends.profiling.step_memory import MemoryProbe
from backends.protocol.events import StepTimed
from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import RepeatSteps, TimeSteps
from backends.training import step
from profilers.records.readings import Window
from profilers.records.steps import StepProfile
from profilers.sampling import Sampler
from tests.backends.replicas import by_every_framework
from tests.quick import look_often
from tests.running import tiny_model

of_one_profile = pytest.mark.xdist_group("step profile")


class Job(AgentTask):
    """An order whose word to go on comes with the event of a stage."""

    def __init__(self, ends_wait_at: str = "ready") -> None:
        super().__init__(self._note)
        self.events: list[StepTimed] = []
        self._ends_wait_at = ends_wait_at

    def _note(self, event: StepTimed) -> None:
        self.events.append(event)
        if event.stage == self._ends_wait_at:
            self.go.set()


@pytest.fixture
def model(tmp_path: Path) -> str:
    tiny_model(tmp_path, 0.0)
    return f"{tmp_path}/tiny.py:tiny"


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model whose steps are looked at often."""
    look_often(monkeypatch)
    return tiny_model(tmp_path, 0.011)


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[StepProfile, list[StepTimed]]:
    """A profile of eight samples a step, and what was told while it was made."""
    job = Job()
    with pytest.MonkeyPatch.context() as patch:
        look_often(patch)
        patch.setattr(step_profile, "TELL_S", 0.0)
        return time_steps(job, tiny_model(tmp_path_factory.mktemp("slow"), 0.011), "torch", 8), job.events


def time_steps(job: Job, model: str, framework: str = "torch", batch: int = 4) -> StepProfile:
    return step_profile.time_steps(job, TimeSteps(ReplicaSpec(framework, model), batch, "adaptive"))


def test_without_memory_for_more_than_a_step_other_optimizers_are_not_timed(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryProbe, "leaves_room_for", lambda probe, more_bytes: False)
    found = time_steps(Job(), model)
    assert not found.costs.optimizers and found.costs.group_cpu_s is None
    assert found.costs.service_s.values


@of_one_profile
def test_a_profile_of_steps_is_whole(timed: tuple[StepProfile, list[StepTimed]]) -> None:
    found, _ = timed
    assert len(found.gradient_s.values) == len(found.update_s.values) == len(found.copy_s.values) >= 3
    assert len(found.half_batch_s.values) >= batch_curve.FEWEST
    assert len(found.costs.service_s.values) >= 2 and min(found.costs.service_s.values) > 0
    assert set(found.costs.optimizers) == {"adam", "lars"}
    assert found.size.parameter_bytes == found.size.parameters * 4 > 0
    assert found.cpu_s_per_step > 0
    assert found.costs.first_step_s >= 0.0
    assert found.costs.evaluation_s is not None and found.costs.evaluation_s > 0.0


@of_one_profile
def test_while_parts_of_a_step_are_timed_it_tells_that_it_goes_on(timed: tuple[StepProfile, list[StepTimed]]) -> None:
    _, events = timed
    parts = [event for event in events if event.stage == "parts"]
    assert len(parts) > batch_curve.FEWEST and parts == events[-len(parts) :]


def test_a_model_is_timed_again_from_the_word_on(slow: str) -> None:
    job = Job(ends_wait_at="ready")
    found = step_profile.repeat_steps(job, RepeatSteps(ReplicaSpec("torch", slow), 4, 0.1, waits=True))
    assert len(found.gradient_s.values) == len(found.update_s.values) == len(found.copy_s.values) >= 1
    assert found.cpu_s_per_step > 0 and job.events[-1].stage == "again"


def test_sensors_are_sampled_beside_a_model_that_is_timed_again_as_they_are_in_a_run(
    slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Watched(Sampler):
        def start(self) -> None:
            done.append("start")
            super().start()

        def stop(self) -> Window:
            done.append("stop")
            return super().stop()

    monkeypatch.setattr(step_profile, "Sampler", Watched)
    step_profile.repeat_steps(Job(), RepeatSteps(ReplicaSpec("torch", slow), 4, 0.1))
    assert done == ["start", "stop"]


def test_a_stopped_second_visit_is_none(model: str) -> None:
    job = Job()
    job.stopping.set()
    with pytest.raises(InterruptedError, match="stopped after 0 steps"):
        step_profile.repeat_steps(job, RepeatSteps(ReplicaSpec("torch", model), 4, 0.1))


@pytest.mark.e2e
@by_every_framework
def test_the_profile_of_every_framework_is_whole_and_tells_which_it_was(
    framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_parts, "LONGEST_GRADIENT_S", 60.0)  # however busy this machine is
    found = time_steps(Job(), "cipher", framework, 4)
    assert len(found.gradient_s.values) == len(found.update_s.values) == len(found.copy_s.values) >= 3
    assert len(found.half_batch_s.values) >= batch_curve.FEWEST
    assert (found.framework, found.setup.framework_version) == (framework, base.framework(framework).version())
    assert (found.size.parameters, sum(found.size.layers)) == (models.parameter_count(models.model("cipher")),) * 2
    assert len(found.costs.ready) == (len(found.size.layers) if framework == "torch" else 0)
    assert (found.costs.group_cpu_s is None) == (framework == "tensorflow" or found.setup.accelerator == "cuda")


GREEDY = """
import torch


class Greedy(torch.nn.Module):
    \"\"\"Runs out of memory from {limit} images on.\"\"\"

    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(3 * 8 * 8, 10)

    def forward(self, images):
        if len(images) >= {limit}:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.dense(images.flatten(1))


def greedy():
    return Greedy(), (8, 8, 3)
"""


@pytest.mark.parametrize(("limit", "timed"), [(16, 8), pytest.param(4, 2, marks=pytest.mark.e2e)])
def test_a_batch_that_does_not_fit_is_noted_and_a_smaller_one_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, timed: int
) -> None:
    look_often(monkeypatch)
    (tmp_path / "own.py").write_text(GREEDY.format(limit=limit))
    found = time_steps(Job(), f"{tmp_path}/own.py:greedy", "torch", 16)
    assert (found.batch, found.planned_batch) == (timed, 16)
    assert found.memory.too_large == limit
    assert len(found.gradient_s.values) >= 3
    assert all(each.batch < limit for each in (*found.memory.batches, *found.other_batches))


@pytest.mark.e2e
def test_updates_are_timed_with_a_gradient_of_the_timed_batch_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the double size, which was tried before, has left none."""
    made: list[int] = []
    at_hand: list[int] = []
    make, clip_s = step.step, update_costs.clip_s

    def noted_step(replica: Any, drawn: Any, *others: Any) -> Any:
        made.append(drawn.batch)
        return make(replica, drawn, *others)

    def noted_clip_s(*given: Any) -> Any:
        at_hand.append(made[-1])
        return clip_s(*given)

    monkeypatch.setattr(step, "step", noted_step)
    monkeypatch.setattr(update_costs, "clip_s", noted_clip_s)
    (tmp_path / "own.py").write_text(GREEDY.format(limit=32))
    assert time_steps(Job(), f"{tmp_path}/own.py:greedy", "torch", 16).memory.too_large == 32
    assert at_hand == [16]
