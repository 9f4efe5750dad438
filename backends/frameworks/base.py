"""A framework builds replicas of a model and computes gradients with them."""

import abc
import functools
import importlib
import operator
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

#: Arrays that a member or a server keeps between steps, in a fixed order.
Arrays = Tuple[np.ndarray, ...]

#: Framework name on the command line -> the module that alone may import that framework.
FRAMEWORKS = {"torch": "backends.pytorch", "tensorflow": "backends.tensorflow"}


class Variable(NamedTuple):
    """One named array inside a flat buffer: shape, and its elements [start, start + size)."""

    name: str
    shape: Tuple[int, ...]
    start: int
    size: int

    @property
    def span(self) -> Tuple[int, int]:
        """Start and end of its elements in the flat buffer."""
        return self.start, self.start + self.size

    @property
    def part(self) -> slice:
        """Its elements in the flat buffer."""
        return slice(*self.span)


def elements(shape: Sequence[int]) -> int:
    """How many an array of this shape has."""
    return int(functools.reduce(operator.mul, shape, 1))


def consecutive(named_shapes: Iterable[Tuple[str, Sequence[int]]]) -> Tuple[Variable, ...]:
    """Variables of these names and shapes, one after the other in a flat buffer."""
    found: List[Variable] = []
    start = 0
    for name, shape in named_shapes:
        found.append(Variable(name, tuple(shape), start, elements(shape)))
        start += found[-1].size
    return tuple(found)


class Layout(NamedTuple):
    """The arrays that lie one after the other in flat buffers.

    The members and checkpoints of a run must agree on it.
    """

    variables: Tuple[Variable, ...]  # in the buffer of weights
    state_variables: Tuple[Variable, ...]  # in the buffer of state

    def check(self) -> None:
        """Raises ValueError unless all elements have one place each."""
        for variables in self:
            end = 0
            for variable in variables:
                if variable.start != end or variable.size != elements(variable.shape):
                    raise ValueError("%s does not lie behind the one before it, or has another size" % variable.name)
                end += variable.size

    @property
    def parameters(self) -> int:
        """Number of trained elements."""
        return sum(variable.size for variable in self.variables)

    @property
    def state(self) -> int:
        """Number of elements that are not trained."""
        return sum(variable.size for variable in self.state_variables)


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

#: What a member keeps of its job's own optimizer, among its arrays in a checkpoint.
OWN_STATE = "optimizer"
NO_OPTIMIZER = "the job has no optimizer of its own; choose one with --optimizer"
#: Said of a loss that does not know how it was computed.
NO_GRADIENT = (
    "the loss does not depend on the trained parameters; compute it of the model's outputs, "
    "without detach(), item() or no_grad()"
)

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


class AcceleratorMemory(NamedTuple):
    """Memory of the accelerator, in bytes; None for what this framework cannot tell.

    peak_bytes: most that arrays of this process have taken since the peak was forgotten.
    available_bytes: what this process could have in all.
    is_shared: it is the host's memory, as on boards with an integrated GPU.
    """

    peak_bytes: Optional[int]
    available_bytes: Optional[int]
    is_shared: bool = False


