"""This view shows which samples the devices of a run gave one another, a row for each device."""

from collections.abc import Mapping
from typing import Any

from backends.protocol.streams import InjectionStatistics
from planner.train.injection import injected_result
from planner.units import bytes_text
from planner.views.tables import TextTable

_COUNTS = ("received", "used", "dropped", "malformed")


def injection_columns(injected: Mapping[str, InjectionStatistics]) -> dict[str, dict[str, Any]]:
    """What ``injection_table`` shows of a run that goes on."""
    found = {name: injected_result([each]) for name, each in injected.items()}
    return {name: each for name, each in found.items() if each is not None}


def injection_table(injected: Mapping[str, Mapping[str, Any]]) -> TextTable:
    """injected: by worker, as in result.json."""
    columns = ("worker", "gave", "to", "sent", *_COUNTS, "bytes")
    made = TextTable(
        "samples of others (--inject)", columns, left=("worker", "to"), optional=("used", "dropped", "malformed", "to")
    )
    for name, each in sorted(injected.items()):
        to = ", ".join(f"{receiver} {samples:,}" for receiver, samples in sorted(each["shared_with"].items()))
        counts = (f"{each[count]:,}" for count in _COUNTS)
        made.add_row(
            name, f"{each['shared']:,}", to or "-", bytes_text(each["sent_bytes"]), *counts,
            bytes_text(each["received_bytes"]),
        )  # fmt: skip
    return made
