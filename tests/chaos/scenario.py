"""A scenario is one run with one fault: everything of it follows from one integer."""

import math
import random
from typing import NamedTuple

#: Devices of the lab; the first of a scenario is the plan's server.
DEVICES = ("anna", "bert", "carl")
OPERATOR = "operator"
HEARTBEAT_S = 2.0
#: Of fast and slow devices.
STEPS_S = (0.02, 0.03, 0.06)
MOMENTUM, RATE = 0.5, 0.05

#: Strategies of which every update is the mean of gradients at the weights before it.
REPLAYABLE = ("parameter-server:sync=synchronous", "allreduce", "baseline")
STRATEGIES = (
    *REPLAYABLE, "parameter-server", "layer-drop:sync=synchronous", "dlion:sync=bounded", "crossover",
    "diloco:local=steps:every=5",
)  # fmt: skip
PLANNER, TORCH = "planner", "torch"

#: Faults of a process, of a device, of the job, of what is around them, and of the operator.
KILL, STOP, MEMORY = "kill", "stop", "memory limit"
SWITCH_OFF, CUT, SSHD, FULL_DISK, SLOW_DISK, CLOCK = (
    "switch off", "cut", "sshd restart", "full disk", "slow disk", "clock jump",
)  # fmt: skip
HANG_STEP, HANG_EVALUATION = "hang in a step", "hang in an evaluation"
ERROR_STEP, ERROR_EVALUATION, ERROR_DATA = "error in a step", "error in an evaluation", "error in the data"
CHILDREN = "children left"
CTRL_C, OPERATOR_KILLED, OPERATOR_DISK = "Ctrl-C", "operator killed", "full disk of the operator"
NOTHING = "nothing"
OF_A_PROCESS = (KILL, STOP)
OF_A_DEVICE = (SWITCH_OFF, CUT, SSHD, FULL_DISK, SLOW_DISK, CLOCK)
ERRORS = (ERROR_STEP, ERROR_EVALUATION, ERROR_DATA)
OF_THE_JOB = (HANG_STEP, HANG_EVALUATION, *ERRORS, CHILDREN, MEMORY)
OF_THE_OPERATOR = (CTRL_C, OPERATOR_KILLED, OPERATOR_DISK, NOTHING)
FAULTS = OF_A_PROCESS + OF_A_DEVICE + OF_THE_JOB + OF_THE_OPERATOR
#: Those that may pass by themselves.
PASSING = (STOP, SWITCH_OFF, CUT, FULL_DISK)
#: Those that may take a machine away. These runs last longer, so that checkpoints were carried.
LOSSES, LONGER = (KILL, STOP, SWITCH_OFF, CUT, SSHD, OPERATOR_KILLED), 3
#: What passes does so well before it can be noticed, or well after.
SHORT_S, LONG_S = 0.3 * HEARTBEAT_S, 2.5 * HEARTBEAT_S


class Fault(NamedTuple):
    """What goes wrong, where and when.

    device: a device's name, or OPERATOR.
    of_host: whether it is the process that hosts the run, and not a member on its device.
    after: share of the run's steps after which it comes; 0 while the members start.
    lasts_s: math.inf for one that stays.
    """

    kind: str
    device: str
    of_host: bool
    after: float
    lasts_s: float


class Scenario(NamedTuple):
    """devices: the members; the first is the plan's server. steps_s: a step of each, in seconds."""

    seed: int
    engine: str
    strategy: str
    devices: tuple[str, ...]
    steps: int
    checkpoint_every: int
    fault: Fault
    steps_s: tuple[float, ...]

    @property
    def is_alone(self) -> bool:
        return len(self.devices) == 1

    @property
    def is_job(self) -> bool:
        """Whether a job trains: what fails in a model of a file is tried again."""
        return self.fault.kind in ERRORS

    @property
    def has_torch(self) -> bool:
        """Whether devices compute with torch, and not in numpy."""
        return self.engine == TORCH or self.is_job

    @property
    def hits_host(self) -> bool:
        """Whether the fault takes away what hosts the run."""
        fault = self.fault
        if fault.device != self.devices[0]:
            return False
        return self.is_alone or self.engine == TORCH or fault.of_host or fault.kind in OF_A_DEVICE

    @property
    def needs_all(self) -> bool:
        """Whether the run ends with the first member that is lost."""
        return self.is_alone or self.engine == TORCH

    @property
    def replayable(self) -> bool:
        return self.is_alone or self.strategy in REPLAYABLE

    @property
    def surplus(self) -> int:
        """Steps that may be made beyond those asked for: peers and ranks make whole rounds."""
        return 0 if self.is_alone or self.strategy.startswith(("parameter-server", "layer")) else len(self.devices) - 1

    @property
    def text(self) -> str:
        """All of it in one line."""
        fault = self.fault
        on = ", ".join(f"{name} ({1e3 * step_s:g} ms)" for name, step_s in zip(self.devices, self.steps_s, strict=True))
        where = fault.device + (" (host)" if fault.of_host else "")
        when = "at the start" if fault.after == 0 else f"after {fault.after:.0%}"
        lasts = "" if math.isinf(fault.lasts_s) else f" for {fault.lasts_s:.1f} s"
        return (
            f"seed {self.seed}: {self.engine}, {self.strategy}, on {on}, {self.steps} steps, "
            f"checkpoints every {self.checkpoint_every}; {fault.kind} at {where} {when}{lasts}"
        )


def scenario(seed: int) -> Scenario:
    """The scenario of a seed. Neighbouring seeds have neighbouring faults, so that none is rare."""
    draw = random.Random(seed)
    kind = FAULTS[seed % len(FAULTS)]
    engine = TORCH if draw.random() < 0.12 else PLANNER
    count = draw.choices((1, 2, 3), (1, 5, 4))[0]
    devices = tuple(draw.sample(DEVICES, max(count, 2 if engine == TORCH else 1)))
    strategy = "allreduce" if engine == TORCH else draw.choice(STRATEGIES)
    steps = 12 * draw.randint(8, 14) * (LONGER if kind in LOSSES else 1)
    interval, fault = draw.choice((6, 12, 24)), _fault(draw, kind, devices)
    steps_s = tuple(draw.choice(STEPS_S) for _ in devices)
    return Scenario(seed, engine, strategy, devices, steps, interval, fault, steps_s)


def _fault(draw: random.Random, kind: str, devices: tuple[str, ...]) -> Fault:
    device = draw.choice((*devices, OPERATOR) if kind == CLOCK else devices)
    device = OPERATOR if kind in OF_THE_OPERATOR else device
    of_host = kind in OF_A_PROCESS and device == devices[0] and draw.random() < 0.5
    # An evaluation, a full disk and a child are there from some step on; nothing starts with them.
    starts = kind in (*OF_A_PROCESS, SWITCH_OFF, CUT, SSHD, CTRL_C, OPERATOR_KILLED) and draw.random() < 0.15
    after = 0.0 if starts else draw.uniform(0.1, 0.8)
    lasts_s = draw.choice((SHORT_S, LONG_S, math.inf)) if kind in PASSING else math.inf
    return Fault(kind, device, of_host, round(after, 2), lasts_s)
