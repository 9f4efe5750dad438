"""Settings of an optimizer, what it keeps from step to step, and the numbers of one update."""

import abc
import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

#: Optimizers by name. OWN is that of a user's job, in the framework's own types.
SGD, LARS, ADAM, ADAMW, OWN = "sgd", "lars", "adam", "adamw", "own"
OPTIMIZERS = (SGD, LARS, ADAM, ADAMW, OWN)
#: Those that step by the change of a round of local updates.
NESTEROV, DELAYED_NESTEROV = "nesterov", "delayed-nesterov"
#: What each optimizer keeps from step to step: arrays of (parameters,), and the number of updates.
MOMENTUM, FIRST_MOMENT, SECOND_MOMENT, UPDATES = "momentum", "first-moment", "second-moment", "updates"
BUFFER = "buffer"
SLOT_NAMES: Dict[str, Tuple[str, ...]] = {
    SGD: (MOMENTUM,),
    LARS: (MOMENTUM,),
    ADAM: (FIRST_MOMENT, SECOND_MOMENT, UPDATES),
    ADAMW: (FIRST_MOMENT, SECOND_MOMENT, UPDATES),
    OWN: (),  # each member keeps what it knows, as bytes
    NESTEROV: (MOMENTUM,),
    DELAYED_NESTEROV: (MOMENTUM, BUFFER, UPDATES),
}

#: What an optimizer keeps, by the names and in the order of SLOT_NAMES, all float32.
Slots = Dict[str, np.ndarray]


class GradientSettings(NamedTuple):
    """What is done to a gradient g where it is computed: rate (clipped g + weight_decay w).

    clip_norm: the gradient of all weights is scaled down to this norm; None for no limit.
    """

    rate: float = 1.0
    weight_decay: float = 0.0
    clip_norm: Optional[float] = None


class OptimizerSettings(NamedTuple):
    """An optimizer and its numbers; those of other optimizers are not used.

    sgd: u = rate (g + weight_decay w);  v <- momentum v + u;  w <- w - v. While the rate stays this
    is torch.optim.SGD; when it changes, what is in v keeps its rate (Sutskever et al., 2013). Thus
    workers send u, and a server has only the sums left to do.
    lars, adam, adamw: see ``backends.optimizers``. They need g itself, as ``own`` does.
    nesterov, delayed-nesterov: see ``backends.optimizers.nesterov``; delay: updates of the latter
        between two steps of its momentum.
    """

    rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    kind: str = SGD
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip_norm: Optional[float] = None
    delay: int = 1

    @property
    def in_gradients(self) -> GradientSettings:
        """What gradients include where they are computed; nothing else is left to do for SGD."""
        rate, weight_decay = (self.rate, self.weight_decay) if self.kind == SGD else (1.0, 0.0)
        return GradientSettings(rate, weight_decay, self.clip_norm)

    @property
    def changes_all(self) -> bool:
        """Whether an update also changes weights whose gradient is 0."""
        if self.kind in (ADAM, ADAMW, OWN):
            return True
        return bool(self.momentum or (self.kind == LARS and self.weight_decay))


def slot_shapes(kind: str, parameters: int) -> List[Tuple[int]]:
    """The shapes of what an optimizer keeps, in the order of SLOT_NAMES."""
    return [(1,) if name == UPDATES else (parameters,) for name in SLOT_NAMES[kind]]


def zero_slots(kind: str, parameters: int) -> Slots:
    """What an optimizer keeps before its first update."""
    shapes = slot_shapes(kind, parameters)
    return {name: np.zeros(shape, np.float32) for name, shape in zip(SLOT_NAMES[kind], shapes)}


class NativeUpdate(abc.ABC):
    """The update of one device in the framework's own arrays, which keeps its slots there.

    A slot is made on its first use: a worker whose server makes the updates needs none.
    updates: that were made, where the optimizer counts them.
    """

    updates = 0

    def slots(self, kind: str) -> Slots:
        """Host copies of what an optimizer keeps."""
        updates = np.full(1, self.updates, np.float32)
        return {name: updates if name == UPDATES else self._read(name) for name in SLOT_NAMES[kind]}

    def set_slots(self, slots: Slots) -> None:
        """Go on from what an optimizer kept."""
        for name, values in slots.items():
            if name == UPDATES:
                self.updates = int(values[0])
            else:
                self._write(name, np.array(values, np.float32))

    @abc.abstractmethod
    def _read(self, name: str) -> np.ndarray:
        """A host copy of a slot, (parameters,) float32."""

    @abc.abstractmethod
    def _write(self, name: str, values: np.ndarray) -> None:
        """Set a slot from (parameters,) float32."""


class AdamFactors(NamedTuple):
    """The numbers of one update, in Kingma and Ba's order of computing that saves a pass.

    w <- shrink w - step m / (sqrt(v) + epsilon); step and epsilon correct the bias of m and v.
    decay: weight decay that is part of the gradient; shrink: that of AdamW.
    """

    step: float
    epsilon: float
    decay: float
    shrink: float


def factors(optimizer: OptimizerSettings, updates: int) -> AdamFactors:
    """The factors of an update; updates: how many were made, with this one."""
    unbiased = math.sqrt(1.0 - optimizer.beta2**updates)
    step = optimizer.rate * unbiased / (1.0 - optimizer.beta1**updates)
    decoupled = optimizer.kind == ADAMW
    return AdamFactors(
        step,
        optimizer.epsilon * unbiased,
        0.0 if decoupled else optimizer.weight_decay,
        1.0 - optimizer.rate * optimizer.weight_decay if decoupled else 1.0,
    )
