"""A run's state on disk: named arrays in one .npz file, written whole or not at all, never unpickled."""

import contextlib
import json
import os
import zipfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from backends.frameworks.base import Arrays, Variable
from backends.optimizers.sgd import finite
from backends.training.layout import Layout

#: 2: the momentum holds the learning rate of what has gathered in it.
SCHEMA = 2

KEPT = "kept/"


class Checkpoint(NamedTuple):
    """weights, momentum: (parameters,) float32; state: (state,) float32; ``meta`` has the step it was taken at.

    kept: by worker, what it keeps between steps (residuals, velocities, counters): arrays of any shape.
    """

    weights: np.ndarray
    momentum: np.ndarray
    state: np.ndarray
    meta: Dict[str, Any]
    kept: Dict[str, Arrays] = {}


def write(path: str, checkpoint: Checkpoint, layout: Layout) -> None:
    """Write under a temporary name beside ``path``, then move. Raises OSError, e.g. on a full disk.

    Raises ValueError where there are values that are not finite: nobody can go on from them, and what was there
    before is worth more.
    """
    arrays = {"meta": np.frombuffer(json.dumps(dict(checkpoint.meta, schema=SCHEMA)).encode(), np.uint8)}
    for kind, variables in _parts(layout):
        flat = getattr(checkpoint, kind)
        if not finite(flat):
            raise ValueError("%s of step %s are not finite" % (kind, checkpoint.meta["step"]))
        for variable in variables:
            values = flat[variable.start : variable.start + variable.size]
            arrays[kind + "/" + variable.name] = values.reshape(variable.shape)
    for worker, kept in checkpoint.kept.items():
        arrays.update({"%s%s/%d" % (KEPT, worker, i): array for i, array in enumerate(kept)})
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


def save(path: str, checkpoint: Checkpoint, layout: Layout, emit: Callable[[Dict[str, Any]], None]) -> None:
    """Write, and emit that it was written; a failure (a full disk) is emitted too, and training goes on."""
    try:
        write(path, checkpoint, layout)
        emit({"checkpoint": path, "step": checkpoint.meta["step"], "bytes": os.path.getsize(path)})
    except (OSError, ValueError) as error:
        emit({"checkpoint_failed": "%s: %s" % (path, error)})


def read(path: str) -> Tuple[Checkpoint, Layout]:
    """A checkpoint and the layout of its model. Raises ValueError where damaged, OSError where not there."""
    with _opened(path) as arrays:
        meta = _meta(arrays)
        weights, variables = _flat(arrays, "weights")
        momentum, same = _flat(arrays, "momentum")
        state, state_variables = _flat(arrays, "state")
        if same != variables:
            raise ValueError("weights and momentum do not match")
        kept = _kept(arrays)
    return Checkpoint(weights, momentum, state, meta, kept), Layout(variables, state_variables)


def read_for(path: str, layout: Layout) -> Checkpoint:
    """A checkpoint of a model of this layout. Raises as ``read`` does, and ValueError where it is of another."""
    saved, found = read(path)
    if found != layout:
        raise ValueError(
            "checkpoint %s is of another model: it has %d parameters in %d arrays, this one %d in %d, or other names"
            % (path, found.parameters, len(found.variables), layout.parameters, len(layout.variables))
        )
    return saved


def peek(path: str) -> Dict[str, Any]:
    """Only what a checkpoint says of itself. Raises ValueError where it is damaged, OSError where it is not there."""
    with _opened(path) as arrays:
        return _meta(arrays)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    with open(path, "rb") as stream:
        try:
            if not zipfile.is_zipfile(stream):
                raise ValueError("it is no .npz archive, or cut short")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as arrays:
                yield arrays
        except (zipfile.BadZipFile, EOFError, KeyError, ValueError, NotImplementedError) as error:
            raise ValueError("checkpoint %s is damaged or none of ours: %s" % (path, error)) from error


def _meta(arrays: Any) -> Dict[str, Any]:
    if "meta" not in arrays.files:
        raise ValueError("it has no description of itself")
    meta: Dict[str, Any] = json.loads(arrays["meta"].tobytes().decode())
    if meta.get("schema") != SCHEMA:
        raise ValueError("it has schema %r, this version reads %d" % (meta.get("schema"), SCHEMA))
    return meta


def _flat(arrays: Any, kind: str) -> Tuple[np.ndarray, Tuple[Variable, ...]]:
    """The arrays of one kind one after the other, as they were written, and their places."""
    places: List[Variable] = []
    values = [np.empty(0, np.float32)]
    start = 0
    for name in arrays.files:
        if name.startswith(kind + "/"):
            array = arrays[name]
            places.append(Variable(name[len(kind) + 1 :], array.shape, start, array.size))
            values.append(array.astype(np.float32, copy=False).ravel())
            start += array.size
    return np.concatenate(values), tuple(places)


def _kept(arrays: Any) -> Dict[str, Arrays]:
    found: Dict[str, Arrays] = {}
    for name in arrays.files:  # in the order in which they were written
        if name.startswith(KEPT):
            worker = name[len(KEPT) :].rpartition("/")[0]
            found[worker] = found.get(worker, ()) + (arrays[name],)
    return found


def _parts(layout: Layout) -> Any:
    return (("weights", layout.variables), ("momentum", layout.variables), ("state", layout.state_variables))
