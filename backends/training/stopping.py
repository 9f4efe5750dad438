"""A stop rule ends a run before its last step: at a target, or when it no longer improves."""

from typing import Mapping, NamedTuple, Optional, Sequence

from backends.jobs.metric_names import HIGHER, LOSS, LOWER, direction_of
from backends.protocol.events import Evaluated

#: Why a run ended early and yet as it should. Its weights are saved.
TARGET_REACHED, NO_IMPROVEMENT = "the target is reached", "the last evaluations were no better"
STREAMS_ENDED = "no more samples arrive at any device"
EARLY_ENDS = (TARGET_REACHED, NO_IMPROVEMENT, STREAMS_ENDED)


class MetricTarget(NamedTuple):
    """A value of a metric, or of the loss, that is to be reached.

    direction: HIGHER or LOWER, as the operator states it; empty for that of the evaluations.
    """

    metric: str
    value: float
    direction: str = ""

    def settled(self, stated: Mapping[str, str]) -> "MetricTarget":
        """The target with its direction: as the job states it, or the operator, or else the name.

        stated: directions by the names of all metrics, empty where the job states none.
        Raises ValueError for a metric that is not among them, and for a direction that nobody knows
        or that contradicts the job's.
        """
        known = dict(stated, **{LOSS: LOWER})
        if self.metric not in known:
            raise ValueError("an evaluation gives no %s; it gives %s" % (self.metric, ", ".join(sorted(known))))
        own = known[self.metric]
        if own and self.direction not in ("", own):
            raise ValueError("the job says that %s is better when %s" % (self.metric, own))
        direction = own or self.direction or direction_of(self.metric)
        if not direction:
            raise ValueError(
                "nothing tells whether a higher or a lower %s is better; write %s=%g:%s, or :%s"
                % (self.metric, self.metric, self.value, LOWER, HIGHER)
            )
        return self._replace(direction=direction)

    def higher_is_better(self, evaluated: Evaluated) -> bool:
        """The direction that was stated, or else that of an evaluation."""
        return self.direction == HIGHER if self.direction else self.metric in evaluated.higher_is_better

    def is_in(self, evaluated: Evaluated) -> bool:
        """Whether an evaluation has the metric."""
        return self.metric == LOSS or self.metric in evaluated.metrics

    def reached(self, evaluated: Evaluated) -> bool:
        """Whether an evaluation is as good, where it has the metric."""
        if not self.is_in(evaluated):
            return False
        found = value(evaluated, self.metric)
        return found >= self.value if self.higher_is_better(evaluated) else found <= self.value


class StopRule(NamedTuple):
    """When a run ends.

    patience: evaluations in a row without a better value of the target's metric, or of the loss
        where there is no target; 0 for no limit.
    """

    target: Optional[MetricTarget] = None
    patience: int = 0

    @property
    def text(self) -> str:
        """Until when a run goes on, as in "until ppl ≤ 25"; empty where that is its last step."""
        ends = []
        if self.target is not None:
            sign = "≥" if self.target.direction == HIGHER else "≤"
            ends.append("until %s %s %g" % (self.target.metric, sign, self.target.value))
        if self.patience:
            ends.append("until no evaluation of %d in a row is better" % self.patience)
        return ", or ".join(ends)

    def reason(self, evaluations: Sequence[Evaluated]) -> Optional[str]:
        """Why the run ends after these, without those that lack the metric; None if it goes on."""
        if self.target is not None:
            evaluations = [each for each in evaluations if self.target.is_in(each)]
        if self.target is not None and evaluations and self.target.reached(evaluations[-1]):
            return TARGET_REACHED
        if self.patience and len(evaluations) > self.patience:
            metric = LOSS if self.target is None else self.target.metric
            values = [value(each, metric) for each in evaluations]
            best = max if self.target is not None and self.target.higher_is_better(evaluations[-1]) else min
            if values.index(best(values)) < len(values) - self.patience:
                return NO_IMPROVEMENT
        return None


def value(evaluated: Evaluated, metric: str) -> float:
    """An evaluation's loss or metric."""
    return evaluated.loss if metric == LOSS else evaluated.metrics[metric]
