"""This view shows the streams of samples of a run, a row for each device."""

from collections.abc import Mapping
from typing import Any

from backends.protocol.stream_statistics import StreamStatistics
from planner.train.stream_results import stream_result
from planner.units import number, percent
from planner.views.tables import TextTable

_COLUMNS = (
    "worker",
    "rate/s",
    "batch",
    "buffered",
    "most",
    "waiting",
    "predicted",
    "arrived",
    "used",
    "dropped",
    "stored",
    "malformed",
)
#: Columns of what most runs have not.
_UNUSUAL = ("predicted", "stored", "malformed")
_OPTIONAL = ("most", "arrived", "used", "stored", "malformed")


def stream_columns(streams: Mapping[str, StreamStatistics], elapsed_s: float) -> dict[str, dict[str, Any]]:
    """What ``stream_table`` shows of a run that goes on."""
    found = {name: stream_result([stream], elapsed_s) for name, stream in streams.items()}
    return {name: each for name, each in found.items() if each is not None}


def stream_table(streams: Mapping[str, Mapping[str, Any]]) -> TextTable:
    """streams: by worker, as in result.json."""
    shown = [name for name in _COLUMNS if name not in _UNUSUAL or any(map(_of(name), streams.values()))]
    made = TextTable(
        "streams of samples", shown, left=("worker",), optional=[name for name in _OPTIONAL if name in shown]
    )
    for name, stream in sorted(streams.items()):
        cells = {
            "worker": name, "rate/s": number(stream["rate"]), "batch": f"{stream['batch']:,}",
            "buffered": f"{stream['buffered']:,}", "most": f"{stream['peak_buffered']:,}",
            "waiting": percent(stream["waiting_share"], 0),
            "predicted": percent(stream.get("predicted_waiting_share"), 0),
            **{each: f"{stream[each]:,}" for each in ("arrived", "used", "dropped", "stored", "malformed")},
        }  # fmt: skip
        made.add_row(*(cells[column] for column in shown))
    return made


def _of(name: str) -> Any:
    key = "predicted_waiting_share" if name == "predicted" else name
    return lambda stream: stream.get(key)
