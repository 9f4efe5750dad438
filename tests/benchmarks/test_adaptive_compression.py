"""The benchmark of adaptive compression, in a setting of a few steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installed import computes_with
from tests.running import FASHION, HANG_S, ROOT

pytestmark = computes_with("torch")

WORKERS, STEPS, SHARE = 2, 3, 0.1
COMMAND = (
    sys.executable, str(ROOT / "benchmarks/adaptive_compression.py"), "--data", str(FASHION), "--rate", "0.01",
    "--workers", str(WORKERS), "--batch", "8", "--steps", str(STEPS), "--every", "2", "--test-images", "20",
    "--share", str(SHARE), "--delta", "0", "--delta", "1", "--processes", "1", "--out", "runs.jsonl",
)  # fmt: skip


def made(folder: Path, *options: str) -> str:
    command = subprocess.run(
        (*COMMAND, *options), cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert command.returncode == 0, command.stderr
    return command.stdout


def test_floats_and_the_cnc_ratio_of_both_rules_beside_dense_gradients(tmp_path: Path) -> None:
    table = json.loads(made(tmp_path, "--json"))["rows"]
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [row["rule"] for row in table] == ["dense", *["accumulated"] * 2, *["gradient"] * 2]
    assert [row["CNC ratio"] for row in table] == [None, 0.0, 1.0, 0.0, 1.0]
    size = runs[0]["parameters"]
    compressed = STEPS * round(SHARE * size)
    assert [row["floats sent"] for row in table] == [STEPS * size, *[STEPS * size, compressed] * 2]
    assert table[2]["over dense"] == pytest.approx(SHARE, rel=1e-3)
    assert all([step for step, _ in run["curve"]] == [2, 3] for run in runs)
    # what is never compressed is what dense workers send
    final = {(run["case"]["rule"], run["case"]["delta"]): run["curve"][-1][1] for run in runs}
    assert final["gradient", 0.0] == final["accumulated", 0.0] == pytest.approx(final["dense", 0.0], abs=0.1)
    before = (tmp_path / "runs.jsonl").read_bytes()
    shown = made(tmp_path)  # nothing is made again
    assert (tmp_path / "runs.jsonl").read_bytes() == before
    assert "CNC ratio" in shown and "gradient" in shown
