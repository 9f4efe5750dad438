"""The energy of a command, from a sensor, a model, the fleet file or nothing."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from planner.fleet.device import Device, Interpreter
from planner.power.measure import EnergyMeasurement, measure
from planner.profile.power_readings import WindowWatts
from planner.provenance import Provenance
from planner.views.power import measurement
from planner.views.tables import EMULATED_NOTE
from power_models.base import PowerModel, Target
from power_models.linear import Linear
from power_models.table import Table


def device(tmp_path: Path, **changes: object) -> Device:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PLANNER_SYSFS_ROOT": str(tmp_path)}
    return Device(**{"name": "here", "interpreter": Interpreter(sys.executable, environment=environment), **changes})


def silent(name: str, text: str) -> None:
    del name, text


def test_the_output_is_passed_on_and_the_code_kept(tmp_path: Path) -> None:
    said: list[tuple[str, str]] = []
    found = measure(device(tmp_path), ["sh", "-c", "echo hello; exit 4"], None, lambda *each: said.append(each))
    assert said == [("out", "hello\n")]
    assert found.returncode == 4
    assert found.duration_s > 0


def test_by_its_nameplate_a_device_draws_as_much_as_it_is_busy(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cpuinfo").write_text("processor\t: 0\n\n")
    (proc / "stat").write_text("cpu  50 0 0 50 0 0 0 0\ncpu0 50 0 0 50 0 0 0 0\n")
    (proc / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 50 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
    found = measure(device(tmp_path, idle_watts=10.0, max_watts=30.0), ["sleep", "0.3"], None, silent)
    assert found.busy.watts == pytest.approx(20.0)
    assert found.busy.provenance.text == "nameplate (at u_cpu = 0.50)"
    assert found.energy_j == pytest.approx(20.0 * found.duration_s)


def test_a_model_is_asked_where_no_sensor_tells(tmp_path: Path) -> None:
    loads = Table.of({"u_mem": [0.0, 0.25, 0.5, 0.75, 1.0]})
    model = PowerModel.fit(Linear, loads, Target("power", 4 + 8 * loads.numbers("u_mem")))
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 50 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
    found = measure(device(tmp_path), ["sleep", "0.3"], model, silent)
    assert found.busy.watts == pytest.approx(8.0)
    assert found.busy.provenance.kind == "model"
    assert found.above_idle_j == pytest.approx(0.0)


def test_joules_above_idle_need_the_same_source_and_parts_of_the_device() -> None:
    whole, part = Provenance("sensor", ("board",)), Provenance("sensor", ("cpu",))
    found = EnergyMeasurement("a", ("x",), 0, 10.0, WindowWatts(30.0, 0.01, whole), WindowWatts(10.0, None, whole), ())
    assert (found.energy_j, found.above_idle_j) == (300.0, 200.0)
    assert found.uncertainty == pytest.approx(0.0196, rel=0.01)
    assert found._replace(idle=WindowWatts(10.0, None, part)).above_idle_j is None
    written = Provenance("nameplate", ("board",))
    assert found._replace(idle=WindowWatts(10.0, None, written)).above_idle_j is None


def test_why_idle_watts_are_unknown_is_shown_and_either_s_emulation() -> None:
    busy = WindowWatts(30.0, 0.01, Provenance("sensor", ("board",)))
    found = EnergyMeasurement(
        "a", ("x",), 0, 10.0, busy, WindowWatts(None, None, Provenance("unavailable", detail="asleep")), ()
    )
    text = shown(found)
    assert "watts: integrated sensor of the board" in text
    assert "idle watts: unavailable: asleep" in text
    assert EMULATED_NOTE not in text
    emulated = busy._replace(provenance=busy.provenance._replace(emulated=True))
    assert EMULATED_NOTE in shown(found._replace(idle=emulated))
    assert EMULATED_NOTE in shown(found._replace(busy=emulated))


def shown(found: EnergyMeasurement) -> str:
    console = Console(file=io.StringIO(), width=160, markup=False, emoji=False, highlight=False)
    console.print(measurement(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
