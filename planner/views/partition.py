"""This view shows which labels each device of a run holds."""

from collections.abc import Mapping
from typing import Any

from planner.views.tables import TextTable

#: Most labels that are shown of a device, those of most samples.
MOST_LABELS = 8


def table(division: Mapping[str, Any]) -> TextTable:
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