class Replica(abc.ABC):
    """A full copy of one model on one device, seen through flat float32 host buffers.

    weights, gradients: (parameters,), the gradients as they were asked for, the u or g of
    OptimizerSettings.
    state: (state,), what is not trained but belongs to the model, such as running statistics.
    On a CPU the buffers share memory with the framework's own tensors: nothing is copied.
    higher_is_better: names of the metrics of which this holds.
    """

    accelerator: str
    higher_is_better: Tuple[str, ...] = ()
    input_shape: Tuple[int, ...]  # of a known model's images
    classes: int  # of a known model
    variables: Tuple[Variable, ...]
    state_variables: Tuple[Variable, ...]
    weights: np.ndarray
    gradients: np.ndarray
    state: np.ndarray

    def compute_in(self, precision: str) -> None:
        """Compute later gradients in bf16 or fp16; weights and gradients stay float32.

        Evaluations stay float32, too. Raises ValueError where the framework cannot do so here.
        """
        raise ValueError("%s is not computed here; profile it with --precision fp32" % precision)

    @abc.abstractmethod
    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        """Compute the gradients of rate (loss + weight_decay |w|^2 / 2); return the mean loss.

        adds: to the gradients at hand, and not in their place; then without weight decay.
        batch: as the job's forward takes it; of known models a pair of images, (samples,
        height, width, channels) of uint8 or float32, and labels, int64 (samples,).
        Done when it returns: work on a GPU is synchronised.
        """

    def ready_shares(self, compute: Callable[[], Any]) -> Optional[np.ndarray]:
        """The share of a gradient's time after which each trained variable has its gradient.

        compute: takes a gradient. Returns (variables,) in (0, 1], or None where this framework
        cannot tell.
        """
        return None

    @abc.abstractmethod
    def gradient_norm(self) -> float:
        """The Euclidean norm of the gradients at hand."""

    @abc.abstractmethod
    def rescale(self, factor: float, decay: float) -> None:
        """The gradients g at hand become factor g + decay w."""

    @abc.abstractmethod
    def fetch(self) -> None:
        """Bring gradients, state and updated weights into the host buffers."""

    @abc.abstractmethod
    def load(self) -> None:
        """Take the host buffers' weights and state into the replica; little or no work on a CPU."""

    def set_weights(self, values: np.ndarray) -> None:
        """Set the weights from (parameters,) float32."""
        np.copyto(self.weights, values)
        self.load()

    @abc.abstractmethod
    def update(self, optimizer: OptimizerSettings) -> None:
        """One step on the accelerator with the gradients at hand (a single-device step).

        With any optimizer but LARS. The gradients are those of ``OptimizerSettings.in_gradients``.
        A scheduler of the job's own makes a step as well.
        """

    @abc.abstractmethod
    def evaluate(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        """Mean loss and metrics over the samples of a batch, without learning from them."""

    @abc.abstractmethod
    def slots(self, kind: str) -> Slots:
        """Host copies of what the native optimizer of this name keeps."""

    @abc.abstractmethod
    def set_slots(self, slots: Slots) -> None:
        """Go on from the slots of an optimizer."""

    def own_step(self, weights: np.ndarray, gradients: np.ndarray) -> None:
        """One step of the job's own optimizer on host arrays, (parameters,) float32 each, in place.

        The replica then has these weights. Raises ValueError where the job has no optimizer.
        """
        raise ValueError(NO_OPTIMIZER)

    def own_state(self) -> np.ndarray:
        """What the job's own optimizer and scheduler keep, (n,) uint8."""
        raise ValueError(NO_OPTIMIZER)

    def set_own_state(self, state: np.ndarray) -> None:
        """Go on from what they kept. Raises ValueError where that cannot be read."""
        raise ValueError(NO_OPTIMIZER)


def layout_of(replica: Replica) -> Layout:
    """The layout of a replica."""
    return Layout(replica.variables, replica.state_variables)


def framework(name: str) -> Any:
    """The backend module of a framework. Raises ValueError for an unknown name.

    It offers ``version() -> str``, ``accelerator() -> (kind, device name)``, ``collectives()``, the
    backends of torch.distributed that it has here, and
    ``known_job(model, input_shape, classes, seed, threads) -> Job``, which raises ValueError where
    model and data do not fit, and for errors of a user's file:

    model: a name of ``models.MODELS``, a description, or ``path/to/file.py:function``.
    input_shape, classes: of the data; None for the model's own.
    seed: the same seed gives the same weights.
    threads: used without a GPU; with TensorFlow only those of the first job of a process count.

    ``load_job(load, seed, threads) -> LoadedJob`` calls ``load``, which returns a ``UserJob``, and
    tries what it holds. It raises ValueError where that is of no use for the framework.
    ``replica(job) -> Replica`` puts the job's model on the first GPU or else on the CPU;
    ``build``, with the arguments of ``known_job``, is a replica of one.

    ``accelerator_memory() -> AcceleratorMemory``, None without an accelerator, tells the peak since
    ``forget_peak_memory()``, which frees memory of the accelerator that no array uses.
    ``is_out_of_memory(error) -> bool`` tells whether an exception means that memory was short.

    ``require_process_group()`` raises ValueError where its replicas cannot average their gradients
    themselves; else ``process_group(settings, listener)`` is a ``process_group.ProcessGroup``.
    ``group_cpu_s(replica, draw)`` is the processor seconds that it adds to a gradient besides the
    exchange, None where it adds none or that is unknown. A framework whose ``collectives()`` is
    empty has neither ``process_group`` nor ``group_cpu_s``.
    """
    if name not in FRAMEWORKS:
        raise ValueError("unknown framework %r; known: %s" % (name, ", ".join(sorted(FRAMEWORKS))))
    return importlib.import_module(FRAMEWORKS[name])


def usable_threads(usable_cores: float, limit: Optional[int] = None) -> int:
    """Threads for a framework: whole cores it may really use, at least one."""
    threads = max(1, int(usable_cores))
    return threads if limit is None else min(threads, limit)
