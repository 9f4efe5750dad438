"""Recorded fleets: what was profiled of each, and how fast clusters of it then trained.

``fleets.jsonl.xz`` has a fleet a line. benchmarks/README.md says where they come from.
"""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import NamedTuple

from planner.json_records import decode
from planner.profile.file import Profile

TABLE = Path(__file__).with_name("fleets.jsonl.xz")


class Run(NamedTuple):
    """One cluster that trained, several times.

    host: of the parameter server, or of the coordinator of peers.
    steps_per_s: of each member in its steady state, by repetition.
    watts: of each member, likewise; empty where no real sensor measured them.
    """

    host: str
    members: tuple[str, ...]
    steps_per_s: tuple[tuple[float, ...], ...]
    watts: tuple[tuple[float | None, ...], ...] = ()

    @property
    def step_s(self) -> list[float]:
        """Seconds in which all members together make one step, by repetition."""
        return [1 / sum(rates) for rates in self.steps_per_s]


class Audit(NamedTuple):
    """Clusters of a fleet that trained by one strategy. batch: images of a member's step."""

    strategy: str
    engine: str
    batch: int
    runs: tuple[Run, ...]


class Fleet(NamedTuple):
    """One fleet, as profiled at one time, and what it trained.

    fleet: its name; some were recorded several times. day: the seed that it was drawn with, which
        looks like a date. model_bytes: of the model's gradient.
    """

    fleet: str
    day: str
    model: str
    model_bytes: int
    profile: Profile
    audits: tuple[Audit, ...]


@cache
def load() -> tuple[Fleet, ...]:
    """All recorded fleets. Raises RecordError where the table does not fit this planner."""
    with lzma.open(TABLE, "rt", encoding="utf-8") as lines:
        return tuple(decode(Fleet, json.loads(line)) for line in lines)
