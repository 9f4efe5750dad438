"""A run on streams of samples: what the operator is told beforehand, and what each device did."""

import math
from collections.abc import Sequence
from typing import Any

from backends.protocol.stream_statistics import StreamStatistics
from backends.strategies import sample_streams
from planner.plan.file import Plan, PlannedStream
from planner.train.orders import Options
from planner.train.telemetry import MemberReports

#: Figures that begin anew where a worker is started again, and are added up.
_COUNTED = ("arrived", "used", "dropped", "stored", "malformed")


def stream_notes(options: Options, plan: Plan) -> list[str]:
    """Remarks on the plan of a run whose samples arrive while it trains."""
    run, stream = plan.run, plan.run.stream
    if stream is None:
        return []
    known = ""
    drawn = stream.source == "replay" and stream.options.get("rates", "S1") in sample_streams.DISTRIBUTIONS
    if drawn and options.seed != run.rates_seed:
        known = f": the prediction is for the rates of --seed {run.rates_seed}, not for those of --seed {options.seed}"
    notes = [f"samples arrive while it trains, --stream {stream.text}{known}"]
    if run.strategy.batching != "stream":
        notes.append(
            f"each step waits for its {run.batch} samples; --strategy scadles, or batching=stream, takes what arrives"
        )
    return notes


def stream_faults(told: MemberReports) -> tuple[str, ...]:
    """What was wrong with a worker's stream, though the run went on."""
    newest = told.starts[-1].stream
    skipped = newest.skipped if newest else 0
    return (
        *([f"it left the run: {told.left.reason}"] if told.left is not None and told.left.fault else []),
        *([f"skipped {skipped:,} of its directory, first {newest.skipped_first}"] if newest and skipped else []),
    )


def stream_result(
    starts: Sequence[StreamStatistics], elapsed_s: float, planned: PlannedStream | None = None
) -> dict[str, Any] | None:
    """A worker's stream over the whole run, for result.json; None where it has none.

    starts: its last figures from each time it was started. waiting_share: of the run's time.
    planned: as predicted, if it was.
    """
    if not starts:
        return None
    waited_s = math.fsum(start.waited_s for start in starts)
    last = starts[-1]._replace(
        waited_s=waited_s,
        peak_buffered=max(start.peak_buffered for start in starts),
        **{name: sum(getattr(start, name) for start in starts) for name in _COUNTED},
    )
    return {
        **last._asdict(),
        "waiting_share": waited_s / elapsed_s if elapsed_s else 0.0,
        "predicted_waiting_share": planned and planned.waiting_share,
    }
