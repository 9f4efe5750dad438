"""An audit makes only the runs that are missing: on local devices, for real."""

import json
from pathlib import Path

from tests.running import run


def test_an_audit_that_was_stopped_goes_on_and_is_judged_again_offline(tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text(
        "".join(
            f'[devices.{name}]\naddress = "local"\nslowdown = {slowdown}\nidle_watts = 3\nmax_watts = {watts}\n'
            for name, slowdown, watts in (("tx2", 2, 15), ("tx1", 3, 10))
        )
    )
    profiled = ("--model", "cipher", "--batch-size", "4", "--steps", "2000", "--framework", "torch")
    made = run(tmp_path, "profile", *profiled, "--json")
    assert made.popen.returncode == 0, made.errors
    command = ("audit", "--seconds", "5", "--json", "--plot", "plot.png")
    first = run(tmp_path, *command)
    assert first.popen.returncode == 0, first.errors
    results = sorted(tmp_path.glob("audit/runs/*/*/*/result.json"))
    assert len(results) == 3 and (tmp_path / "plot.png").stat().st_size > 1000
    assert not list(tmp_path.glob("audit/runs/*/*/*/checkpoint.npz"))
    results[0].unlink()
    kept = results[1].stat().st_mtime_ns
    again = run(tmp_path, *command)
    assert again.popen.returncode == 0, again.errors
    assert results[0].exists() and results[1].stat().st_mtime_ns == kept
    offline = run(tmp_path, "audit", "audit", "--json")
    assert json.loads(offline.output) == json.loads(again.output)

    refused = run(tmp_path, "audit", "--seconds", "5", "--seed", "1")
    assert refused.popen.returncode == 1 and "has seed 0, not 1" in refused.errors
