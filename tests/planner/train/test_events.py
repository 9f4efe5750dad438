"""docs/events.md names every event of a run's log and every key of it, and no others."""

import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from backends.protocol import events
from backends.protocol.json_messages import name_of
from backends.protocol.stream_statistics import InjectionStatistics, StreamStatistics
from planner.train.events import RUN_EVENTS
from profilers.records.readings import PowerReading, Reading, Window

DOCUMENT = Path(__file__).parents[3] / "docs" / "events.md"
#: Of commands that are not runs.
ELSEWHERE = (events.Listening, events.ThroughputListening, events.StepTimed, events.Printed)
RECORDS = {
    "member's progress": events.MemberProgress,
    "time spent": events.TimeSpent,
    "member's account": events.MemberAccount,
    "run's account": events.RunAccount,
    "window": Window,
    "reading": Reading,
    "power reading": PowerReading,
    "stream": StreamStatistics,
    "injected": InjectionStatistics,
}
EXPECTED = {name_of(kind): kind for kind in RUN_EVENTS if kind not in ELSEWHERE} | RECORDS


def documented() -> dict[str, list[str]]:
    """Keys by type or record, from the tables; a blank type is the one above."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in DOCUMENT.read_text().splitlines():
        cells = re.match(r"\| (?P<name>[^|]*)\| (?P<key>`\w+` |)\|.*\|.*\|$", line)
        if cells and not line.startswith("| type") and not line.startswith("| record"):
            name = cells["name"].strip("` ") or name
            keys = found.setdefault(name, [])
            if cells["key"]:
                keys.append(cells["key"].strip("` "))
    return found


def test_the_document_names_the_types_and_records_of_a_log() -> None:
    assert documented().keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_document_names_the_keys_of(name: str) -> None:
    kind: Any = EXPECTED[name]
    assert documented()[name] == list(get_type_hints(kind))
