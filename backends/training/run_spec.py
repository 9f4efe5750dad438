"""What a run is to do, wherever its steps are handed out."""

from typing import Any, Dict, NamedTuple, Optional

from backends.frameworks.base import OptimizerSettings
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from backends.training.lr_schedule import RateSchedule
from backends.training.step_queue import EVALUATE, StepQueue, WorkItem

#: Why a run that was asked to stop ended before its last step.
STOPPED = "stopped"


class RunSpec(NamedTuple):
    """What a run is to do. ``checkpoint_every`` counts steps; 0 means only at the end. Without a
    ``checkpoint_path`` nothing is kept of what was learnt.

    strategy: how they exchange what they learn; members: how many are expected; batch, training_samples: samples of a
    usual step and of all training data; host: which of them is where the steps are handed out. Of runs of peers: the
    seed of what they draw together.
    """

    steps: int
    optimiser: OptimizerSettings
    schedule: RateSchedule
    checkpoint_path: Optional[str]
    checkpoint_every: int = 0
    evaluate_every: int = 0
    heartbeat_s: float = 10.0
    resume: Optional[str] = None
    description: Dict[str, Any] = {}
    strategy: Strategy = PARAMETER_SERVER
    members: int = 1
    batch: int = 1
    training_samples: int = 1
    seed: int = 0
    host: str = ""

    def optimiser_at(self, step: int) -> OptimizerSettings:
        """With the rate of a step."""
        return self.optimiser._replace(rate=self.optimiser.rate * self.schedule.factor(step))

    def order(self, ticket: WorkItem) -> Dict[str, Any]:
        """What a worker is told to do: the ticket, and how to scale the gradients of its step (base.Replica)."""
        scaled = OptimizerSettings(rate=1.0) if self.strategy.with_lars else self.optimiser_at(ticket.step)
        return dict(ticket._asdict(), rate=scaled.rate, weight_decay=scaled.weight_decay)


def last_evaluated(meta: Dict[str, Any]) -> int:
    """The step of the last evaluation that a checkpoint tells of; 0 for none."""
    evaluations = meta["evaluations"]
    return int(evaluations[-1]["step"]) if evaluations else 0


def resumed(work: RunSpec, meta: Dict[str, Any]) -> StepQueue:
    """The tickets of a run that goes on from a checkpoint. Raises ValueError where it has more steps than asked."""
    return StepQueue(work.steps, int(meta["step"]), work.evaluate_every, last_evaluated(meta))


def diverged(work: RunSpec, name: str, ticket: Any, loss: float) -> str:
    """Why a run whose loss or gradient is not finite ends, and what to do."""
    what = "evaluation" if ticket.kind == EVALUATE else "gradient"
    where = (what, ticket.step, name, loss)
    found = "the %s at step %d on %s gave a loss of %s or gradients that are not finite" % where
    remedy = "lower the learning rate of %g" % work.optimiser.rate
    if work.members > 1 and work.strategy.sync.waits_for(work.members) == 1:
        remedy += ", or let workers wait for one another (sync=synchronous): gradients that come late need a lower one"
    return "training diverged: %s; %s" % (found, remedy)
