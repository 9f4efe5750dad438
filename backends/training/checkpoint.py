"""A checkpoint is a run's state as named arrays in one .npz file, written whole or not at all.

Arrays of a file:
meta: JSON values, as bytes.
weights/NAME, state/NAME: by variable.
momentum/NAME, first-moment/NAME, second-moment/NAME, buffer/NAME: what the optimizer keeps, by
    variable; in rounds of local steps that is the outer one.
updates: how many the optimizer has made, where it counts them.
kept/MEMBER/...: each member's own arrays.
Nothing is ever unpickled.
"""

import contextlib
import json
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from backends.data.archives import open_npz
from backends.frameworks.base import Arrays
from backends.frameworks.layout import Layout, Variable, consecutive
from backends.frameworks.optimizer import OPTIMIZERS, SGD, SLOT_NAMES, UPDATES, Slots
from backends.optimizers.sgd import finite
from backends.protocol.events import Evaluated
from backends.protocol.json_messages import record
from profilers.regular_file import open_regular
from profilers.whole_file import whole_file

#: Version 2: the momentum includes the learning rates of the gradients in it.
SCHEMA = 2

#: Prefix of the names of members' own arrays in a file: what they keep from step to step.
MEMBER_PREFIX = "kept/"


class Checkpoint(NamedTuple):
    """The state of a run.

    weights: (parameters,) float32.
    slots: what the optimizer keeps. ``meta`` names it as ``optimizer``; SGD where it does not.
    layout: of the model's arrays.
    member_states: by member, its residuals, velocities and counters: arrays of any shape.
    """

    weights: np.ndarray
    slots: Slots
    state: np.ndarray  # (state,) float32, the arrays of a model that are not trained
    meta: Dict[str, Any]  # JSON values, among them the ``step`` of the checkpoint and all ``evaluations``
    layout: Layout
    member_states: Dict[str, Arrays] = {}


