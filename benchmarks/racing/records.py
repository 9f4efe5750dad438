"""Records of finished runs are appended, one JSON object a line, as soon as a run ends."""

import json
import os
from pathlib import Path
from typing import NamedTuple

from planner.errors import RecordError
from planner.json_records import decode
from profilers.records.json_values import json_value

#: What a run is for.
RACE, TUNING = "race", "tuning"


class Setting(NamedTuple):
    """What tells a run from all others.

    race: the name of its race file; purpose: RACE or TUNING.
    """

    race: str
    purpose: str
    environment: str
    strategy: str
    seed: int
    rate: float

    @property
    def text(self) -> str:
        """For people, and for the name of a folder."""
        return f"{self.race}-{self.purpose}-{self.environment}-{self.strategy}-{self.rate:g}-{self.seed}"


class Point(NamedTuple):
    """One evaluation: seconds of training before it, steps of all workers, whose weights."""

    time_s: float
    step: int
    accuracy: float
    worker: str


class Traffic(NamedTuple):
    """Between two reports of progress of one run.

    payload_bytes: by the program's own count; sent_bytes: what the network cards of all
    devices sent; line_share: of the busiest direction of a card, of its line rate.
    """

    seconds: float
    payload_bytes: float
    sent_bytes: int
    line_share: float


class Outcome(NamedTuple):
    """What a run came to.

    time_s: of training, without evaluations (as in result.json); target_s: when the target
    was reached (see ``curve.reached_s``), None where it was not; accuracies: of each worker's
    weights at the end, on all test images; busy_s, exchange_s: a step of one worker; card_bytes:
    sent by the network cards of all devices until the end of training; energy_j and its source;
    predicted_s: of as many steps.
    """

    steps: int
    time_s: float
    target_s: float | None
    accuracies: dict[str, float]
    curve: tuple[Point, ...]
    busy_s: float | None = None
    exchange_s: float | None = None
    card_bytes: int | None = None
    traffic: Traffic | None = None
    energy_j: float | None = None
    energy_source: str = ""
    predicted_s: float | None = None

    @property
    def accuracy(self) -> float:
        """The workers' mean."""
        return sum(self.accuracies.values()) / len(self.accuracies)


class Finished(NamedTuple):
    """A run that has ended: what it came to, or why there is nothing.

    began_s: since the epoch; load: when it began.
    """

    setting: Setting
    began_s: float
    load: float
    outcome: Outcome | None = None
    error: str | None = None


def append(path: Path, run: Finished) -> None:
    """Add a line, which is on the disk when this returns. Raises RecordError."""
    line = json.dumps(json_value(run), allow_nan=False).encode() + b"\n"
    try:
        with path.open("ab", buffering=0) as file:
            file.write(line)
            os.fsync(file.fileno())
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror}; make room or write access there") from error


def read(path: Path) -> list[Finished]:
    """All finished runs; none where there is no file.

    Raises RecordError naming the line that is damaged.
    """
    if not path.exists():
        return []
    runs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            runs.append(decode(Finished, json.loads(line)))
        except (ValueError, RecordError) as error:
            raise RecordError(f"{path}, line {number}: {error}; remove that line") from error
    return runs
