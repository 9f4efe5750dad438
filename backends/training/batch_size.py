"""How many samples the members of a run compute in a step: the same, as many as they manage, or as many as they get."""

from typing import Callable, Dict, Sequence, Tuple

from backends.frameworks.base import Arrays
from backends.strategies import streams
from backends.strategies.batching import WINDOW, GlobalBatch, Throughput, local_batches, powers

#: Steps of every member that must have been timed before batches follow them.
TIMED = 3


class FixedBatches:
    """``usual`` samples each, of ``members`` planned. Not thread-safe, and neither are the others."""

    def __init__(self, usual: int, members: int, training_samples: int, seed: int) -> None:
        self.usual = usual
        self.names: Tuple[str, ...] = ()

    def begin(self, names: Sequence[str]) -> None:
        """These are the members now."""
        if tuple(names) != self.names:
            self.names = tuple(names)
            self._regroup()

    def _regroup(self) -> None:
        pass

    def batch(self, name: str) -> int:
        """Samples of a member's next step."""
        return self.usual

    def note(self, name: str, batch: int, seconds: float) -> None:
        """A member computed so many samples in so long."""

    def state(self) -> Dict[str, Arrays]:
        """All that must be in a checkpoint, by name."""
        return {}

    def restore(self, state: Dict[str, Arrays]) -> None:
        """Go on from ``state``."""


class DynamicBatches(FixedBatches):
    """DLion's weighted dynamic batching: a global batch that grows, dealt out by how fast each member is now."""

    def __init__(self, usual: int, members: int, training_samples: int, seed: int) -> None:
        super().__init__(usual, members, training_samples, seed)
        self._global = GlobalBatch(usual * members, training_samples)
        self._timed: Dict[str, Throughput] = {}
        self._counts: Dict[str, int] = {}
        self._batches: Dict[str, int] = {}

    def _regroup(self) -> None:
        self._counts = dict.fromkeys(self.names, 0)
        for name in self.names:
            self._timed.setdefault(name, Throughput())
        self._batches = {}

    def batch(self, name: str) -> int:
        return self._batches.get(name, self.usual)

    def note(self, name: str, batch: int, seconds: float) -> None:
        if name not in self._counts:
            return
        self._timed[name].add(batch, seconds)
        self._counts[name] += 1
        if self._counts[name] == min(self._counts.values()):  # an iteration of all is over when the last has made it
            grown = self._global.advance()
            if grown or not self._batches or self._counts[name] % WINDOW == 0:
                self._deal()

    def _deal(self) -> None:
        if min(self._counts.values()) >= TIMED:
            costs = [self._timed[name].cost() for name in self.names]
            size = max(self._global.size, len(self.names))
            self._batches = dict(zip(self.names, local_batches(size, powers(costs, size))))

    def state(self) -> Dict[str, Arrays]:
        timed: Dict[str, Arrays] = {"timed " + name: each.state() for name, each in self._timed.items()}
        return dict(timed, **{"global batch": self._global.state()})

    def restore(self, state: Dict[str, Arrays]) -> None:
        for name, arrays in state.items():
            if name == "global batch":
                self._global.restore(arrays)
            elif name.startswith("timed "):
                self._timed[name[6:]] = Throughput()
                self._timed[name[6:]].restore(arrays)


class StreamBatches(FixedBatches):
    """ScaDLES: what arrives at each member in a second, by rates drawn for the members in the order of their names."""

    DISTRIBUTION = "S1"

    def __init__(self, usual: int, members: int, training_samples: int, seed: int) -> None:
        super().__init__(usual, members, training_samples, seed)
        self._seed = seed
        self._batches: Dict[str, int] = {}

    def _regroup(self) -> None:
        rates = streams.draw_rates(self.DISTRIBUTION, len(self.names), self._seed)
        self._batches = dict(zip(self.names, streams.batches(rates)))

    def batch(self, name: str) -> int:
        return self._batches[name]


#: By the names of batchings in strategies.compatibility.
BATCH_POLICIES: Dict[str, Callable[[int, int, int, int], FixedBatches]] = {
    "fixed": FixedBatches,
    "dynamic": DynamicBatches,
    "stream": StreamBatches,
}