def write(path: str, checkpoint: Checkpoint, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Write to a temporary file beside ``path``, then rename it if that is still wanted.

    Raises OSError, for example on a full disk.
    Raises ValueError for values that are not finite, so that the previous checkpoint is kept.
    """
    arrays = _named_arrays(checkpoint)
    with whole_file(path, is_wanted=is_wanted) as stream:
        np.savez(stream, **arrays)


def write_to(stream: BinaryIO, checkpoint: Checkpoint) -> None:
    """Write to an open file. Raises as ``write`` does."""
    np.savez(stream, **_named_arrays(checkpoint))


def _named_arrays(checkpoint: Checkpoint) -> Dict[str, Any]:
    layout = checkpoint.layout
    meta = json.dumps(dict(checkpoint.meta, schema=SCHEMA)).encode()
    arrays: Dict[str, Any] = {"meta": np.frombuffer(meta, np.uint8)}
    by_variable = [("weights", checkpoint.weights, layout.variables)]
    by_variable += [(kind, flat, layout.variables) for kind, flat in checkpoint.slots.items() if kind != UPDATES]
    by_variable.append(("state", checkpoint.state, layout.state_variables))
    for kind, flat, variables in by_variable:
        if not finite(flat):
            raise ValueError("%s of step %s are not finite" % (kind, checkpoint.meta["step"]))
        for variable in variables:
            values = flat[variable.part]
            arrays[kind + "/" + variable.name] = values.reshape(variable.shape)
    if UPDATES in checkpoint.slots:
        arrays[UPDATES] = checkpoint.slots[UPDATES]
    for member, own in checkpoint.member_states.items():
        arrays.update({"%s%s/%d" % (MEMBER_PREFIX, member, i): array for i, array in enumerate(own)})
    return arrays


#: Puts arrays one after the other, (n,) float32.
Join = Callable[[Iterable[np.ndarray]], np.ndarray]


def in_memory(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """The arrays one after the other, (n,) float32."""
    return np.concatenate(
        [np.empty(0, np.float32), *(np.ravel(each).astype(np.float32, copy=False) for each in arrays)]
    )


def read(path: str, join: Join = in_memory) -> Checkpoint:
    """The checkpoint in a file. join: makes the arrays of a model.

    Raises ValueError where the file is damaged, OSError where there is none.
    """
    with _opened(path) as arrays:
        meta = _meta(arrays)
        weights, variables = _flat(arrays, "weights", join)
        slots = {name: _slot(arrays, name, variables, join) for name in SLOT_NAMES[optimizer_of(meta)]}
        state, state_variables = _flat(arrays, "state", join)
        member_states = _member_states(arrays)
    return Checkpoint(weights, slots, state, meta, Layout(variables, state_variables), member_states)


def read_for(path: str, layout: Layout, join: Join = in_memory) -> Checkpoint:
    """A checkpoint of a model with this layout. join: as for ``read``.

    Raises as ``read`` does, and ValueError where the checkpoint is of another model.
    """
    saved = read(path, join)
    found = saved.layout
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


def optimizer_of(meta: Dict[str, Any]) -> str:
    """The name of a checkpoint's optimizer. Raises ValueError for one that is unknown."""
    found = meta.get("optimizer", SGD)
    if found not in SLOT_NAMES:
        raise ValueError("its optimizer %r is unknown; known: %s" % (found, ", ".join(SLOT_NAMES)))
    return str(found)


def require_optimizer(meta: Dict[str, Any], kind: str) -> None:
    """Raises ValueError where a run with this optimizer cannot go on from a checkpoint."""
    saved = optimizer_of(meta)
    if saved != kind:
        inner = saved in OPTIMIZERS and kind in OPTIMIZERS
        remedy = "--optimizer %s" % saved if inner else "--strategy %s" % meta.get("strategy")
        raise ValueError(
            "the checkpoint is of optimizer %s, and what that keeps (%s) is not what %s does; "
            "go on with %s, or begin a new run" % (saved, ", ".join(SLOT_NAMES[saved]), kind, remedy)
        )


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    with open_regular(path) as stream:
        try:
            with open_npz(stream) as arrays:
                yield arrays
        except Exception as error:  # noqa: BLE001 - zipfile, zlib and numpy raise whatever damage makes them
            reason = str(error) or type(error).__name__
            raise ValueError("checkpoint %s is damaged or not a checkpoint: %s" % (path, reason)) from error


class _Described(NamedTuple):
    """What is read of ``meta``."""

    step: int
    evaluations: Tuple[Evaluated, ...]
    model: str = ""
    framework: str = ""
    optimizer: Optional[str] = None
    strategy: Optional[str] = None
    input_shape: Tuple[int, ...] = ()
    classes: Optional[int] = None
    image_dtype: str = ""
    streams: Dict[str, int] = {}  # by member, the offset at which its stream of samples goes on


def _meta(arrays: Any) -> Dict[str, Any]:
    if "meta" not in arrays.files:
        raise ValueError("it has no array named meta")
    meta = json.loads(arrays["meta"].tobytes().decode())
    if not isinstance(meta, dict):
        raise ValueError("its meta is no JSON object")
    if meta.get("schema") != SCHEMA:
        raise ValueError("it has schema %r, this version reads %d" % (meta.get("schema"), SCHEMA))
    record(_Described, {key: meta[key] for key in _Described._fields if key in meta})  # others are for people
    return meta


def _flat(arrays: Any, kind: str, join: Join) -> Tuple[np.ndarray, Tuple[Variable, ...]]:
    """All arrays of one kind as one (n,) float32, in file order, and their variables."""
    shapes: List[Tuple[str, Tuple[int, ...]]] = []

    def read_one_by_one() -> Iterator[np.ndarray]:
        for name in arrays.files:
            if name.startswith(kind + "/"):
                array = arrays[name]
                shapes.append((name[len(kind) + 1 :], array.shape))
                yield array

    return join(read_one_by_one()), consecutive(shapes)


def _slot(arrays: Any, name: str, variables: Tuple[Variable, ...], join: Join) -> np.ndarray:
    """What an optimizer keeps under a name; KeyError where it is missing."""
    if name == UPDATES:
        return np.array(arrays[UPDATES], np.float32)
    values, same = _flat(arrays, name, join)
    if same != variables:
        raise ValueError("weights and %s do not match" % name)
    return values


def _member_states(arrays: Any) -> Dict[str, Arrays]:
    found: Dict[str, Arrays] = {}
    for name in arrays.files:  # in the order in which they were written
        if name.startswith(MEMBER_PREFIX):
            member = name[len(MEMBER_PREFIX) :].rpartition("/")[0]
            found[member] = found.get(member, ()) + (arrays[name],)
    return found
