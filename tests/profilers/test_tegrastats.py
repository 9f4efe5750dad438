"""tegrastats lines of every Jetson and many L4T releases are parsed, and the program is run."""

import json
import stat
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import running_program, tegrastats
from profilers.file_tree import FileTree, Unavailable
from profilers.tegrastats import parse
from tests.running import HANG_S

LINE = "RAM 2586/7846MB (lfb 1x1MB) CPU [0%@960,off] EMC_FREQ 10%@665 GR3D_FREQ 53%@140 APE 150 VDD_IN 3177/3100"


@pytest.fixture
def recorded(shared_data):
    """(record, what was parsed of it) of every recorded line."""
    records = [json.loads(line) for line in (shared_data / "tegrastats/lines.jsonl").read_text().splitlines()]
    return [(record, parse(record["line"])) for record in records]


# -- parse -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part, counters",
    [
        ("EMC_FREQ 7%@408 GR3D_FREQ 0%@76", {"f_emc": 408e6, "f_gpu": 76e6, "u_gpu": 0.0}),
        ("EMC_FREQ 0% GR3D_FREQ 99% AUX@38.5C", {"u_gpu": 0.99}),
        ("EMC_FREQ 0%@1600 GR3D_FREQ 0%@[510] VIC_FREQ 601", {"f_emc": 1600e6, "f_gpu": 510e6, "u_gpu": 0.0}),
        ("GR3D_FREQ 5%@[600,400] NVENC 79%@166", {"f_gpu": 500e6, "u_gpu": 0.05}),
        ("GR3D_FREQ 12%@0 GR3D2_FREQ 50%@7", {"f_gpu": 7e6, "u_gpu": 0.5}),
        ("GR3D_FREQ 20%@305 GR3D2_FREQ 0%@0", {"f_gpu": 305e6, "u_gpu": 0.2}),
        ("GR3D_FREQ 3%@[510,0]", {"f_gpu": 510e6, "u_gpu": 0.03}),
        ("EMC_FREQ 0% GR3D_FREQ 0% GR3D2_FREQ 0%@0", {"f_gpu": 0.0, "u_gpu": 0.0}),
        ("EMC_FREQ 2%@1866 GR3D_FREQ @[1000,1200,1100]", {"f_emc": 1866e6, "f_gpu": 1100e6}),
        (
            "cpu [0%,0%,off,off]@102 EMC 7%@408 AVP 1%@12 GR3D 3%@76 EDP limit 0",
            {"f_emc": 408e6, "f_gpu": 76e6, "u_gpu": 0.03},
        ),
        ("CPU [2%@102]", {}),
    ],
)
def test_clocks_and_load_are_parsed_in_the_format_of_each_release(part, counters):
    assert parse("RAM 1/2MB " + part).counters == pytest.approx(counters)


@pytest.mark.parametrize(
    "part, rails",
    [
        ("VDD_IN 2532/2698 VDD_CPU 76/178", {"VDD_IN": 2.532, "VDD_CPU": 0.076}),
        ("VDD_IN 4824mW/4825mW", {"VDD_IN": 4.824}),
        ("VDD_IN 4824mW/4825mW/4826mW VDD_SOC 1/2/3", {"VDD_IN": 4.824, "VDD_SOC": 0.001}),
        ("GPU@32C CPU@33.5C GPU 7/8 CPU 216/217", {"GPU": 0.007, "CPU": 0.216}),
        ("SWAP 1/2MB IRAM 0/252kB(lfb 252kB) MTS fg 0% bg 0% 08/23 VDD_X 5/", {}),
    ],
)
def test_rails_with_and_without_a_unit_and_with_further_values(part, rails):
    assert parse("RAM 1/2MB " + part).rails == rails


#: A line in the form that JetPack 7.2 prints on an Orin; the figures are made up.
ORIN_JETPACK_7 = (
    "01-02-2026 03:04:05 RAM 20000/60000MB (lfb 1x2MB) CPU [20%@2000,10%@2000,5%@2000] EMC_FREQ 4%@3000 "
    "GR3D_FREQ 15%@[1200,1200] NVENC0 off VIC off PVA0_FREQ off APE 170 "
    "cpu@50.5C/50.5C gpu@45.25C/45.25C VDD_GPU_SOC 5100mW/5200mW/5300mW VIN_SYS_5V0 5500mW/5500mW/5500mW"
)


