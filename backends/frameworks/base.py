"""A framework builds replicas of a model and computes gradients with them."""

import abc
import importlib
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import OptimizerSettings, Slots

#: Arrays that a member or a server keeps between steps, in a fixed order.
Arrays = Tuple[np.ndarray, ...]

#: Framework name on the command line -> the module that alone may import that framework.
FRAMEWORKS = {"torch": "backends.pytorch", "tensorflow": "backends.tensorflow"}

#: What a member keeps of its job's own optimizer, among its arrays in a checkpoint.
OWN_STATE = "optimizer"
NO_OPTIMIZER = "the job has no optimizer of its own; choose one with --optimizer"
NO_CHECKPOINTING = "--activation-checkpointing needs torch; profile it with --framework torch, or leave the option out"
#: Said of a loss that does not know how it was computed.
NO_GRADIENT = (
    "the loss does not depend on the trained parameters; compute it of the model's outputs, "
    "without detach(), item() or no_grad()"
)


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
    frozen: so many of the first elements of the state are parameters that no step changes.
    higher_is_better: names of the metrics of which this holds.
    """

    accelerator: str
    frozen: int = 0
    higher_is_better: Tuple[str, ...] = ()
    input_shape: Tuple[int, ...]  # of a known model's images
    classes: int  # of a known model
    variables: Tuple[Variable, ...]
    state_variables: Tuple[Variable, ...]
    weights: np.ndarray
    gradients: np.ndarray
    state: np.ndarray
    _own: Any = None
    _kept_state: Any = None

    def compute_in(self, precision: str) -> None:
        """Compute later gradients in bf16 or fp16; weights and gradients stay float32.

        Evaluations stay float32, too. Raises ValueError where the framework cannot do so here.
        """
        raise ValueError("%s is not computed here; profile it with --precision fp32" % precision)

    def checkpoint_activations(self) -> None:
        """Let later gradients keep the inputs of the model's blocks only, and compute these again.

        Raises ValueError where the model has no blocks, or the framework cannot do so here.
        """
        raise ValueError(NO_CHECKPOINTING)

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

    def divisible(self) -> Tuple[Tuple[int, ...], int]:
        """``ModelSize.blocks``, where its framework can divide the model, and ``frozen_bytes``."""
        return (), 4 * self.frozen

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
        """Take the host buffers' weights and changing state; little or no work on a CPU."""

    def load_frozen(self) -> None:  # noqa: B027 - there is nothing to do on a CPU
        """Take the frozen part of the host buffer of the state, which was set."""

    @property
    def changing(self) -> np.ndarray:
        """What steps change of the state, a view of its end."""
        return self.state[self.frozen :]

    def keep_state(self) -> None:
        """Keep a copy of what the next gradient changes of the state before its step is made."""
        self._kept_state = self.changing.copy()

    def kept_state(self) -> np.ndarray:
        """What steps change of the state, as it was last kept, float32."""
        kept: np.ndarray = self._kept_state
        return kept

    def whole_kept_state(self) -> np.ndarray:
        """The state as it was last kept, (state,) float32."""
        return np.concatenate([self.state[: self.frozen], self.kept_state()]) if self.frozen else self.kept_state()

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

    def begin_evaluation(self) -> None:  # noqa: B027 - some keep nothing
        """The batches evaluated from here on are of one test set."""

    @abc.abstractmethod
    def evaluate(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        """Mean loss and metrics over the samples of a batch, without learning from them."""

    def end_evaluation(self, means: Dict[str, float]) -> Dict[str, float]:
        """The metrics of the whole test set. means: over its samples, of what ``evaluate`` gave."""
        return means

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
        state: np.ndarray = self._own_optimizer().state()
        return state

    def set_own_state(self, state: np.ndarray) -> None:
        """Go on from what they kept. Raises ValueError where that cannot be read."""
        self._own_optimizer().set_state(state)

    def _own_optimizer(self) -> Any:
        """The job's own optimizer, made when it is first used: most runs have no use for it."""
        if self._own is None:
            self._own = self._make_own_optimizer()
        return self._own

    def _make_own_optimizer(self) -> Any:
        """With ``step``, ``state`` and ``set_state``. Raises ValueError where the job has none."""
        raise ValueError(NO_OPTIMIZER)


def layout_of(replica: Replica) -> Layout:
    """The layout of a replica."""
    return Layout(replica.variables, replica.state_variables)


def framework(name: str) -> Any:
    """The backend module of a framework. Raises ValueError for an unknown name.

    It offers ``version() -> str``, ``accelerator() -> (kind, device name)``, ``collectives()``, the
    backends of torch.distributed that it has here and SHARDING, if it has that, and
    ``known_job(model, input_shape, classes, seed, threads) -> Job``, which raises ValueError where
    model and data do not fit, and for errors of a user's file:

    model: a name of ``models.MODELS``, a description, or ``path/to/file.py:function``.
    input_shape, classes: of the data; None for the model's own.
    seed: the same seed gives the same weights.
    threads: used without a GPU; with TensorFlow only those of the first job of a process count.

    ``load_job(load, seed, threads) -> LoadedJob`` calls ``load``, which returns a ``UserJob``, and
    tries what it holds. It raises ValueError where that is of no use for the framework.
    ``replica(job) -> Replica`` puts the job's model on the first GPU or else on the CPU;
    ``build``, with the arguments of ``known_job``, is a replica of one. ``sharded_replica(job)``
    is one of which each member of a group holds a share, where SHARDING is among ``collectives()``.

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
