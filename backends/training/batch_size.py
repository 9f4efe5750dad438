"""A batch policy decides how many samples each member of a run computes in its next step."""

from typing import Callable, Dict, Mapping, Optional, Tuple

import numpy as np

from backends.frameworks.base import Arrays
from backends.strategies import sample_streams
from backends.strategies.batching import WINDOW, GlobalBatch, Throughput, local_batches, powers
from backends.streams.spec import StreamSpec
from backends.training.run_spec import RunSpec

#: Steps of every member that must be timed before batch sizes follow throughput.
TIMED_STEPS = 3
#: Names of a dynamic policy's arrays in a checkpoint.
TIMED, GLOBAL_BATCH = "timed ", "global batch"


class BatchPolicy:
    """Every member computes the batch that was planned for it; others extend it. Not thread-safe.

    usual: samples of a member's step.
    planned: of the steps of members whose batches were planned apart.
    """

    def __init__(self, usual: int, planned: Mapping[str, int] = {}) -> None:
        self.usual = usual
        self._planned = planned
        self.names: Tuple[str, ...] = ()

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Divide the work among these members, if they have changed."""
        if names != self.names:
            self.names = names
            self._divide()

    def _divide(self) -> None:
        """Begin anew with other members."""

    def batch(self, name: str) -> int:
        """Samples of a member's next step."""
        return self._planned.get(name, self.usual)

    def record(self, name: str, batch: int, seconds: float) -> None:
        """Record that a member computed a batch in so many seconds."""

    def record_rate(self, name: str, rate: Optional[float]) -> None:
        """Record that so many samples arrive at a member in a second; None before it is known."""

    def state(self) -> Dict[str, Arrays]:
        """The arrays for a checkpoint, by name."""
        return {}

    def restore(self, state: Dict[str, Arrays]) -> None:
        """Resume from ``state``."""


class DynamicBatches(BatchPolicy):
    """DLion's weighted dynamic batching: a growing global batch, divided by current throughput.

    members: planned number of members.
    training_samples: of the whole training set.
    """

    def __init__(self, usual: int, members: int, training_samples: int) -> None:
        super().__init__(usual)
        self._global = GlobalBatch(usual * members, training_samples)
        self._throughputs: Dict[str, Throughput] = {}
        self._steps: Dict[str, int] = {}
        self._batches: Dict[str, int] = {}

    def _divide(self) -> None:
        self._steps = dict.fromkeys(self.names, 0)
        for name in self.names:
            self._throughputs.setdefault(name, Throughput())
        self._batches = {}

    def batch(self, name: str) -> int:
        return self._batches.get(name, self.usual)

    def record(self, name: str, batch: int, seconds: float) -> None:
        if name not in self._steps:
            return
        self._throughputs[name].add_iteration(batch, seconds)
        self._steps[name] += 1
        if self._steps[name] == min(self._steps.values()):  # the slowest member has completed this iteration
            grown = self._global.advance()
            if grown or not self._batches or self._steps[name] % WINDOW == 0:
                self._assign()

    def _assign(self) -> None:
        if min(self._steps.values()) >= TIMED_STEPS:
            costs = [self._throughputs[name].cost() for name in self.names]
            size = max(self._global.size, len(self.names))
            self._batches = dict(zip(self.names, local_batches(size, powers(costs, size))))

    def state(self) -> Dict[str, Arrays]:
        state: Dict[str, Arrays] = {TIMED + name: each.state() for name, each in self._throughputs.items()}
        return dict(state, **{GLOBAL_BATCH: self._global.state()})

    def restore(self, state: Dict[str, Arrays]) -> None:
        for label, arrays in state.items():
            if label == GLOBAL_BATCH:
                self._global.restore(arrays)
            elif label.startswith(TIMED):
                name = label[len(TIMED) :]
                self._throughputs[name] = Throughput()
                self._throughputs[name].restore(arrays)


class StreamBatches(BatchPolicy):
    """ScaDLES without streams: each member computes what one would deliver in a second."""

    def __init__(self, usual: int, seed: int) -> None:
        super().__init__(usual)
        self._seed = seed

    def batch(self, name: str) -> int:
        return sample_streams.drawn_batch(name, self._seed)


class ArrivingBatches(BatchPolicy):
    """ScaDLES, of a stream that is there: each member computes what arrives in a second.

    Until the rate of a member was measured, it computes the usual batch.
    stream: has the bounds of a batch.
    """

    def __init__(self, usual: int, stream: StreamSpec) -> None:
        super().__init__(usual)
        self._stream = stream
        self._rates: Dict[str, float] = {}

    def batch(self, name: str) -> int:
        return self._stream.batch(self._rates.get(name, float(self.usual)))

    def record_rate(self, name: str, rate: Optional[float]) -> None:
        if rate is not None:
            self._rates[name] = rate

    def state(self) -> Dict[str, Arrays]:
        return {name: (np.array([rate]),) for name, rate in self._rates.items()}

    def restore(self, state: Dict[str, Arrays]) -> None:
        self._rates = {name: float(arrays[0][0]) for name, arrays in state.items()}


def _of_streams(spec: RunSpec) -> BatchPolicy:
    """By the rates at which samples arrive, or by drawn ones where all are there."""
    stream, usual = spec.run.stream, spec.run.batch
    return StreamBatches(usual, spec.seed) if stream is None else ArrivingBatches(usual, stream)


#: Policies of a run by the names of batchings in strategies.compatibility.
BATCH_POLICIES: Dict[str, Callable[[RunSpec], BatchPolicy]] = {
    "fixed": lambda spec: BatchPolicy(spec.run.batch, spec.batches),
    "dynamic": lambda spec: DynamicBatches(spec.run.batch, spec.members, spec.training_samples),
    "stream": _of_streams,
}
