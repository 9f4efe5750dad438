"""The paper's experiment in small.

A lab is profiled at each of two rates, and every configuration is run and judged.

This tests that the machinery works, not that the figures are good: other tests run on the same
cores meanwhile.
"""

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import run

SPEC = """\
[devices.pc]
kind = "pc"
cpus = 0.9
rate = "100mbit"

[devices.tx2]
kind = "tx2"
cpus = 0.6
rate = "100mbit"
"""


@pytest.fixture
def lab(lab_machine: None, tmp_path: Path) -> Iterator[str]:
    name = f"audit{os.getpid()}"
    yield name
    run(tmp_path, "lab", "down", "--name", name)


PROFILED = ("--model", "resnet", "--batch-size", "4", "--steps", "5000", "--framework", "torch")


def test_both_rates_are_one_grid(tmp_path: Path, lab: str) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)

    def planner(*arguments: str) -> str:
        command = run(tmp_path, *arguments)
        assert command.popen.returncode == 0, command.errors
        return command.output

    planner("lab", "up", "spec.toml", "--name", lab)
    for rate in ("100mbit", "10mbit"):
        for device in ("pc", "tx2"):
            planner("lab", "set", device, "--rate", rate, "--name", lab)
        planner("profile", *PROFILED, "--out", f"profile-{rate}.json")
        planner("audit", "--profile", f"profile-{rate}.json", "--seconds", "5", "--out", rate)
    shutil.rmtree(tmp_path / "10mbit/runs/resnet/pc")  # as if it had been stopped before: only this is run again
    planner("audit", "--profile", "profile-10mbit.json", "--seconds", "5", "--out", "10mbit")

    board = json.loads(planner("audit", "100mbit", "10mbit", "--json", "--plot", "plot.svg"))
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")
    assert len(board["configurations"]) == 2 * 3
    assert len(board["rules"]["planner"]["selections"]) == 2 * 4
    assert "emulated" in planner("audit", "100mbit", "10mbit")
    both = {each["audit"]: each for each in board["configurations"] if len(each["workers"]) == 2}
    cycles_s = {}
    for rate, each in both.items():  # where others run beside this, each may have found another device the faster one
        (remote,) = each["workers"].keys() - {each["config"]["server"]}
        cycles_s[rate] = each["workers"][remote]["cycle_s"]
    # Ten times slower links cannot be overlooked, whatever else runs here. A worker behind one may
    # not end a step in the window.
    assert (cycles_s["10mbit"]["measured"] or math.inf) > 2 * cycles_s["100mbit"]["measured"]
    assert cycles_s["10mbit"]["predicted"] > 2 * cycles_s["100mbit"]["predicted"]
