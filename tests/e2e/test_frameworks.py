"""The program runs PyTorch and TensorFlow in one cluster, also with an old board's TensorFlow."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from backends import models
from backends.training import checkpoint
from tests.installed import needs, old_python
from tests.planner.plans import replan
from tests.running import FASHION, GUESSING_LOSS, Command, fleet_file, gone, plan_file, run

STEPS = 40
TRAINING = ("train", "--data", str(FASHION), "--momentum", "0", "--heartbeat", "5", "--json")
ONE_THREAD = {"environment": {"OMP_NUM_THREADS": "1"}}


def planner(folder: Path, *arguments: str) -> dict[str, Any]:
    """What a command that must succeed prints as JSON."""
    command: Command = run(folder, *arguments)
    assert command.popen.returncode == 0, command.errors
    answer: dict[str, Any] = json.loads(command.output)
    return answer


def plan(folder: Path, strategy: str, *names: str) -> str:
    """A plan in which tx2 computes with TensorFlow; its file."""
    cipher = models.fingerprint(models.model("cipher", (28, 28, 1), 10))
    path = folder / f"{strategy.partition(':')[0]}-{'-'.join(names)}.json"
    return str(replan(plan_file(path, "cipher", names, STEPS, cipher, {"tx2": "tensorflow"}), strategy=strategy))


def newest(folder: Path) -> Path:
    return sorted((folder / "runs").iterdir())[-1]


@needs("torch", "tensorflow")
def test_both_train_together_and_go_on_from_one_anothers_checkpoints(tmp_path: Path) -> None:
    fleet_file(tmp_path, {"desktop": ONE_THREAD, "tx2": ONE_THREAD})
    together = plan(tmp_path, "parameter-server:sync=synchronous", "desktop", "tx2")
    served = planner(tmp_path, *TRAINING, together)
    assert {name: part["framework"] for name, part in served["workers"].items()} == {
        "desktop": "torch", "tx2": "tensorflow"
    }  # fmt: skip
    assert min(part["steps"] for part in served["workers"].values()) > STEPS / 3
    loss = served["evaluations"][-1]["loss"]
    for steps, chosen, learns in (
        (42, plan(tmp_path, "parameter-server", "tx2"), False),
        (44, plan(tmp_path, "parameter-server", "desktop"), False),
        (84, plan(tmp_path, "allreduce", "desktop", "tx2"), True),
    ):
        rate = "0.01" if learns else "1e-9"  # with nothing learnt, the loss is that of the weights it began with
        more = ("--resume", str(newest(tmp_path)), "--steps", str(steps), "--learning-rate", rate)
        result = planner(tmp_path, *TRAINING, chosen, *more)
        before, loss = loss, result["evaluations"][-1]["loss"]
        assert loss < before if learns else loss == pytest.approx(before, rel=1e-3)
        assert checkpoint.peek(str(newest(tmp_path) / "checkpoint.npz"))["step"] == steps
    gone(tmp_path)


def test_an_old_board_with_tensorflow_alone_works_beside_a_current_one_with_torch(tmp_path: Path) -> None:
    """As a Jetson TX2 would: Python 3.6, TensorFlow 2.6."""
    python = old_python()
    fleet_file(tmp_path, {"desktop": {**ONE_THREAD, "python": sys.executable}, "tx2": {"python": str(python)}})
    checked = {(each["device"], each["check"]): each for each in planner(tmp_path, "check", "--json")["findings"]}
    assert checked["desktop", "framework"]["detail"].startswith("torch ")
    assert checked["tx2", "framework"]["detail"] == "tensorflow 2.6.2 on cpu"
    assert checked["tx2", "python"]["detail"].startswith("3.6.")

    wanted = ("--model", "cipher", "--data", str(FASHION), "--batch-size", "4", "--steps", str(STEPS))
    devices = planner(tmp_path, "profile", *wanted, "--json")["devices"]
    assert {name: [each["framework"] for each in device["timings"]] for name, device in devices.items()} == {
        "desktop": ["torch"], "tx2": ["tensorflow"]
    }  # fmt: skip

    both = ("--include", "desktop", "--include", "tx2", "--server", "desktop")
    ranked = planner(tmp_path, "recommend", "--metric", "time", *both, "--json")
    assert ranked["frameworks"] == {"desktop": "torch", "tx2": "tensorflow"}

    result = planner(tmp_path, *TRAINING, "--evaluate-every", "20")
    assert {name: part["framework"] for name, part in result["workers"].items()} == ranked["frameworks"]
    assert min(part["steps"] for part in result["workers"].values()) > 0
    last = result["evaluations"][-1]
    assert last["step"] == STEPS and last["loss"] < GUESSING_LOSS
    gone(tmp_path)
