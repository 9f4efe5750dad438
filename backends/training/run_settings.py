"""The settings of a run are one record: `recommend` plans with it, and every member obeys it."""

from typing import NamedTuple, Optional

from backends.strategies.engine import OWN_ENGINE, Engine
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from backends.streams.spec import StreamSpec
from profilers.records.steps import ComputeSettings


class RunSettings(NamedTuple):
    """What is run; each of these may change how long a step is predicted to take.

    model: a known one, FILE.py:function of a user's, or a user's job; "" for the one of a profile.
    job: whether it is a job.
    steps: of all members together; batch: samples of a usual step; 0 for those of a profile.
    strategy: how members exchange updates, with the optimizer.
    engine: what moves the gradients. The strategy of torch.distributed is an all-reduce.
    clip_norm: to which gradients are scaled down; None for no limit.
    stream: as which samples arrive; None where all are there from the start.
    rates_seed: of the rates of streams that are drawn.
    """

    model: str = ""
    job: bool = False
    steps: int = 0
    batch: int = 0
    strategy: Strategy = PARAMETER_SERVER
    engine: Engine = OWN_ENGINE
    clip_norm: Optional[float] = None
    compute: ComputeSettings = ComputeSettings()
    stream: Optional[StreamSpec] = None
    rates_seed: int = 0