def test_a_line_of_jetpack_7_states_two_clocks_of_one_gpu():
    found = parse(ORIN_JETPACK_7)
    assert found.counters == {"f_gpu": 1200e6, "u_gpu": 0.15, "f_emc": 3000e6}
    assert found.rails == {"VDD_GPU_SOC": 5.1, "VIN_SYS_5V0": 5.5}


PIECES = ["RAM", "CPU", "[", "]", "GR3D_FREQ", "%@", "mW/", "9" * 400, "C", " "]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_parses_without_an_exception(text):
    parse(text)


# -- recorded lines --------------------------------------------------------------------------------


def test_every_recorded_line_is_parsed(recorded):
    assert len(recorded) >= 17
    for record, line in recorded:
        text = record["line"]
        assert 0.0 <= line.counters["u_gpu"] <= 1.0
        assert ("f_emc" in line.counters) == ("EMC_FREQ" in text and "EMC_FREQ 0% " not in text)
        assert line.rails and all(0 <= watts < 20 for watts in line.rails.values())


def test_every_line_of_a_whole_log_is_parsed(shared_data):
    for text in (shared_data / "tegrastats/tx2.log").read_text().splitlines():
        line = parse(text)
        assert list(line.rails) == ["VDD_IN", "VDD_CPU", "VDD_GPU", "VDD_SOC", "VDD_WIFI", "VDD_DDR"]
        assert sum(line.rails.values()) < 2 * line.rails["VDD_IN"]
        assert ("u_gpu" in line.counters) == ("GR3D_FREQ" in text)


# -- the program -----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(running_program, "SILENCE_S", HANG_S)


@pytest.fixture
def program(tmp_path):
    """A stand-in for tegrastats that prints a line every 20 ms."""
    path = tmp_path / "tegrastats"
    path.write_text(
        f"#!{sys.executable}\nimport time\nwhile True:\n    print({LINE!r}, flush=True)\n    time.sleep(0.02)\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_read_starts_the_program_and_close_ends_it(program):
    live = tegrastats.Tegrastats(FileTree("/"), program)
    assert live.read("f_emc") == 665e6
    process = live._process
    live.close()
    assert process.poll() is not None
    assert live.read("u_gpu") == 0.53  # started again
    live.close()


def test_a_missing_counter_and_an_ended_program_are_reasons(program):
    live = tegrastats.Tegrastats(FileTree("/"), program)
    with pytest.raises(Unavailable, match="does not state it"):
        live.read("u_cp")
    live._process.kill()
    live._process.wait()
    with pytest.raises(Unavailable, match="has ended"):
        live.read("f_emc")
    live.close()


def test_a_silent_program_is_unavailable(tmp_path, monkeypatch):
    path = tmp_path / "tegrastats"
    path.write_text(f"#!{sys.executable}\nimport time\nprint({LINE!r}, flush=True)\ntime.sleep(60)\n")
    path.chmod(0o755)
    live = tegrastats.Tegrastats(FileTree("/"), str(path))
    assert live.newest().rails["VDD_IN"] == 3.177
    monkeypatch.setattr(running_program, "SILENCE_S", 0.05)
    time.sleep(0.1)
    with pytest.raises(Unavailable, match="stays silent"):
        live.newest()
    live.close()


def test_invalid_bytes_do_not_end_the_reader(tmp_path):
    path, said = tmp_path / "tegrastats", b"\xff " + LINE.encode() + b"\n"
    path.write_text(
        f"#!{sys.executable}\nimport sys, time\nsys.stdout.buffer.write({said!r})\nsys.stdout.flush()\ntime.sleep(60)\n"
    )
    path.chmod(0o755)
    live = tegrastats.Tegrastats(FileTree("/"), str(path))
    assert live.newest().rails["VDD_IN"] == 3.177
    live.close()


def test_a_missing_program_and_another_file_tree_are_reasons(tmp_path):
    with pytest.raises(Unavailable, match="cannot be run: No such file"):
        tegrastats.Tegrastats(FileTree("/"), str(tmp_path / "none")).read("f_emc")
    with pytest.raises(Unavailable, match="no other file tree"):
        tegrastats.Tegrastats(FileTree(tmp_path)).read("f_emc")
