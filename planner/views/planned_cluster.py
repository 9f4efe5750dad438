"""This view shows the planned cluster worker by worker, and the streams of its samples."""

from collections.abc import Collection

from planner.plan.recommendation import Recommendation
from planner.units import bytes_text, number, percent, seconds, watts
from planner.views.tables import TextTable, marked


def tables(found: Recommendation, place: int, stand_ins: Collection[str]) -> list[TextTable]:
    """The factors of Eq. 4 to 7 and the watts of each worker; its stream, if samples arrive in one.

    place: of the planned cluster in the ranking; stand_ins: devices that are emulated.
    """
    return [_breakdown(found, place, stand_ins), *_streams(found, place, stand_ins)]


def _breakdown(found: Recommendation, place: int, stand_ins: Collection[str]) -> TextTable:
    columns = ["worker", "step", "α time", "β time", "α power", "β power", "steps", "watts", "watts from"]
    shares_batch = found.inputs.batches.shares is not None
    if shares_batch:
        columns.insert(1, "batch")
    title = f"workers of {'the best cluster' if place == 1 else f'number {place}'}"
    made = TextTable(title, tuple(columns), ("worker", "watts from"), ("β power", "α power", "β time", "α time"))
    for worker in found.workers(place):
        made.add_row(
            marked([worker.name], stand_ins), *([f"{worker.batch:,}"] if shares_batch else []),
            seconds(worker.cycle_s), f"{worker.factors.alpha_time:.3f}", f"{worker.factors.beta_time:.3f}",
            number(worker.factors.alpha_power), number(worker.factors.beta_power),
            f"{worker.steps:,.0f}", watts(worker.watts.power_w), worker.watts.source.text,
        )  # fmt: skip
    return made


def _streams(found: Recommendation, place: int, stand_ins: Collection[str]) -> list[TextTable]:
    """A table of the streams of the workers' samples; none where all samples are there."""
    streams = found.row(place).streams
    columns = ("worker", "samples/s", "a step", "bound by", "waits", "buffer", "at the end", "bytes")
    made = TextTable("their streams of samples", columns, ("worker", "bound by"), ("a step", "bytes"))
    for name, each in streams.items():
        made.add_row(
            marked([name], stand_ins), number(each.rate), number(each.samples), each.bound_by,
            percent(each.waiting_share), f"+{number(each.growth)}/s" if each.growth else "steady",
            number(each.buffered), bytes_text(each.buffered_bytes),
        )  # fmt: skip
    return [made] if streams else []
