"""A journal is replayed: each update must be a mean of gradients at the weights before it.

It knows no strategy and no engine. What a lost member computed in vain is in the journal too, so
that for each update a set of gradients of different devices is looked for which explains it.
"""

import base64
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backends.frameworks.layout import Layout
from tests.backends.fakes import Softmax
from tests.chaos.job import SHAPE

PIXELS, CLASSES = 12, 3
#: Rounding: sums in another order, and another framework. Updates are a hundred times larger.
TOLERANCE = 2e-6
#: Gradients at the same weights of which sets are tried; each restart of a member adds one.
MOST = 10


class Entry(NamedTuple):
    """A gradient.

    at_s: by the clock that all devices of a lab share.
    weights: float32 (39,) that it was computed at. pixels: uint8 (batch, 12).
    """

    at_s: float
    device: str
    weights: np.ndarray
    pixels: np.ndarray


class State(NamedTuple):
    """Where a replay begins or ends: after so many steps."""

    step: int
    weights: np.ndarray
    velocity: np.ndarray


class Replay(NamedTuple):
    """What a journal explains.

    problem: what it does not explain of the way to the end; "" for nothing.
    furthest: the latest step that it tells of.
    """

    problem: str
    furthest: int


def read(folder: Path) -> list[Entry]:
    """All journals of a folder, in the order of time; a line that was not finished is none."""
    entries = []
    for path in sorted(folder.glob("journal-*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                entries.append(_entry(path.stem.removeprefix("journal-"), json.loads(line)))
    return sorted(entries, key=lambda entry: entry.at_s)


def _entry(device: str, line: Mapping[str, Any]) -> Entry:
    weights = np.frombuffer(base64.b64decode(line["weights"]), np.float32)
    return Entry(
        line["at_s"], device, weights, np.frombuffer(base64.b64decode(line["pixels"]), np.uint8).reshape(-1, PIXELS)
    )


def count(folder: Path) -> int:
    """Gradients so far."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("journal-*.jsonl"))


def in_order(flat: np.ndarray, layout: Layout) -> np.ndarray:
    """Parameters of a checkpoint as the journal has them: torch keeps the kernel transposed."""
    kernel, bias = np.split(flat, [PIXELS * CLASSES])
    if layout.variables[0].shape == (CLASSES, PIXELS):
        kernel = kernel.reshape(CLASSES, PIXELS).T.ravel()
    return np.concatenate([kernel, bias])


def replay(
    entries: Sequence[Entry],
    labels: Mapping[bytes, int],
    rate: float,
    momentum: float,
    start: State | None,
    end: State,
    total: int,
) -> Replay:
    """Follow the updates from a start to an end, and then as far as the journal goes.

    labels: of each sample, by its pixels.
    start: None for the first weights of the journal, with no velocity.
    total: steps asked for. A checkpoint counts no more, though a last round may exceed them.
    """
    if start is None:
        if not entries:
            return Replay("the journal is empty", 0)
        start = State(0, entries[0].weights, np.zeros_like(entries[0].weights))
    updates = [rate * _gradient(entry, labels) for entry in entries]
    versions = np.stack([*(entry.weights for entry in entries), end.weights])
    now = start
    while True:
        if min(now.step, total) == end.step and not np.allclose(now.weights, end.weights, rtol=0, atol=TOLERANCE):
            return Replay(f"the weights saved are not those after step {end.step}", now.step)
        here = [number for number, entry in enumerate(entries) if np.array_equal(entry.weights, now.weights)]
        found = _next(now, _sets(here, entries), updates, momentum, versions)
        if found is None and now.step < end.step:
            return Replay(f"no set of {len(here)} gradients after step {now.step} gives later weights", now.step)
        if found is None or (now.step < end.step < min(found.step, total)):
            return Replay("" if found is None else f"no update ends with step {end.step}", now.step)
        now = found


def _gradient(entry: Entry, labels: Mapping[bytes, int]) -> np.ndarray:
    model = Softmax(input_shape=SHAPE, classes=CLASSES)
    model.weights[:] = entry.weights
    own = np.array([labels[sample.tobytes()] for sample in entry.pixels])
    model.gradient((entry.pixels, own))
    return model.gradients


def _next(
    now: State, sets: Iterable[Sequence[int]], updates: Sequence[np.ndarray], momentum: float, versions: np.ndarray
) -> State | None:
    """The next weights that a set of gradients explains; None where there are none."""
    for chosen in sets:
        velocity = momentum * now.velocity + np.mean([updates[number] for number in chosen], axis=0)
        far = np.abs(versions - (now.weights - velocity)).max(axis=1)
        if far.min() <= TOLERANCE:
            return State(now.step + len(chosen), versions[far.argmin()], velocity)
    return None


def _sets(here: Sequence[int], entries: Sequence[Entry]) -> Iterator[tuple[int, ...]]:
    """Sets of gradients of different devices, the largest first."""
    few = here[-MOST:]
    for size in range(len({entries[number].device for number in few}), 0, -1):
        for chosen in itertools.combinations(few, size):
            if len({entries[number].device for number in chosen}) == size:
                yield chosen
