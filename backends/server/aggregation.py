"""Aggregation collects the gradients of a round, as the sync policy demands."""

from typing import Dict, List, NamedTuple, Optional, Tuple

from backends.protocol.stream_statistics import StreamPosition
from backends.strategies.message import Message
from backends.strategies.synchronisation import SyncPolicy


class WorkerGradient(NamedTuple):
    """A gradient that a worker has sent."""

    worker: str
    message: Message
    version: int  # number of updates in the weights it was computed from
    loss: float
    batch: int  # its samples
    seconds: float  # time of its computation
    steps: int = 1  # that it stands for
    stream: Optional[StreamPosition] = None  # of the worker, with its samples


class Aggregator:
    """Holds gradients until a round is complete; the round is then applied as one update.

    Without synchronisation every gradient is a round. A gradient that misses its round is part of
    the next.
    Not thread-safe: its owner holds the run's lock.
    """

    def __init__(self, sync_policy: SyncPolicy) -> None:
        self._sync_policy = sync_policy
        self._steps: Dict[str, int] = {}
        self._batches: Dict[str, int] = {}
        self._waiting: List[WorkerGradient] = []

    @property
    def mean_batch(self) -> float:
        """Mean samples of the last gradient of each worker. Needs at least one gradient."""
        return sum(self._batches.values()) / len(self._batches)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Remove workers that have left, with their waiting gradients, and add new ones.

        A new worker begins with the step of the slowest of the others.
        """
        for gone in set(self._steps) - set(names):
            del self._steps[gone]
            self._batches.pop(gone, None)
        self._waiting = [gradient for gradient in self._waiting if gradient.worker in self._steps]
        for name in names:
            if name not in self._steps:
                self._steps[name] = min(self._steps.values(), default=0)

    def steps(self, worker: str) -> int:
        """Gradients of a member so far, and those of others before it joined."""
        return self._steps.get(worker, 0)

    def add_gradient(self, gradient: WorkerGradient) -> None:
        """Add a member's gradient, which ends its step."""
        self._steps[gradient.worker] += 1
        self._batches[gradient.worker] = gradient.batch
        self._waiting.append(gradient)

    def may_begin(self, worker: str) -> bool:
        """Whether a member may begin a step; never while its last gradient waits for others."""
        if any(gradient.worker == worker for gradient in self._waiting):
            return False
        others = [steps for name, steps in self._steps.items() if name != worker]
        return self._sync_policy.may_begin(self._steps[worker], others)

    def take_round(self, most_to_come: int, nobody_else_comes: bool = False) -> List[WorkerGradient]:
        """Remove and return the gradients of a complete round; none if it is incomplete.

        most_to_come: gradients that are not applied yet; the last round may have fewer than there
            are workers.
        nobody_else_comes: whether no gradient can arrive before these are applied.
        """
        expected = min(len(self._steps), most_to_come)
        enough = nobody_else_comes or self._sync_policy.enough(len(self._waiting), expected)
        if not self._waiting or not enough:
            return []
        complete, self._waiting = self._waiting, []
        return complete
