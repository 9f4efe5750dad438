"""Outputs of a whole test set are kept for the metrics that are not means over its samples."""

from typing import Any, Callable, Dict, List, Tuple

from backends.jobs.failure import refusal
from backends.jobs.job import Metric

UNJOINED = (
    "a metric of the whole test set needs the outputs and targets of all batches joined along their first axis: %s; "
    "let forward return them with the samples first, or flattened"
)


class KeptOutputs:
    """Outputs and targets of the batches so far.

    join: the parts of a value, one a batch, as one; raises ValueError where they do not fit.
    """

    def __init__(self, metrics: Dict[str, Metric], join: Callable[[List[Any]], Any]) -> None:
        self._metrics = metrics
        self._join = join
        self._parts: List[Tuple[Any, Any]] = []

    @property
    def is_needed(self) -> bool:
        """Whether a metric is of the whole test set."""
        return any(metric.of_whole for metric in self._metrics.values())

    def add(self, outputs: Any, targets: Any) -> None:
        """Keep those of a batch, which are in main memory."""
        self._parts.append((outputs, targets))

    def of_whole(self) -> Dict[str, Any]:
        """The metrics of the whole test set, as their functions give them."""
        if not self._parts:
            return {}
        try:
            outputs, targets = (self._join(list(parts)) for parts in zip(*self._parts))
        except ValueError as error:
            raise refusal(UNJOINED % error) from error
        metrics = self._metrics.items()
        return {name: metric.function(outputs, targets) for name, metric in metrics if metric.of_whole}

    def figures(self, means: Dict[str, float]) -> Dict[str, float]:
        """All metrics. means: of the others, over all samples."""
        found = {name: self._metrics[name].of_mean(mean) for name, mean in means.items()}
        return dict(found, **{name: float(value) for name, value in self.of_whole().items()})
