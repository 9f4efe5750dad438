"""`planner power measure` runs a command on one device and measures its energy."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from backends.protocol.events import CommandMeasurement
from backends.protocol.orders import MeasureCommand
from planner.agents.pool import AgentPool
from planner.fleet.device import Device
from planner.profile import learned_power, power_readings
from planner.profile.power_readings import WindowWatts
from planner.provenance import NAMEPLATE, Provenance
from power_models.base import PowerModel
from power_models.nameplate import Nameplate
from power_models.table import Table
from profilers.records.readings import Window

IDLE_S = 2.0
#: Utilisations; the greatest is used with a nameplate.
LOADS = ("u_cpu", "u_gpu")

#: Called with "out" or "err", and what the command printed there.
OnOutput = Callable[[str, str], None]


class EnergyMeasurement(NamedTuple):
    """One run of a command.

    returncode: negative for the signal that ended it.
    idle: the device's watts just before.
    """

    device: str
    command: tuple[str, ...]
    returncode: int
    duration_s: float
    busy: WindowWatts
    idle: WindowWatts
    notes: tuple[str, ...]

    @property
    def energy_j(self) -> float | None:
        """Joules from its start to its end, None where unknown."""
        return None if self.busy.watts is None else self.busy.watts * self.duration_s

    @property
    def above_idle_j(self) -> float | None:
        """Joules above idle; None if the idle watts are unknown or from another source."""
        busy, idle = self.busy, self.idle
        alike = busy.provenance.kind == idle.provenance.kind and busy.provenance.covers == idle.provenance.covers
        if busy.watts is None or idle.watts is None or not alike:
            return None
        return (busy.watts - idle.watts) * self.duration_s

    @property
    def uncertainty(self) -> float | None:
        """Half the 95 % interval of the energy, as a share; None where unknown."""
        return power_readings.uncertainty(self.busy.error)


def measure(device: Device, command: Sequence[str], model: PowerModel | None, on_output: OnOutput) -> EnergyMeasurement:
    """Run a command on a device and wait for its end.

    model: of the device's watts, used without a sensor of the whole.
    Raises RemoteError if it cannot be run.
    """
    with AgentPool() as agents:
        agents.open([device])
        for error in agents.errors.values():
            raise error
        call = agents.agents[device.name].start(MeasureCommand(tuple(command), IDLE_S))
        measured: CommandMeasurement = call.result(None, lambda event: on_output(event.stream, event.text))
    idle, busy = measured.idle, power_readings.as_integral(measured.busy)
    if model is not None and power_readings.whole_reading(busy) is None:
        idle, busy = learned_power.estimated(idle, model), learned_power.estimated(busy, model)
    notes = (*power_readings.flagged(busy), *power_readings.disagreements(busy))
    return EnergyMeasurement(
        device.name, tuple(command), measured.returncode, busy.duration_s,
        _reading(device, busy), _reading(device, idle), notes,
    )  # fmt: skip


def _reading(device: Device, window: Window) -> WindowWatts:
    """Watts from a sensor of the whole or a model, else the fleet file, else sensors of parts."""
    found = power_readings.window_watts(window)
    if found is None or found.provenance.partial:
        found = _nameplate(device, window) or found
    found = found or WindowWatts(None, None, power_readings.unavailable(window))
    provenance = found.provenance._replace(emulated=found.provenance.emulated or device.emulated)
    return found._replace(provenance=provenance)


def _nameplate(device: Device, window: Window) -> WindowWatts | None:
    loads = {name: mean for name in LOADS if (mean := window.counters[name].mean) is not None}
    if device.idle_watts is None or device.max_watts is None or not loads:
        return None
    name = max(loads, key=lambda each: loads[each])
    now = Table.of({name: [loads[name]]})
    plate = Nameplate(device.idle_watts, device.max_watts, {name: 1.0})
    detail = f"at {name} = {plate.busy(now)[0]:.2f}"
    return WindowWatts(float(plate.predict(now).values[0]), None, Provenance(NAMEPLATE, ("board",), detail=detail))
