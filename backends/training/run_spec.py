"""A run specification holds the settings of a run; three orders to an agent begin one with it."""

import functools
from typing import Any, Dict, NamedTuple, Optional, Tuple

from backends.frameworks.base import OptimizerSettings
from backends.protocol.frames import EVALUATE
from backends.protocol.member_specs import Identity, MemberSpec
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from backends.training.lr_schedule import RateSchedule
from backends.training.step_queue import StepQueue
from backends.training.stopping import StopRule

#: The reason of a run that was asked to stop before its last step.
STOPPED = "stopped"
#: Why a member is sent away whose arrays differ from those of the run.
OTHER_MODEL = "its model is not the run's: the arrays have other names or shapes; let every device build the same model"


class Unfit(ValueError):
    """A member's arrays differ from those of the run."""

    def __init__(self) -> None:
        super().__init__(OTHER_MODEL)


class RunSpec(NamedTuple):
    """The settings of a run.

    checkpoint_every, evaluate_every: in steps; 0 for at the end only.
    strategy_text: the text of ``strategy``, as which it is sent.
    """

    steps: int  # of all members together
    optimizer: OptimizerSettings
    schedule: RateSchedule
    checkpoint_path: Optional[str]  # None to write no checkpoint
    checkpoint_every: int = 0
    evaluate_every: int = 0
    heartbeat_s: float = 10.0  # silence after which a member counts as lost
    resume: Optional[str] = None  # path of the checkpoint to resume from
    description: Dict[str, Any] = {}  # JSON values for the ``meta`` of checkpoints
    strategy_text: str = PARAMETER_SERVER.text
    members: int = 1  # expected number of members
    batch: int = 1  # samples of a usual step
    training_samples: int = 1  # of the whole training set
    seed: int = 0  # of random draws that the members of a run share
    host: str = ""  # the member on the device that hands out the steps, if any
    stop_rule: StopRule = StopRule()
    batches: Dict[str, int] = {}  # samples of each member's step, where they were planned apart
    stream: str = ""  # text of a ``StreamSpec``; empty where all samples are there from the start
    inject: str = ""  # text of an ``InjectionSpec``; empty where no samples are given to others
    step_s: Dict[str, float] = {}  # predicted seconds of each member's step, by which local rounds begin

    @property
    def strategy(self) -> Strategy:
        """How members exchange updates. Raises ValueError as ``Strategy.from_text`` does."""
        return _parsed(self.strategy_text)

    @property
    def shared_kind(self) -> str:
        """As ``Strategy.shared_kind``, with the optimizer of the settings."""
        return self.strategy.shared_kind if self.strategy.local else self.optimizer.kind

    def optimizer_at(self, step: int) -> OptimizerSettings:
        """The optimizer settings with the learning rate of a step."""
        return self.optimizer._replace(rate=self.optimizer.rate * self.schedule.factor(step))


_parsed = functools.lru_cache(maxsize=None)(Strategy.from_text)


class HostRun(NamedTuple):
    """Be the host of a run: its parameter server, or the coordinator of its peers."""

    address: str
    identity: Identity
    run: RunSpec


class TrainAlone(NamedTuple):
    """Be a cluster of one device."""

    member: MemberSpec
    run: RunSpec


class RunRank(NamedTuple):
    """Be a rank of a run whose framework exchanges the gradients; the first is also its host."""

    member: MemberSpec
    run: RunSpec  # of another than the first without paths of checkpoints
    names: Tuple[str, ...]  # of all ranks, in order
    engine: str  # text of an ``Engine``
    address: str  # of this device, whose interface carries the exchange
    store_address: str  # of the first rank
    store_port: int = 0  # which the first rank chooses and emits


def last_evaluated(meta: Dict[str, Any]) -> int:
    """The step of the last evaluation in a checkpoint's ``meta``; 0 for none."""
    evaluations = meta["evaluations"]
    return int(evaluations[-1]["step"]) if evaluations else 0


def resumed_queue(spec: RunSpec, meta: Dict[str, Any]) -> StepQueue:
    """The step queue of a run that resumes from a checkpoint.

    Raises ValueError where the checkpoint has more steps than the run.
    """
    return StepQueue(spec.steps, int(meta["step"]), spec.evaluate_every, last_evaluated(meta))


def divergence_reason(spec: RunSpec, name: str, kind: str, step: int, loss: float) -> str:
    """Why a run with a loss or gradient that is not finite ends, and the remedy."""
    source = "evaluation" if kind == EVALUATE else "gradient"
    where = (source, step, name, loss)
    finding = "the %s at step %d on %s gave a loss of %s or gradients that are not finite" % where
    remedy = "lower the learning rate of %g" % spec.optimizer.rate
    if not step and kind != EVALUATE:
        remedy = "the weights are still the initial ones: look at the data, the model and the loss"
    elif spec.members > 1 and spec.strategy.sync.waits_for(spec.members) == 1:
        remedy += ", or let workers wait for one another (sync=synchronous): gradients that come late need a lower one"
    return "training diverged: %s; %s" % (finding, remedy)
