"""This view shows which samples the devices of a run held, and which they gave one another."""

from collections.abc import Mapping
from typing import Any

from backends.protocol.stream_statistics import InjectionStatistics
from planner.train.injection import injected_result
from planner.units import bytes_text
from planner.views.tables import TextTable

#: Most labels that are shown of a device, those of most samples.
MOST_LABELS = 8
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


def partition_table(division: Mapping[str, Any]) -> TextTable:
    """A row a device: its samples, and how many of each label.

    division: a ``DataDivision`` as in result.json.
    """
    made = TextTable(
        f"data by --partition {division['partition']}", ("device", "samples", "labels"), left=("device", "labels")
    )
    for name, labels in division["labels"].items():
        made.add_row(name, f"{sum(labels.values()):,}", _labels(labels))
    return made


def _labels(labels: Mapping[str, int]) -> str:
    most = sorted(labels, key=lambda label: -labels[label])[:MOST_LABELS]
    texts = [f"{label}: {labels[label]:,}" for label in labels if label in most]
    return ", ".join(texts + [f"{len(labels) - len(most)} more"] * (len(labels) > len(most)))
