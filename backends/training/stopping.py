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

    def is_in(self, evaluated: Evaluated) -> bool:
        """Whether an evaluation has the metric."""
        return self.metric == LOSS or self.metric in evaluated.metrics

    def reached(self, evaluated: Evaluated) -> bool:
        """Whether an evaluation is as good, where it has the metric."""
        if not self.is_in(evaluated):
            return False
        found = value(evaluated, self.metric)
        return found >= self.value if higher_is_better(evaluated, self.metric) else found <= self.value


class StopRule(NamedTuple):
    """When a run ends.

    patience: evaluations in a row without a better value of the target's metric, or of the loss
        where there is no target; 0 for no limit.
    """

    target: Optional[MetricTarget] = None
    patience: int = 0

    def unknown_metric(self, evaluations: Sequence[Evaluated]) -> Optional[str]:
        """Why the target cannot be judged by the last of these evaluations; None if it can."""
        if self.target is None or not evaluations or self.target.is_in(evaluations[-1]):
            return None
        known = ", ".join([LOSS] + sorted(evaluations[-1].metrics))
        return "an evaluation gives no %s; it gives %s" % (self.target.metric, known)

    def reason(self, evaluations: Sequence[Evaluated]) -> Optional[str]:
        """Why the run ends after these, without those that lack the metric; None if it goes on."""
        if self.target is not None:
            evaluations = [each for each in evaluations if self.target.is_in(each)]
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
    """An evaluation's loss or metric."""
    return evaluated.loss if metric == LOSS else evaluated.metrics[metric]


def higher_is_better(evaluated: Evaluated, metric: str) -> bool:
    """The direction of a metric, which the job states."""
    return metric in evaluated.higher_is_better
