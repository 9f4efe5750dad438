"""tegrastats lines of every Jetson and many L4T releases, and the program itself."""

import json
import stat
import sys
import time

import pytest

from profilers import tegra
from profilers.tree import Tree, Unavailable

LINE = "RAM 2586/7846MB (lfb 1x1MB) CPU [0%@960,off] EMC_FREQ 10%@665 GR3D_FREQ 53%@140 APE 150"


@pytest.mark.parametrize("part, counters", [
    ("EMC_FREQ 7%@408 GR3D_FREQ 0%@76", {"f_emc": 408e6, "f_gpu": 76e6, "u_gpu": 0.0}),
    ("EMC_FREQ 0% GR3D_FREQ 99% AUX@38.5C", {"u_gpu": 0.99}),
    ("EMC_FREQ 0%@1600 GR3D_FREQ 0%@[510] VIC_FREQ 601", {"f_emc": 1600e6, "f_gpu": 510e6, "u_gpu": 0.0}),
    ("GR3D_FREQ 5%@[600,400] NVENC 79%@166", {"f_gpu": 500e6, "u_gpu": 0.05}),
    ("GR3D_FREQ 12%@0 GR3D2_FREQ 50%@7", {"f_gpu": 0.0, "u_gpu": 0.12}),
    ("CPU [2%@102]", {}),
])
def test_clocks_and_load_as_each_release_writes_them(part, counters):
    assert tegra.parse_tegrastats("RAM 1/2MB " + part) == pytest.approx(counters)


def test_every_recorded_line_is_understood(shared_data):
    for record in (shared_data / "tegrastats/lines.jsonl").read_text().splitlines():
        line = json.loads(record)["line"]
        counters = tegra.parse_tegrastats(line)
        assert 0.0 <= counters["u_gpu"] <= 1.0
        assert ("f_emc" in counters) == ("EMC_FREQ" in line and "EMC_FREQ 0% " not in line)


def test_every_line_of_a_whole_log_is_understood(shared_data):
    for line in (shared_data / "tegrastats/tx2.log").read_text().splitlines():
        assert set(tegra.parse_tegrastats(line)) <= {"f_gpu", "u_gpu", "f_emc"}


@pytest.fixture
def program(tmp_path):
    """A stand-in for tegrastats that prints a line every 20 ms."""
    path = tmp_path / "tegrastats"
    path.write_text(f"#!{sys.executable}\nimport time\n"
                    f"while True:\n    print({LINE!r}, flush=True)\n    time.sleep(0.02)\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_program_is_started_by_a_question_and_ended(program):
    live = tegra.Tegrastats(Tree("/"), program)
    assert live.read("f_emc") == 665e6
    process = live._process
    live.close()
    assert process.poll() is not None
    assert live.read("u_gpu") == 0.53  # started again
    live.close()


def test_a_counter_it_does_not_state_and_its_end_are_reasons(program):
    live = tegra.Tegrastats(Tree("/"), program)
    with pytest.raises(Unavailable, match="does not state it"):
        live.read("u_cp")
    live._process.kill()
    time.sleep(0.1)
    with pytest.raises(Unavailable, match="has ended"):
        live.read("f_emc")
    live.close()


def test_its_absence_and_an_emulated_device_are_reasons(tmp_path):
    with pytest.raises(Unavailable, match="cannot be run: No such file"):
        tegra.Tegrastats(Tree("/"), str(tmp_path / "none")).read("f_emc")
    with pytest.raises(Unavailable, match="emulated"):
        tegra.Tegrastats(Tree(tmp_path)).read("f_emc")
