"""audit.json: the errors that `planner audit` saw of predictions here, by kind of exchange."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from planner.json_records import load, save
from planner.paths import AUDIT
from profilers.records.json_values import SCHEMA

REMEDY = "make it again with `planner audit`, or remove it"


class SeenErrors(NamedTuple):
    """By kind of exchange: measured over predicted seconds of a step, less 1, of each cluster."""

    schema: int
    errors: dict[str, tuple[float, ...]]

    def of_kind(self, kind: str) -> float:
        """The root mean square of a kind's errors; 0 for one that was not audited."""
        seen = self.errors.get(kind, ())
        return math.sqrt(math.fsum(error**2 for error in seen) / len(seen)) if seen else 0.0


def seen_errors(folder: Path) -> SeenErrors:
    """Those of a working folder; none without its file. Raises RecordError where it is damaged."""
    path = folder / AUDIT
    return load(SeenErrors, path, REMEDY) if path.exists() else SeenErrors(SCHEMA, {})


def add_seen(folder: Path, errors: Mapping[str, tuple[float, ...]]) -> None:
    """Keep what an audit saw; of the kinds that it saw again, in place of what was there."""
    before = seen_errors(folder)
    save(before._replace(errors={**before.errors, **errors}), folder / AUDIT)
