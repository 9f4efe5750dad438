"""An operator's whole way through real SSH servers: trust, check, profile, recommend, train."""

import json
from pathlib import Path
from typing import Any

from backends.training import checkpoint
from tests.e2e.conftest import SLOWDOWNS
from tests.running import FASHION, GUESSING_LOSS, Command, gone, run

STEPS = 40


def planner(folder: Path, *arguments: str) -> Command:
    """Run a command that must succeed, in a home directory of the test's own."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    command = run(folder, *arguments, HOME=str(home))
    assert command.popen.returncode == 0, command.errors
    return command


def test_from_two_strangers_to_a_trained_model(ssh_fleet: Path) -> None:
    unknown = run(ssh_fleet, "check", "--framework", "torch", "--json", HOME=str(ssh_fleet))
    assert unknown.popen.returncode == 1
    assert "planner trust" in unknown.output

    for name in SLOWDOWNS:
        assert "SHA256:" in planner(ssh_fleet, "trust", "--yes", name).output
    assert "was known" in planner(ssh_fleet, "trust", "--yes", "tx1").output

    checked = json.loads(planner(ssh_fleet, "check", "--framework", "torch", "--json").output)
    assert checked["able"] == dict.fromkeys(SLOWDOWNS, True)

    profiled = profile(ssh_fleet)
    assert {name: device["error"] for name, device in profiled["devices"].items()} == dict.fromkeys(SLOWDOWNS)
    assert {(link["source"], link["target"]) for link in profiled["links"]} == {
        (source, target) for source in SLOWDOWNS for target in SLOWDOWNS if source != target
    }
    timings = {name: device["timings"][0] for name, device in profiled["devices"].items()}
    assert {name: timed["slowdown"] for name, timed in timings.items()} == SLOWDOWNS
    assert all(timed["gradient_s"] > 0 for timed in timings.values())

    ranked = json.loads(planner(ssh_fleet, "recommend", "--metric", "edp", "--json").output)
    assert ranked["metric"] == "edp"
    plan = json.loads((ssh_fleet / "plan.json").read_text())
    assert plan["server"] in SLOWDOWNS and plan["prediction"]["time_s"] > 0

    result = train(ssh_fleet)
    assert sum(worker["steps"] for worker in result["workers"].values()) == STEPS
    for kind in ("predicted", "measured"):
        assert result[kind]["time_s"] > 0 and result[kind]["power_w"] > 0
    assert result["startup_s"] > 0
    last = result["evaluations"][-1]
    assert last["step"] == STEPS and last["loss"] < GUESSING_LOSS

    (folder,) = (ssh_fleet / "runs").iterdir()
    assert json.loads((folder / "result.json").read_text()) == result
    saved = checkpoint.read(str(folder / "checkpoint.npz"))
    assert saved.meta["step"] == STEPS and saved.weights.size == saved.layout.parameters
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    gone(ssh_fleet)


def profile(folder: Path) -> dict[str, Any]:
    arguments = (
        "--model",
        "cipher",
        "--data",
        str(FASHION),
        "--batch-size",
        "4",
        "--steps",
        str(STEPS),
        "--framework",
        "torch",
    )
    answer: dict[str, Any] = json.loads(planner(folder, "profile", *arguments, "--json").output)
    return answer


def train(folder: Path) -> dict[str, Any]:
    """Train on both devices, whatever is best: one alone would leave half of this unused.

    Momentum is 0, since with old gradients of four images each it has ruined a run.
    """
    everyone = [argument for name in SLOWDOWNS for argument in ("--include", name)]
    planner(folder, "recommend", "--metric", "time", *everyone)
    arguments = ("--data", str(FASHION), "--evaluate-every", "20", "--heartbeat", "5", "--momentum", "0")
    answer: dict[str, Any] = json.loads(planner(folder, "train", *arguments, "--json").output)
    return answer
