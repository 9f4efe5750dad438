"""The ranks of a run agree at their meetings on the samples of each rank's steps, and weigh them.

A rank whose stream has ended takes part in the steps of the others, which wait for its gradients:
it computes its last batch again, and that gradient does not count.
"""

from typing import Any, Callable

import numpy as np

from backends.data.arrivals import never
from backends.data.loader import BatchSource
from backends.frameworks.process_group import ProcessGroup
from backends.strategies.aggregation_rules import FACTORS
from backends.training.run_spec import RunSpec


class RankBatches(BatchSource):
    """The batches of one rank.

    source: as planned. arriving: samples of a step by the rate of this rank's stream.
    size: samples of a step, as agreed on.
    over: whether the stream has ended.
    """

    def __init__(self, spec: RunSpec, group: ProcessGroup, source: BatchSource, arriving: Callable[[], int]) -> None:
        self._spec = spec
        self._group = group
        self._source = source
        self.arrivals = source.arrivals
        self.batch = self._planned = self.size = source.batch
        self._arriving = arriving
        self._last: Any = None
        self.over = False

    @property
    def may_change(self) -> bool:
        return self._spec.run.stream is not None or self._spec.run.strategy.batching != "fixed"

    @property
    def wanted(self) -> int:
        """Samples of a step from the next meeting on; 0 for no more."""
        if self.over:
            return 0
        return self._planned if self._spec.run.strategy.batching == "fixed" else self._arriving()

    def agree(self, wanted: np.ndarray) -> int:
        """Go on with what the ranks want, (ranks,); return how many of them have samples."""
        present = int(np.count_nonzero(wanted))
        if present:
            own, mean = int(wanted[self._group.rank]), float(wanted.sum()) / present
            factor = FACTORS["rates" if self._spec.run.strategy.aggregation == "rates" else "samples"]
            self._group.weigh(factor(own, mean, self._spec.run.batch, present))
            self.size = own or self.size
        return present

    def wait(self, over: Callable[[], bool] = never) -> None:
        """Even when the run is to stop: until the next meeting the others wait in this step."""
        self._source.batch = self.batch
        if not self.over:
            self._source.wait()

    def __next__(self) -> Any:
        """The next batch, or the last one again."""
        if not self.over:
            batch = next(self._source)
            if self.may_change:
                self._last = batch
            return batch
        return self._last

    def end(self) -> None:
        """Draw nothing more, and count for nothing. Raises ValueError before the first batch."""
        if self._last is None:
            raise ValueError(
                "the samples of its first step never arrived; with --engine torch the others cannot go on without "
                "it, with --engine planner they can"
            )
        self.over = True
        self._group.weigh(0.0)
