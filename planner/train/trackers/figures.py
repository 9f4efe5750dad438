"""Figures of a run follow from its events, and are what every tracker writes."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from backends.protocol.events import CheckpointWritten, Evaluated, MemberTelemetry, Progress, TimeSpent
from planner.agents.call import Event
from planner.plan.file import Plan
from planner.run.supervisor import MemberLost
from planner.train.events import RunEnded
from planner.train.worker_result import watts

#: What each figure says, with its unit, by name. Those of a worker begin with ``worker_``.
MEANINGS = {
    "steps_done": "Steps that the run has made.",
    "steps_planned": "Steps that the run is to make.",
    "elapsed_seconds": "Seconds of training.",
    "steps_per_second": "Steps a second since the report before.",
    "train_loss": "Mean of the smoothed training losses of the connected workers.",
    "test_loss": "Loss of the last evaluation.",
    "test_metric": "A metric of the last evaluation.",
    "evaluation_seconds": "Seconds that the last evaluation took.",
    "checkpoint_step": "Steps of the newest checkpoint.",
    "worker_steps": "Steps that the worker has made.",
    "worker_loss": "Smoothed training loss of the worker.",
    "worker_connected": "1 while the worker takes part, 0 while it is lost and after the run.",
    "worker_staleness_steps": "Mean number of updates that the worker's gradients are late.",
    "worker_bytes": "Bytes that the worker has sent and received.",
    "worker_power_watts": "Mean watts of the worker since its report before.",
    "worker_exchange_share": "Share of the worker's time that it sent, received and waited for others.",
    "worker_data_wait_share": "Share of the worker's time that it waited for batches to be read.",
}
#: Figures that only grow.
COUNTERS = frozenset({"worker_bytes"})


class Figure(NamedTuple):
    """A value after ``step`` steps of the run; ``name`` is one of MEANINGS.

    worker: empty for the whole run.
    metric: which one, of ``test_metric``.
    source: of watts, where they come from, in words.
    """

    name: str
    value: float
    step: int
    worker: str = ""
    metric: str = ""
    source: str = ""


class RunFigures:
    """Derives figures from the events of a run of ``plan``, in their order."""

    def __init__(self, plan: Plan) -> None:
        self._planned = {worker.name: worker for worker in plan.workers}
        self._at: Progress | None = None
        self._spent: dict[str, TimeSpent] = {}

    def of(self, source: str, event: Event) -> tuple[Figure, ...]:
        """The figures that an event of ``source`` gives; most kinds of events give none."""
        if isinstance(event, Progress):
            return tuple(self._of_progress(event))
        if isinstance(event, RunEnded):
            at = event.account
            return tuple(self._of_progress(Progress(at.done, at.total, at.elapsed_s, at.workers)))
        if isinstance(event, Evaluated):
            return tuple(_of_evaluation(event))
        if isinstance(event, CheckpointWritten):
            return (Figure("checkpoint_step", event.step, event.step),)
        if isinstance(event, MemberTelemetry):
            return tuple(self._of_telemetry(source, event))
        if isinstance(event, MemberLost):  # when it is started again, its times begin at 0
            self._spent.pop(source, None)
        return ()

    def _of_progress(self, at: Progress) -> Iterator[Figure]:
        before, self._at = self._at, at
        step = at.done
        yield Figure("steps_done", at.done, step)
        yield Figure("steps_planned", at.total, step)
        yield Figure("elapsed_seconds", at.elapsed_s, step)
        if before is not None and at.elapsed_s > before.elapsed_s:  # a resumed run begins at any step
            yield Figure("steps_per_second", (at.done - before.done) / (at.elapsed_s - before.elapsed_s), step)
        connected = [each for each in at.workers.values() if each.connected]
        # When the run has ended, none is.
        losses = [each.loss for each in connected or at.workers.values() if each.loss is not None]
        if losses:
            yield Figure("train_loss", math.fsum(losses) / len(losses), step)
        for name, each in at.workers.items():
            yield Figure("worker_steps", each.steps, step, name)
            yield Figure("worker_connected", each.connected, step, name)
            yield Figure("worker_bytes", each.bytes, step, name)
            if each.loss is not None:
                yield Figure("worker_loss", each.loss, step, name)
            if each.staleness is not None:
                yield Figure("worker_staleness_steps", each.staleness, step, name)

    def _of_telemetry(self, name: str, told: MemberTelemetry) -> Iterator[Figure]:
        before = self._spent.get(name, TimeSpent())
        self._spent[name] = told.spent
        spent = TimeSpent._make(now - then for now, then in zip(told.spent, before, strict=True))
        step = self._at.done if self._at else 0
        seconds = spent.busy_s + spent.exchange_s + spent.evaluation_s
        if seconds > 0:
            yield Figure("worker_exchange_share", spent.exchange_s / seconds, step, name)
            yield Figure("worker_data_wait_share", spent.data_s / seconds, step, name)
        if told.window.duration_s > 0:
            planned = self._planned[name]
            loaded_s = spent.busy_s + spent.evaluation_s + spent.exchange_cpu_s / planned.cores
            found = watts(planned, told.window, loaded_s / told.window.duration_s)
            if found.watts is not None:
                yield Figure("worker_power_watts", found.watts, step, name, source=found.provenance.text)


def _of_evaluation(event: Evaluated) -> Iterator[Figure]:
    yield Figure("test_loss", event.loss, event.step)
    for name, value in event.metrics.items():
        yield Figure("test_metric", value, event.step, metric=name)
    yield Figure("evaluation_seconds", event.seconds, event.step)
