"""A stop rule ends a run before its last step: at a target, or when it no longer improves."""

from typing import NamedTuple, Optional, Sequence

from backends.protocol.events import Evaluated

LOSS = "loss"
#: Why a run ended early and yet as it should. Its weights are saved.
TARGET_REACHED, NO_IMPROVEMENT = "the target is reached", "the last evaluations were no better"
STREAMS_ENDED = "no more samples arrive at any device"
EARLY_ENDS = (TARGET_REACHED, NO_IMPROVEMENT, STREAMS_ENDED)


class MetricTarget(NamedTuple):
    """A value of a metric, or of the loss, that is to be reached."""

    metric: str
    value: float

    def reached(self, evaluated: Evaluated) -> bool:
        """Whether an evaluation is as good. Raises ValueError where it lacks the metric."""
        found = value(evaluated, self.metric)
        return found >= self.value if higher_is_better(evaluated, self.metric) else found <= self.value


class StopRule(NamedTuple):
    """When a run ends.

    patience: evaluations in a row without a better value of the target's metric, or of the loss
        where there is no target; 0 for no limit.
    """

    target: Optional[MetricTarget] = None
    patience: int = 0

    def reason(self, evaluations: Sequence[Evaluated]) -> Optional[str]:
        """Why the run ends after these; None if it goes on.

        Raises ValueError where an evaluation lacks the metric.
        """
        if self.target is not None and evaluations and self.target.reached(evaluations[-1]):
            return TARGET_REACHED
        if self.patience and len(evaluations) > self.patience:
            metric = LOSS if self.target is None else self.target.metric
            values = [value(each, metric) for each in evaluations]
            best = max if higher_is_better(evaluations[-1], metric) else min
            if values.index(best(values)) < len(values) - self.patience:
                return NO_IMPROVEMENT
        return None


def value(evaluated: Evaluated, metric: str) -> float:
    """An evaluation's loss or metric. Raises ValueError that names those there are."""
    if metric == LOSS:
        return evaluated.loss
    if metric not in evaluated.metrics:
        known = ", ".join([LOSS] + sorted(evaluated.metrics))
        raise ValueError("an evaluation gives no %s; it gives %s" % (metric, known))
    return evaluated.metrics[metric]


def higher_is_better(evaluated: Evaluated, metric: str) -> bool:
    """The direction of a metric, which the job states."""
    return metric in evaluated.higher_is_better
