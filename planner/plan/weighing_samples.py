"""Workers that share a global batch must wait for one another and weigh gradients by samples."""

from backends.strategies.strategy import Strategy
from planner.errors import PlanError

#: How gradients of unequal batches make the mean over all samples.
BY_SAMPLES = "samples"
REMEDY = "choose --strategy parameter-server:sync=synchronous, allreduce or baseline, or --engine torch"


def weighing_samples(strategy: Strategy) -> Strategy:
    """The strategy with its gradients weighed by samples.

    Raises PlanError for one in which a step has no global batch, or that cannot weigh so.
    """
    reason = _reason(strategy)
    if reason is not None:
        raise PlanError(f"--global-batch with strategy {strategy.text}: {reason}; {REMEDY}")
    return strategy if strategy.aggregation == BY_SAMPLES else strategy.with_part("aggregation", BY_SAMPLES)


def _reason(strategy: Strategy) -> str | None:
    if strategy.batching != "fixed":
        return f"batching={strategy.batching} deals out batches by itself"
    if strategy.sync.staleness or strategy.sync.backups:
        return "its workers do not wait for one another, so no step has a batch of all"
    if strategy.topology.name == "groups":
        return "a leader takes the mean of its group, whatever the batches"
    if strategy.aggregation in ("average", "push-sum", "pairwise"):
        return "it averages weights, not gradients, whatever the batches"
    if strategy.aggregation not in ("mean", BY_SAMPLES):
        return f"aggregation={strategy.aggregation} weighs otherwise; leave it out"
    return None
