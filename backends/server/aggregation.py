"""Which gradients change the weights together, and who may begin a step: a gate, as a parameter server sees it."""

from typing import Dict, List, NamedTuple, Tuple

from backends.strategies.message import Message
from backends.strategies.synchronisation import SyncPolicy
from backends.training.member_stats import MemberStats


class WorkerGradient(NamedTuple):
    """What a worker brought; ``version``: the updates that had been made when it got its weights; ``batch``: the
    samples it was computed from, in so many ``seconds``."""

    worker: str
    peer: MemberStats
    message: Message
    version: int
    loss: float
    batch: int
    seconds: float


class Aggregator:
    """Gradients are kept until there are enough for a round, and then applied together.

    Without waiting for others a round is one gradient. Who comes too late for a round is part of the next. Not
    thread-safe: the server holds its lock.
    """

    def __init__(self, gate: SyncPolicy) -> None:
        self._gate = gate
        self._steps: Dict[str, int] = {}
        self._batches: Dict[str, int] = {}
        self._waiting: List[WorkerGradient] = []

    @property
    def workers(self) -> Tuple[str, ...]:
        """Those who have joined, by name."""
        return tuple(sorted(self._steps))

    @property
    def mean_batch(self) -> float:
        """Samples of the last gradient of each worker, on average; there must have been one."""
        return sum(self._batches.values()) / len(self._batches)

    def join(self, worker: str) -> None:
        """A worker begins, beside the slowest of the others."""
        self._steps[worker] = min(self._steps.values(), default=0)

    def leave(self, worker: str) -> None:
        """A worker is gone, and what it brought and was not applied yet with it."""
        self._steps.pop(worker, None)
        self._batches.pop(worker, None)
        self._waiting = [gradient for gradient in self._waiting if gradient.worker != worker]

    def bring(self, gradient: WorkerGradient) -> None:
        """A worker that has joined ends a step."""
        self._steps[gradient.worker] += 1
        self._batches[gradient.worker] = gradient.batch
        self._waiting.append(gradient)

    def may_begin(self, worker: str) -> bool:
        """Whether a worker that has joined may begin a step: never while what it brought waits for others."""
        if any(gradient.worker == worker for gradient in self._waiting):
            return False
        others = [steps for name, steps in self._steps.items() if name != worker]
        return self._gate.may_begin(self._steps[worker], others)

    def take(self, left: int, all_there: bool = False) -> List[WorkerGradient]:
        """The gradients of a round that is complete, which are then no longer here; none where one is not.

        left: steps that are not done yet, of which the last round may have fewer than there are workers; all_there:
        nobody brings anything before these are applied.
        """
        expected = min(len(self._steps), left)
        if not self._waiting or not (all_there or self._gate.enough(len(self._waiting), expected)):
            return []
        complete, self._waiting = self._waiting, []
        return complete
