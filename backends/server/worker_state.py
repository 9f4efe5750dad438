"""What workers keep between steps, such as residuals: asked for when a checkpoint is due, and given back on resuming.

It belongs to the weights that hold all that was sent, and no more. So whoever has brought it waits until all have, and
the checkpoint has been taken.
"""

from typing import Any, Dict, List, Sequence, Set

import numpy as np

from backends.frameworks.base import Arrays
from backends.network.framing import WireError


def described(arrays: Sequence[np.ndarray]) -> List[Any]:
    """Plain JSON values that tell the types and shapes of arrays."""
    return [[array.dtype.str, list(array.shape)] for array in arrays]


def room(description: Any, most_bytes: int) -> Arrays:
    """Arrays to receive into. Raises WireError for a description of other things than numbers, or of too many."""
    try:
        kinds = [(np.dtype(kind), tuple(int(n) for n in shape)) for kind, shape in description]
        total = sum(kind.itemsize * int(np.prod(shape, dtype=np.float64)) for kind, shape in kinds)
        if total > most_bytes or any(kind.kind not in "iuf" or min(shape, default=0) < 0 for kind, shape in kinds):
            raise ValueError("it is not of numbers, or of more than %d bytes" % most_bytes)
        return tuple(np.empty(shape, kind) for kind, shape in kinds)
    except (TypeError, ValueError) as error:
        raise WireError("cannot keep %r: %s" % (description, error)) from error


class WorkerStates:
    """What the workers of a run keep. Not thread-safe: the server holds its lock.

    ``kept``: by worker, what came last, and before that what a resumed run's checkpoint had.
    """

    def __init__(self, kept: Dict[str, Arrays]) -> None:
        self.kept = dict(kept)
        self._given: Set[str] = set()
        self._keepers: Set[str] = set()
        self._awaited: Set[str] = set()
        self._there: Set[str] = set()

    def join(self, worker: str, description: List[Any]) -> Arrays:
        """A worker that keeps such arrays begins: those that a resumed run has for it, once, or none."""
        if description:
            self._keepers.add(worker)
        again = worker in self._given
        self._given.add(worker)
        saved = self.kept.get(worker, ())
        return saved if not again and described(saved) == description else ()

    def leave(self, worker: str) -> None:
        """A worker is gone; should it come back, what it kept is not of its new life."""
        for names in (self._keepers, self._awaited, self._there):
            names.discard(worker)

    def ask(self) -> bool:
        """A checkpoint is due: ask all who keep something. False where nobody does, and nothing need be awaited."""
        if not self._awaited and not self._there:
            self._awaited = set(self._keepers)
        return bool(self._awaited)

    def asked(self, worker: str) -> bool:
        """Whether the worker is to bring what it keeps with its next step."""
        return worker in self._awaited

    def keeps(self, worker: str) -> bool:
        """Whether the worker has something to keep."""
        return worker in self._keepers

    def bring(self, worker: str, arrays: Arrays) -> None:
        """What a worker keeps, after its step."""
        self.kept[worker] = arrays
        self._awaited.discard(worker)
        self._there.add(worker)

    def may_begin(self, worker: str) -> bool:
        """Whether the worker need not wait for a checkpoint."""
        return worker not in self._there

    def complete(self) -> bool:
        """Whether all who were asked have brought what they keep, and the checkpoint can be taken."""
        return bool(self._there) and not self._awaited

    def clear(self) -> None:
        """The checkpoint has been taken: all go on."""
        self._there.clear()
