"""Power monitors of emulated devices, as the product's own sensor code reads them."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.lab.power_monitors import MONITORS, EmulatedRail, labels, quantised_ma, readings
from profilers.file_tree import FileTree
from profilers.sensors import discover, ina3221

#: What the product reads of each kind, and the greatest rounding of its total: half a step of every
#: rail in it.
TOTALS = {
    "pc": ("ina3221:VDD_MUX", "board", 0.024),
    "tx1": ("ina3221:VDD_IN", "module", 0.010),
    "tx2": ("ina3221:VDD_IN", "module", 0.020),
    "nano": ("ina3221:POM_5V_IN", "board", 0.021),
    "xavier-nx": ("ina3221:VDD_IN", "module", 0.020),
    "agx-xavier": ("ina3221:sum", "module", 5 * 0.036 + 0.021),
    "orin-nano": ("ina3221:VDD_IN", "module", 0.021),
    "agx-orin": ("ina3221:sum", "module", 2 * 0.2 + 0.051),
}


def device(root: Path, kind: str, total_w: float, dynamic_w: float) -> FileTree:
    for name, text in (labels(kind) | readings(kind, total_w, dynamic_w)).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return FileTree(str(root))


@pytest.mark.parametrize("kind", MONITORS)
@pytest.mark.parametrize(("total_w", "dynamic_w"), [(5.3, 0.0), (14.7, 10.2)])
def test_the_product_reads_one_total_of_each_kind(tmp_path: Path, kind: str, total_w: float, dynamic_w: float) -> None:
    tree = device(tmp_path, kind, total_w, dynamic_w)
    (sensor,) = discover(tree.root).sensors
    name, covers, rounding_w = TOTALS[kind]
    assert (sensor.name, sensor.covers, sensor.source) == (name, covers, "emulated")
    assert sensor.read() == pytest.approx(total_w, abs=rounding_w + 0.005)


@pytest.mark.parametrize("kind", [kind for kind, (name, _, _) in TOTALS.items() if name != "ina3221:sum"])
def test_rails_behind_an_input_are_parts_of_it(tmp_path: Path, kind: str) -> None:
    idle, busy = (ina3221.rails(device(tmp_path / str(load_w), kind, 3.0 + load_w, load_w)) for load_w in (0.0, 9.0))
    total = TOTALS[kind][0].partition(":")[2]
    for rails in (idle, busy):
        parts_w = math.fsum(rail.watts() for rail in rails if rail.label != total)
        (total_w,) = (rail.watts() for rail in rails if rail.label == total)
        assert parts_w <= total_w
    cpu = [(before.watts(), after.watts()) for before, after in zip(idle, busy, strict=True) if "CPU" in before.label]
    assert all(after_w > before_w for before_w, after_w in cpu)


@pytest.mark.parametrize("kind", ["agx-xavier", "agx-orin"])
def test_rails_that_are_summed_are_the_whole(kind: str) -> None:
    every = [rail for chip in MONITORS[kind].chips.values() for rail in chip if rail]
    rails = [rail for rail in every if rail.label not in ina3221.FED_BY_FIVE_VOLTS]
    assert math.fsum(rail.idle_share for rail in rails) == pytest.approx(1.0)
    assert math.fsum(rail.dynamic_share for rail in rails) == pytest.approx(1.0)


def test_readings_look_like_those_of_a_real_tx2() -> None:
    folder = "sys/bus/i2c/drivers/ina3221x/0-0041/iio:device1/"
    assert labels("tx2")[folder + "rail_name_0"] == "VDD_IN"
    assert readings("tx2", 3.024, 0.0)[folder + "in_power0_input"] == "3026"  # 79 steps of 38.3 mW


@given(st.floats(-1, 400), st.sampled_from([2, 4, 8, 20]), st.integers(4750, 20000))
def test_a_monitor_rounds_to_its_nearest_step(rail_w: float, step_ma: int, millivolts: int) -> None:
    milliamperes = quantised_ma(EmulatedRail("VDD", millivolts, step_ma, 1.0, 1.0), rail_w)
    assert milliamperes % step_ma == 0 and milliamperes >= 0
    assert milliamperes * millivolts / 1e6 == pytest.approx(max(0.0, rail_w), abs=step_ma * millivolts / 2e6 + 1e-9)
