"""A run specification is what the host of a run knows: its settings, members and checkpoints."""

from typing import Any, Dict, NamedTuple, Optional

from backends.frameworks.optimizer import OptimizerSettings
from backends.protocol.frames import EVALUATE
from backends.training.lr_schedule import RateSchedule
from backends.training.run_settings import RunSettings
from backends.training.stopping import StopRule

#: The reason of a run that was asked to stop before its last step.
STOPPED = "stopped"
#: Why a member is sent away whose arrays differ from those of the run.
OTHER_MODEL = "its model is not the run's: the arrays have other names or shapes; let every device build the same model"


class Unfit(ValueError):
    """A member's arrays differ from those of the run."""

    def __init__(self) -> None:
        super().__init__(OTHER_MODEL)


class Checkpoints(NamedTuple):
    """The checkpoints of a run, as paths on its host's device.

    path: None to write none.
    every: steps between two; 0 for none by steps.
    resume: of the checkpoint to resume from.
    description: JSON values for their ``meta``.
    every_s: seconds between two by the host's clock, where steps are made; 0 for none by time.
    """

    path: Optional[str]
    every: int = 0
    resume: Optional[str] = None
    description: Dict[str, Any] = {}
    every_s: float = 0.0


class RunSpec(NamedTuple):
    """How a run is carried out.

    optimizer, schedule: the rates that come to the settings' optimizer.
    stop_rule: when it ends before its last step.
    evaluate_every: steps between two evaluations; 0 for one at the end only.
    heartbeat_s: silence after which a member counts as lost.
    members: expected number of members.
    host: the member on the device that hands out the steps, if any.
    batches: samples of each member's step, where they were planned apart.
    step_s: predicted seconds of each member's step, by which local rounds begin.
    training_samples: of the whole training set.
    seed: of random draws that the members share.
    inject: text of an ``InjectionSpec``; empty where no samples are given to others.
    """

    run: RunSettings
    optimizer: OptimizerSettings
    schedule: RateSchedule
    checkpoints: Checkpoints
    stop_rule: StopRule = StopRule()
    evaluate_every: int = 0
    heartbeat_s: float = 10.0
    members: int = 1
    host: str = ""
    batches: Dict[str, int] = {}
    step_s: Dict[str, float] = {}
    training_samples: int = 1
    seed: int = 0
    inject: str = ""

    @property
    def shared_kind(self) -> str:
        """As ``Strategy.shared_kind``, with the optimizer of the settings."""
        strategy = self.run.strategy
        return strategy.shared_kind if strategy.local else self.optimizer.kind

    def optimizer_at(self, step: int) -> OptimizerSettings:
        """The optimizer settings with the learning rate of a step."""
        return self.optimizer._replace(rate=self.optimizer.rate * self.schedule.factor(step))


def last_evaluated(meta: Dict[str, Any]) -> int:
    """The step of the last evaluation in a checkpoint's ``meta``; 0 for none."""
    evaluations = meta["evaluations"]
    return int(evaluations[-1]["step"]) if evaluations else 0


def divergence_reason(spec: RunSpec, name: str, kind: str, step: int, loss: float) -> str:
    """Why a run with a loss or gradient that is not finite ends, and the remedy."""
    source = "evaluation" if kind == EVALUATE else "gradient"
    where = (source, step, name, loss)
    finding = "the %s at step %d on %s gave a loss of %s or gradients that are not finite" % where
    remedy = "lower the learning rate of %g" % spec.optimizer.rate
    if not step and kind != EVALUATE:
        remedy = "the weights are still the initial ones: look at the data, the model and the loss"
    elif spec.members > 1 and spec.run.strategy.sync.waits_for(spec.members) == 1:
        remedy += ", or let workers wait for one another (sync=synchronous): gradients that come late need a lower one"
    return "training diverged: %s; %s" % (finding, remedy)
