"""A checkpoint is a run's state as named arrays in one .npz file, written whole or not at all.

Arrays of a file:
meta: JSON values, as bytes.
weights/NAME, momentum/NAME, state/NAME: by variable.
kept/MEMBER/...: each member's own arrays.
Nothing is ever unpickled.
"""

import contextlib
import json
import os
import threading
import zipfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from backends.frameworks.base import Arrays, Layout, Variable
from backends.optimizers.sgd import finite
from backends.protocol.events import CheckpointFailed, CheckpointWritten, Emit

#: Version 2: the momentum includes the learning rates of the gradients in it.
SCHEMA = 2

#: Prefix of the names of members' own arrays in a file: what they keep from step to step.
MEMBER_PREFIX = "kept/"


class Checkpoint(NamedTuple):
    """The state of a run.

    weights, momentum: (parameters,) float32.
    member_states: by member, its residuals, velocities and counters: arrays of any shape.
    """

    weights: np.ndarray
    momentum: np.ndarray
    state: np.ndarray  # (state,) float32, the arrays of a model that are not trained
    meta: Dict[str, Any]  # JSON values, among them the ``step`` of the checkpoint and all ``evaluations``
    member_states: Dict[str, Arrays] = {}


class CheckpointWriter:
    """Writes checkpoints to one path, one at a time; without a path it writes none.

    Not thread-safe: its owner holds the run's lock.
    """

    def __init__(self, path: Optional[str], emit: Emit) -> None:
        self._path = path
        self._emit = emit
        self._thread: Optional[threading.Thread] = None

    def write_in_background(self, snapshot: Callable[[], Checkpoint], layout: Layout) -> None:
        """Write in another thread; a checkpoint that is due during a write is skipped."""
        if self._path is not None and (self._thread is None or not self._thread.is_alive()):
            args = (self._path, snapshot(), layout, self._emit)
            self._thread = threading.Thread(target=save, args=args, daemon=True)
            self._thread.start()

    def write(self, snapshot: Callable[[], Checkpoint], layout: Layout) -> None:
        """Wait for a write in progress, then write, and return when it is done."""
        self.join()
        if self._path is not None:
            save(self._path, snapshot(), layout, self._emit)

    def join(self) -> None:
        """Wait for a write in the background to end."""
        if self._thread is not None:
            self._thread.join()


def save(path: str, checkpoint: Checkpoint, layout: Layout, emit: Emit) -> None:
    """Write ``checkpoint`` and emit an event; on failure, emit ``checkpoint_failed``."""
    try:
        write(path, checkpoint, layout)
        emit(CheckpointWritten(path, checkpoint.meta["step"], os.path.getsize(path)))
    except (OSError, ValueError) as error:
        emit(CheckpointFailed("%s: %s" % (path, error)))


def write(path: str, checkpoint: Checkpoint, layout: Layout) -> None:
    """Write to a temporary file beside ``path``, then rename it.

    Raises OSError, for example on a full disk.
    Raises ValueError for values that are not finite, so that the previous checkpoint is kept.
    """
    arrays = _named_arrays(checkpoint, layout)
    temporary = "%s.%d" % (path, os.getpid())
    try:
        with open(temporary, "wb") as stream:
            np.savez(stream, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _named_arrays(checkpoint: Checkpoint, layout: Layout) -> Dict[str, Any]:
    meta = json.dumps(dict(checkpoint.meta, schema=SCHEMA)).encode()
    arrays: Dict[str, Any] = {"meta": np.frombuffer(meta, np.uint8)}
    for kind, variables in (
        ("weights", layout.variables),
        ("momentum", layout.variables),
        ("state", layout.state_variables),
    ):
        flat = getattr(checkpoint, kind)
        if not finite(flat):
            raise ValueError("%s of step %s are not finite" % (kind, checkpoint.meta["step"]))
        for variable in variables:
            values = flat[variable.part]
            arrays[kind + "/" + variable.name] = values.reshape(variable.shape)
    for member, own in checkpoint.member_states.items():
        arrays.update({"%s%s/%d" % (MEMBER_PREFIX, member, i): array for i, array in enumerate(own)})
    return arrays


def read(path: str) -> Tuple[Checkpoint, Layout]:
    """A checkpoint and the layout of its model.

    Raises ValueError where the file is damaged, OSError where there is none.
    """
    with _opened(path) as arrays:
        meta = _meta(arrays)
        weights, variables = _flat(arrays, "weights")
        momentum, same = _flat(arrays, "momentum")
        state, state_variables = _flat(arrays, "state")
        if same != variables:
            raise ValueError("weights and momentum do not match")
        member_states = _member_states(arrays)
    return Checkpoint(weights, momentum, state, meta, member_states), Layout(variables, state_variables)


def read_for(path: str, layout: Layout) -> Checkpoint:
    """A checkpoint of a model with this layout.

    Raises as ``read`` does, and ValueError where the checkpoint is of another model.
    """
    saved, found = read(path)
    if found != layout:
        raise ValueError(
            "checkpoint %s is of another model: it has %d parameters in %d arrays, "
            "this one %d in %d, or other names"
            % (path, found.parameters, len(found.variables), layout.parameters, len(layout.variables))
        )
    return saved


def peek(path: str) -> Dict[str, Any]:
    """The ``meta`` of a checkpoint alone.

    Raises ValueError where the file is damaged, OSError where there is none.
    """
    with _opened(path) as arrays:
        return _meta(arrays)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    with open(path, "rb") as stream:
        try:
            if not zipfile.is_zipfile(stream):
                raise ValueError("it is not a .npz archive, or truncated")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as arrays:
                yield arrays
        except (zipfile.BadZipFile, EOFError, KeyError, ValueError, NotImplementedError) as error:
            raise ValueError("checkpoint %s is damaged or not a checkpoint: %s" % (path, error)) from error


def _meta(arrays: Any) -> Dict[str, Any]:
    if "meta" not in arrays.files:
        raise ValueError("it has no array named meta")
    meta: Dict[str, Any] = json.loads(arrays["meta"].tobytes().decode())
    if meta.get("schema") != SCHEMA:
        raise ValueError("it has schema %r, this version reads %d" % (meta.get("schema"), SCHEMA))
    return meta


def _flat(arrays: Any, kind: str) -> Tuple[np.ndarray, Tuple[Variable, ...]]:
    """All arrays of one kind as one (n,) float32, in file order, and their variables."""
    variables: List[Variable] = []
    values = [np.empty(0, np.float32)]
    start = 0
    for name in arrays.files:
        if name.startswith(kind + "/"):
            array = arrays[name]
            variables.append(Variable(name[len(kind) + 1 :], array.shape, start, array.size))
            values.append(array.astype(np.float32, copy=False).ravel())
            start += array.size
    return np.concatenate(values), tuple(variables)


def _member_states(arrays: Any) -> Dict[str, Arrays]:
    found: Dict[str, Arrays] = {}
    for name in arrays.files:  # in the order in which they were written
        if name.startswith(MEMBER_PREFIX):
            member = name[len(MEMBER_PREFIX) :].rpartition("/")[0]
            found[member] = found.get(member, ()) + (arrays[name],)
    return found
