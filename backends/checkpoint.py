"""A run's state on disk: named arrays in one .npz file, written whole or not at all, never unpickled."""

import json
import os
import zipfile
from typing import Any, BinaryIO, Callable, Dict, NamedTuple, Tuple

import numpy as np

from backends.base import Variable

SCHEMA = 1


class Checkpoint(NamedTuple):
    """weights, momentum: (parameters,) float32; state: (state,) float32; ``meta`` has the step it was taken at."""

    weights: np.ndarray
    momentum: np.ndarray
    state: np.ndarray
    meta: Dict[str, Any]


def write(path, checkpoint, variables, state_variables):
    # type: (str, Checkpoint, Tuple[Variable, ...], Tuple[Variable, ...]) -> None
    """Write under a temporary name beside ``path``, then move. Raises OSError, e.g. on a full disk."""
    arrays = {"meta": np.frombuffer(json.dumps(dict(checkpoint.meta, schema=SCHEMA)).encode(), np.uint8)}
    for kind, flat, layout in _parts(checkpoint, variables, state_variables):
        for variable in layout:
            values = flat[variable.start : variable.start + variable.size]
            arrays[kind + "/" + variable.name] = values.reshape(variable.shape)
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


def save(path, checkpoint, variables, state_variables, emit):
    # type: (str, Checkpoint, Tuple[Variable, ...], Tuple[Variable, ...], Callable[[Dict[str, Any]], None]) -> None
    """Write, and emit that it was written; a failure (a full disk) is emitted too, and training goes on."""
    try:
        write(path, checkpoint, variables, state_variables)
        emit({"checkpoint": path, "step": checkpoint.meta["step"], "bytes": os.path.getsize(path)})
    except OSError as error:
        emit({"checkpoint_failed": "%s: %s" % (path, error)})


def read(stream, variables, state_variables):
    # type: (BinaryIO, Tuple[Variable, ...], Tuple[Variable, ...]) -> Checkpoint
    """Read a checkpoint for a model of this layout. Raises ValueError where it is damaged or of another model."""
    try:
        with np.load(stream, allow_pickle=False) as arrays:
            meta = _meta(arrays)
            flats = [
                np.concatenate([_array(arrays, kind, variable) for variable in layout] + [np.empty(0, np.float32)])
                for kind, layout in (("weights", variables), ("momentum", variables), ("state", state_variables))
            ]
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError("the checkpoint is damaged: %s" % error) from error
    return Checkpoint(flats[0], flats[1], flats[2], meta)


def peek(path):
    # type: (str) -> Dict[str, Any]
    """Only what a checkpoint says of itself. Raises ValueError where it is damaged, OSError where it is not there."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _meta(arrays)
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError("checkpoint %s is damaged: %s" % (path, error)) from error


def _meta(arrays):
    # type: (Any) -> Dict[str, Any]
    if "meta" not in arrays:
        raise ValueError("not a checkpoint: it has no description of itself")
    meta = json.loads(arrays["meta"].tobytes().decode())  # type: Dict[str, Any]
    if meta.get("schema") != SCHEMA:
        raise ValueError("the checkpoint has schema %r, this version reads %d" % (meta.get("schema"), SCHEMA))
    return meta


def _array(arrays, kind, variable):
    # type: (Any, str, Variable) -> np.ndarray
    name = kind + "/" + variable.name
    if name not in arrays or arrays[name].shape != tuple(variable.shape):
        found = arrays[name].shape if name in arrays else "nothing"
        raise ValueError("the checkpoint is of another model: %s is %s, not %s" % (name, found, variable.shape))
    return arrays[name].astype(np.float32, copy=False).ravel()


def _parts(checkpoint, variables, state_variables):
    # type: (Checkpoint, Tuple[Variable, ...], Tuple[Variable, ...]) -> Any
    return (
        ("weights", checkpoint.weights, variables),
        ("momentum", checkpoint.momentum, variables),
        ("state", checkpoint.state, state_variables),
    )
