"""Agents without /proc and /sys, where programs of a Mac tell what Linux has there."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.profilers import macs
from tests.quick import numpy_model
from tests.running import FASHION, ROOT, Command, fleet_file, gone, plan_file, run

#: Starts an agent in a name space of its own, in which both folders are empty.
HIDES = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec "$0" "$@"']


def hides_proc() -> bool:
    """Whether this user may do that here: only root may, and not in every container."""
    try:
        return subprocess.run([*HIDES, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not hides_proc(), reason="no root, or no unshare(1)")


def done(folder: Path, *arguments: str) -> Command:
    command = run(folder, *arguments)
    assert command.popen.returncode == 0, command.errors
    return command


@pytest.fixture
def mac(tmp_path: Path) -> Path:
    """A folder with a fleet of two Macs."""
    programs = macs.plant(tmp_path / "programs")
    path = f"{programs}:/usr/bin:/bin"
    environment = {"PYTHONPATH": f"{ROOT / 'tests' / 'a_mac'}:{ROOT}", "PATH": path, "OMP_NUM_THREADS": "1"}
    fleet_file(tmp_path, dict.fromkeys(("mac", "mini"), {"prefix": HIDES, "environment": environment}))
    return tmp_path


def test_macs_are_checked_and_profiled_and_their_watts_measured(mac: Path) -> None:
    told = {each["check"]: each["detail"] for each in json.loads(done(mac, "check", "--json").output)["findings"]}
    assert told["memory"] == "7.13 GB of 17.2 GB available"
    assert "powermetrics:package" in told["power"]
    model = numpy_model(mac)
    done(mac, "profile", "--device", "mac", "--model", model, "--batch-size", "8", "--steps", "10")
    facts = json.loads((mac / "profile.json").read_text())["devices"]["mac"]["facts"]
    assert (facts["board"], facts["processor"]["name"]) == ("Mac14,9", "Apple M2 Pro")
    done(mac, "recommend")
    done(mac, "power", "measure", "mac", "--", "true")
    gone(mac)
    assert (mac / "programs" / "caffeinate.told").read_text().startswith("-i -w ")


def test_macs_train_together_and_run_a_script(mac: Path) -> None:
    plan_file(mac / "plan.json", numpy_model(mac), ["mac", "mini"], steps=6)
    done(mac, "train", "--data", str(FASHION))
    (mac / "script.py").write_text("import os; print(os.environ['RANK'], os.environ['GLOO_SOCKET_IFNAME'])")
    told = done(mac, "launch", "plan.json", "--allow-plaintext", "--", "python", "script.py").output
    assert sorted(told.splitlines()) == ["[mac] 0 lo0", "[mini] 1 lo0"]
    gone(mac)
