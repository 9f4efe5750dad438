"""Steps that do all that either kind of cluster needs, each phase timed by itself."""

import time
from typing import Optional

from backends.data.loader import BatchSource
from backends.frameworks.base import Replica
from backends.frameworks.optimizer import SGD, GradientSettings, OptimizerSettings
from backends.profiling import update_costs
from backends.training import step
from backends.training.compute_clock import clock_of
from profilers import steptime

#: Small enough that nothing overflows on noise; the time of a step does not depend on it.
SETTINGS = GradientSettings(rate=1e-4)


class StepLoop:
    """Makes steps, and adds up what they take.

    What passes between two of them is part of the second one's gradient: a device whose processor
    time is rationed pauses there, and training, too, has something to do there.
    optimizer: the kind of it that updates the replica.
    """

    def __init__(self, replica: Replica, batches: BatchSource, optimizer: str = SGD) -> None:
        self.replica, self.batches, self.optimizer = replica, batches, optimizer
        self._settings = OptimizerSettings(momentum=update_costs.MOMENTUM, kind=optimizer)
        self.restart()

    def restart(self) -> None:
        """Begin anew: what passed before is part of no step."""
        self._ended_s: Optional[float] = None
        self._steps = 0
        self._cpu_s = self._data_s = 0.0

    @property
    def cpu_s_per_step(self) -> float:
        """Processor seconds of a gradient."""
        return self._cpu_s / max(1, self._steps)

    @property
    def data_s(self) -> float:
        """Seconds of a gradient that it waits for its batch."""
        return self._data_s / max(1, self._steps)

    def step(self) -> steptime.Phases:
        """Make a step; return its phases."""
        began_s = time.perf_counter() if self._ended_s is None else self._ended_s
        cpu_s = time.process_time()
        taken = step.step(self.replica, self.batches, SETTINGS)
        self._cpu_s += time.process_time() - cpu_s
        self._data_s += taken.data_s
        self._steps += 1
        fetched_s = time.perf_counter()
        with clock_of(self.replica):
            self.replica.update(self._settings)
        updated_s = time.perf_counter()
        self.replica.load()  # last: after an update of its own a replica would fetch its weights, which no worker does
        self._ended_s = time.perf_counter()
        return fetched_s - taken.copy_s - began_s, taken.copy_s + self._ended_s - updated_s, updated_s - fetched_s
