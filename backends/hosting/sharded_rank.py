"""A rank that holds a share of the model: all ranks take part in what is done with the whole."""

import functools
import os
from typing import Any, Iterator, Optional, Tuple

import numpy as np

from backends.data.loader import EvaluationSet
from backends.data.micro_batches import SplitBatch, padded
from backends.frameworks.array_files import on_disk
from backends.frameworks.base import Arrays, layout_of
from backends.frameworks.model_share import ModelShare
from backends.frameworks.optimizer import SLOT_NAMES
from backends.frameworks.process_group import ProcessGroup
from backends.hosting.rank import Rank
from backends.hosting.step_queue import WorkItem
from backends.protocol.events import TimeSpent
from backends.training.checkpoint import Checkpoint, read_for

_NOTHING = np.empty(0, np.float32)


class ShardedRank(Rank):
    """As ``Rank``, with a share of a model as its replica.

    Whole arrays are in files of the first rank, beside its checkpoint.
    """

    _replica: ModelShare
    _restored: Optional[Checkpoint] = None  # what the first rank goes on from
    _collected: Optional[Checkpoint] = None  # the whole, after the last step

    def _begin(self) -> None:
        self._replica.folder = os.path.dirname(self.spec.checkpoints.path or "") or None
        super()._begin()
        self._restored = None

    def _saved(self, path: str) -> Checkpoint:
        return read_for(path, layout_of(self._replica), functools.partial(on_disk, folder=self._replica.folder))

    def _restore(self, saved: Checkpoint, own_state: Arrays) -> None:
        self._restored = saved

    def _receive_weights(self) -> None:
        slots = dict.fromkeys(SLOT_NAMES[self.spec.optimizer.kind], _NOTHING)
        saved = self._restored or Checkpoint(_NOTHING, slots, _NOTHING, {}, layout_of(self._replica))
        self._replica.set_whole(saved.weights, saved.state)
        self._set_slots(saved.slots)

    def _gradient(self, item: WorkItem, batch: Any, size: int) -> float:
        if isinstance(batch, SplitBatch):  # all gather the blocks for each of as many parts
            parts = self._group.gather((float(len(batch.parts)),))
            batch = padded(batch, int(parts.max()))
        return super()._gradient(item, batch, size)

    def _gather_state(self) -> None:
        super()._gather_state()
        replica = self._replica
        whole = replica.whole_weights(), self._slots(), replica.whole_state()
        self._collected = Checkpoint(*whole, {}, layout_of(replica))

    @property
    def _can_save(self) -> bool:
        return self._collected is not None

    def _snapshot(self) -> Checkpoint:
        assert self._collected is not None, "it can be saved"
        found = self._collected._replace(meta=self._meta(), member_states=self._batch_policy_state())
        self._collected = None  # it is of this step alone
        return found

    def save_after_failure(self) -> None:
        """The other shares are lost: the checkpoint before is the last one."""
        self.step_queue.stop()
        self._emit_progress()

    def _evaluate(self, item: WorkItem, test: EvaluationSet) -> None:
        """The first rank evaluates; the others gather blocks with it, on batches of their own."""
        if self._is_first:
            before = self._exchange()
            super()._evaluate(item, _Announced(test, self._group))
            after = self._exchange()
            waited_s, cpu_s = after.exposed_s - before.exposed_s, after.exposed_cpu_s - before.exposed_cpu_s
            waited = TimeSpent(evaluation_s=-waited_s, exchange_s=waited_s, exchange_cpu_s=cpu_s)
            self.spent = self.spent.plus(waited)
            return
        self._average_state()
        own = _endless(test)
        while self._group.gather((0.0,))[0, 0]:
            self._replica.evaluate(next(own))
        self.step_queue.complete(self.name)


class _Announced(EvaluationSet):
    """A set whose every batch, and whose end, the first rank tells the others of."""

    def __init__(self, test: EvaluationSet, group: ProcessGroup) -> None:
        self._test, self._group = test, group
        self.most_at_once = test.most_at_once

    @property
    def is_empty(self) -> bool:
        return self._test.is_empty

    def count(self) -> Optional[int]:
        return self._test.count()

    def batches(self, size: int) -> Iterator[Tuple[int, Any]]:
        for each in self._test.batches(size):
            self._group.gather((1.0,))
            yield each
        self._group.gather((0.0,))


def _endless(test: EvaluationSet) -> Iterator[Any]:
    while True:
        for _, batch in test.batches(test.most_at_once):
            yield batch
