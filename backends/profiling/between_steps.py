"""A device that trains alone works between its steps: it counts, reports and takes the next one."""

import time
from typing import Callable, List, Optional

from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import OptimizerSettings, Replica
from backends.hosting.single_device import NAME, SingleDevice, work
from backends.hosting.step_queue import WorkItem
from backends.profiling.step_loop import SETTINGS
from backends.profiling.update_costs import MOMENTUM
from backends.training.lr_schedule import RateSchedule
from backends.training.run_settings import RunSettings
from backends.training.run_spec import Checkpoints, RunSpec
from profilers.cores import thread_cpu_s
from profilers.records.readings import Samples
from profilers.spinning import available_cores

#: Steps that are made, and seconds for all but the fewest.
FEWEST, MOST = 3, 20
LIMIT_S = 1.0


def measure(replica: Replica, batches: BatchSource, test: EvaluationSet, kind: str, counted_s: float) -> Samples:
    """Seconds between steps that are made as in a run, by the clock of their thread.

    kind: of the optimizer. None without a test set, with which no run begins.
    counted_s: of them, those that are part of a gradient already.
    A quota stretches these seconds as it does those of a computation.
    """
    if test.is_empty:
        return Samples("s", ())
    optimizer = OptimizerSettings(SETTINGS.rate, MOMENTUM, kind=kind)
    spec = RunSpec(RunSettings(steps=MOST + 2, batch=batches.batch), optimizer, RateSchedule(), Checkpoints(None))
    device = _Watched(spec, replica)
    began_s = time.monotonic()

    def enough() -> bool:
        made = len(device.between_s)
        return made >= MOST or (made >= FEWEST and time.monotonic() - began_s > LIMIT_S)

    work(device, batches, test, enough)
    share = min(1.0, available_cores())
    seconds = [max(0.0, each / share - counted_s) for each in device.between_s]
    return Samples("s", tuple(seconds[1:]), tuple(seconds[:1]))


class _Watched(SingleDevice):
    """Tells what its thread did between two steps."""

    def __init__(self, spec: RunSpec, replica: Replica) -> None:
        super().__init__(spec, replica, lambda event: None, NAME, None)
        self.between_s: List[float] = []
        self._updated_s: Optional[float] = None

    def step_with_samples(self, item: WorkItem, batches: BatchSource, should_stop: Callable[[], bool]) -> None:
        if self._updated_s is not None:
            self.between_s.append(thread_cpu_s() - self._updated_s)
        super().step_with_samples(item, batches, should_stop)

    def _update(self, item: WorkItem) -> None:
        super()._update(item)
        self._updated_s = thread_cpu_s()
