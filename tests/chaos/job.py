"""What the devices of a chaos run compute: a softmax regression that keeps a journal.

Every gradient is a line of a journal: the weights that it was computed at, and the samples. Faults
of the job wait in a file; the first device that they fit takes the file away and fails.
"""

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.backends.fakes import Softmax
from tests.chaos import scenario

SHAPE = (2, 2, 3)
#: What a step of this device takes at least.
STEP_S = float(os.environ.get("CHAOS_STEP_S", "0"))
#: Bytes that no device of the lab has.
TOO_MANY_BYTES = 2 << 30


def device() -> tuple[Path, str]:
    """The run's folder, and this device's name."""
    mark = Path(os.environ["PLANNER_TEST_DEVICE"])
    return mark.parent, mark.name


def write_journal(weights: np.ndarray, pixels: np.ndarray) -> None:
    """Add a gradient to this device's journal, in one piece.

    weights: float32 (39,), the kernel (12, 3) and then the bias. pixels: uint8 (batch, 12).
    """
    folder, name = device()
    entry = {"at_s": time.monotonic(), "weights": _text(weights), "pixels": _text(pixels)}
    with (folder / f"journal-{name}.jsonl").open("ab", buffering=0) as journal:
        journal.write(json.dumps(entry).encode() + b"\n")


def _text(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def fail(part: str, steps: int, evaluations: int = 0) -> None:
    """Fail as the run's fault says.

    part: "step", "evaluation" or "data".
    steps: that this process has begun, or samples that it has read.
    evaluations: that it has made. The first one may take minutes before it counts as hung.
    """
    folder, name = device()
    waiting = folder / "job-fault.json"
    try:
        fault = json.loads(waiting.read_text())
        if fault["part"] != part or fault["device"] not in (name, None):
            return
        if steps < fault["at"] or (fault["kind"] == scenario.HANG_EVALUATION and not evaluations):
            return
        waiting.rename(folder / f"job-fault-of-{name}")
    except FileNotFoundError:
        return
    (folder / "injected").touch()
    _FAILURES[fault["kind"]]()


def _hang() -> None:
    time.sleep(3600.0)


def _raise() -> None:
    raise ZeroDivisionError("the job of the chaos suite fails")


def _leave_children() -> None:
    for leads in (True, False):
        subprocess.Popen(["sleep", "3600"], start_new_session=leads)


def _allocate() -> None:
    np.ones(TOO_MANY_BYTES, np.uint8)


_FAILURES = {
    scenario.HANG_STEP: _hang, scenario.HANG_EVALUATION: _hang, scenario.ERROR_STEP: _raise,
    scenario.ERROR_EVALUATION: _raise, scenario.ERROR_DATA: _raise, scenario.CHILDREN: _leave_children,
    scenario.MEMORY: _allocate,
}  # fmt: skip


class Journalled(Softmax):
    """In numpy."""

    steps = evaluations = 0

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        self.steps += 1
        time.sleep(STEP_S)
        fail("step", self.steps)
        write_journal(self.weights, batch[0].reshape(len(batch[0]), -1))
        return super().gradient(batch, rate, weight_decay, adds)

    def evaluate(self, batch: Any) -> tuple[float, dict[str, float]]:
        fail("evaluation", self.steps, self.evaluations)
        self.evaluations += 1
        return super().evaluate(batch)


def in_numpy() -> tuple[Journalled, tuple[int, int, int]]:
    return Journalled(input_shape=SHAPE, classes=3), SHAPE
