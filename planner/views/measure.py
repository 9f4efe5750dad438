"""The energy of a command becomes a table and JSON."""

from typing import Any

from rich.console import RenderableType

from planner.power.measure import EnergyMeasurement
from planner.provenance import Provenance
from planner.units import joules, percent, seconds, watts
from planner.views.tables import EMULATED_NOTE, stack, table
from profilers.records import UNAVAILABLE, encode


def to_json(measured: EnergyMeasurement) -> dict[str, Any]:
    """One measurement.

    energy_j, watts: null if unavailable.
    uncertainty: half the 95 % interval of the energy, as a share.
    """
    return {
        "device": measured.device,
        "command": list(measured.command),
        "returncode": measured.returncode,
        "duration_s": measured.duration_s,
        "energy_j": measured.energy_j,
        "above_idle_j": measured.above_idle_j,
        "uncertainty": measured.uncertainty,
        "watts": measured.busy.watts,
        "idle_watts": measured.idle.watts,
        "provenance": encode(measured.busy.provenance),
        "idle_provenance": encode(measured.idle.provenance),
        "notes": list(measured.notes),
    }


def render(measured: EnergyMeasurement) -> RenderableType:
    """A row of figures, then the sources of the watts and notes on them."""
    emulated = measured.busy.provenance.emulated or measured.idle.provenance.emulated
    made = table(
        f"{measured.device}{'*' * emulated}: {' '.join(measured.command)}",
        ("time", "energy", "±", "above idle", "power", "idle"),
    )
    made.add_row(
        seconds(measured.duration_s),
        joules(measured.energy_j),
        percent(measured.uncertainty),
        joules(measured.above_idle_j),
        watts(measured.busy.watts),
        watts(measured.idle.watts),
    )
    notes = [f"watts: {_source(measured.busy.provenance)}"]
    if measured.idle.provenance != measured.busy.provenance:
        notes.append(f"idle watts: {_source(measured.idle.provenance)}")
    return stack([made], [*notes, *measured.notes, *([EMULATED_NOTE] * emulated)])


def _source(of: Provenance) -> str:
    """The source of watts, or the reason why there are none."""
    return f"{of.text}: {of.detail}" if of.kind == UNAVAILABLE else of.text
