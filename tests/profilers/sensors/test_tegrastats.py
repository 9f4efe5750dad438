"""The total of each recorded line follows the rule of the monitors in sysfs."""

import json

import pytest

from profilers.file_tree import Unavailable
from profilers.sensors import rail_totals, tegrastats
from profilers.tegrastats import parse

#: Name, coverage and watts of the total of each recorded line.
TOTALS = [
    ("VDD_IN", "module", 2.532),
    ("VDD_IN", "module", 1.931),
    ("VDD_IN", "module", 3.177),
    ("VDD_IN", "module", 9.273),
    ("VDD_IN", "module", 3.024),
    ("VDD_IN", "module", 2.003),
    ("POM_5V_IN", "board", 0.9),
    ("POM_5V_IN", "board", 1.75),
    ("sum", "module", 0.216 + 0.864 + 0.144 + 1.889),
    ("VDD_IN", "module", 6.14),
    ("VDD_IN", "module", 5.079),
    ("VDD_IN", "module", 13.791),
    ("sum", "module", 2.399 + 0.4 + 4.032),
    ("sum", "module", 2.34 + 0.39 + 4.025),
    ("sum", "module", 2.412 + 1.607 + 4.707),
    ("VDD_IN", "module", 4.824),
    ("VDD_IN", "module", 3.631),
]


class Program:
    """A stand-in program that repeats one line; None stands for a missing program."""

    def __init__(self, line):
        self.line = line
        self.closed = 0

    def newest(self):
        if self.line is None:
            raise Unavailable("tegrastats cannot be run")
        return parse(self.line)

    def close(self):
        self.closed += 1


def readings(found):
    return [(sensor.name, sensor.covers, pytest.approx(sensor.read())) for sensor in found.sensors]


def test_the_total_of_every_recorded_line(shared_data):
    records = (shared_data / "tegrastats/lines.jsonl").read_text().splitlines()
    assert len(records) >= len(TOTALS)
    for record, (name, covers, watts) in zip(records, TOTALS, strict=False):
        found = tegrastats.discover_totals(Program(json.loads(record)["line"]))
        assert readings(found) == [("tegrastats:" + name, covers, watts)]


def test_unused_channels_and_rails_fed_by_5_v_are_not_added():
    labels = ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "NC", "VDDQ_VDD2_1V8AO", "NC"]
    assert rail_totals.totals(labels) == (
        rail_totals.Total("sum", "module", ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0")),
    )


def test_the_input_of_a_thor_is_its_total_and_its_inner_rails_are_none():
    inner = "VDD_GPU 2500mW/2500mW VDD_CPU_SOC_MSS 6000mW/6100mW VIN_SYS_5V0 6500mW/6500mW"
    found = tegrastats.discover_totals(Program(f"EMC_FREQ @665 {inner} VIN 21500mW/21600mW"))
    assert readings(found) == [("tegrastats:VIN", "board", 21.5)]
    assert {sensor.covers for sensor in tegrastats.discover_totals(Program(inner)).sensors} == {"rail"}


def test_discovery_ends_the_program():
    program = Program("VDD_IN 1000/1000")
    tegrastats.discover_totals(program)
    assert program.closed


@pytest.mark.parametrize("line, reason", [(None, "cannot be run"), ("RAM 1/2MB CPU [1%@102]", "no rail")])
def test_a_program_without_rails_has_a_reason(line, reason):
    found = tegrastats.discover_totals(Program(line))
    assert found.sensors == () and reason in found.missing[0][1]


def test_a_missing_rail_fails_the_sum():
    program = Program("GPU 1/1 CPU 2/2 SOC 4/4 CV 0/0 VDDRQ 1/1 SYS5V 3/3")
    (total,) = tegrastats.discover_totals(program).sensors
    assert total.read() == pytest.approx(0.011)
    program.line = "GPU 1/1 SYS5V 3/3"
    with pytest.raises(Unavailable, match="no longer states CPU, SOC, CV, VDDRQ"):
        total.read()


def test_other_machines_and_emulated_jetsons_do_not_run_it(plant, tx2):
    assert tegrastats.discover(plant(tx2)) == ((), ())
    assert tegrastats.discover(plant({})) == ((), ())
