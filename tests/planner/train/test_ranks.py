"""--engine torch trains over torch.distributed on local devices, and names what goes wrong."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.installed import needs
from tests.planner.pairs import (
    has_checkpoint,
    left_files,
    new_pair,
    one_line,
    pair_fleet,
    run_folders,
    saved_step,
    training,
)
from tests.planner.plans import replan
from tests.running import Command, agents, call, fleet_file, gone, plan_file, run, signal_all, tiny_model, until

with_torch = needs("torch")
NAMES = ("desktop", "tx1", "tx2")
ENDLESS = 100_000
#: What a plan for torch.distributed has of it.
TORCH = {"engine": "torch", "strategy": "allreduce"}
#: A model of one device, the one that renames a file to its own name, hangs in one of its steps.
HANGING = """
import os, time
from torch import nn

class Hanging(nn.Sequential):
    passes = 0

    def forward(self, x):
        self.passes += 1
        if self.passes == {step}:
            try:
                os.rename({hang!r}, os.environ["PLANNER_TEST_DEVICE"] + ".hangs")
            except FileNotFoundError:
                pass
            else:
                time.sleep(3600.0)
        return super().forward(x)

def tiny():
    return Hanging(nn.Flatten(), nn.Linear(28 * 28, 10)), (28, 28, 1)
"""


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A folder with a fleet of three devices that compute with torch, and a plan for all."""
    fleet_file(tmp_path, {name: {"environment": {"OMP_NUM_THREADS": "1"}} for name in NAMES})
    plan_file(tmp_path / "plan.json", tiny_model(tmp_path, 0.005), NAMES, 30)
    replan(tmp_path, **TORCH)
    return tmp_path


def on_torch(*arguments: str) -> tuple[str, ...]:
    return training("--evaluate-every", "15", "--heartbeat", "60", *arguments)


def result_of(command: Command) -> dict[str, Any]:
    assert command.popen.returncode == 0, command.errors
    result: dict[str, Any] = json.loads(command.output)
    return result


@pytest.mark.e2e
@with_torch
def test_all_make_the_same_steps_and_a_run_goes_on_with_either_engine(three: Path) -> None:
    first = result_of(run(three, *on_torch("--json")))
    assert first["engine"] == "torch" and first["strategy"] == "allreduce"
    assert {name: worker["steps"] for name, worker in first["workers"].items()} == dict.fromkeys(NAMES, 10)
    assert all(worker["busy_s"] > 0 and worker["exchange_s"] > 0 for worker in first["workers"].values())
    assert [each["step"] for each in first["evaluations"]] == [15, 30]
    (folder,) = run_folders(three)
    assert saved_step(folder) == 30

    hooked = str(replan(three, engine="torch:hook=fp16", steps=60))
    assert result_of(run(three, *training(hooked, "--resume", str(folder), "--json")))["steps_made"] == 30
    shared = str(replan(three, engine="torch:shard=full", steps=90))
    third = result_of(run(three, *training(shared, "--resume", str(run_folders(three)[-1]), "--json")))
    assert third["steps_made"] == 30 and third["evaluations"][-1]["loss"] < first["evaluations"][0]["loss"]
    evaluated_s = sum(each["seconds"] for each in third["evaluations"])
    assert 0 < third["workers"][NAMES[0]]["evaluation_s"] < evaluated_s  # which includes what it waits for blocks
    own = str(replan(three, engine="planner", steps=120))
    last = result_of(run(three, *training(own, "--resume", str(run_folders(three)[-1]), "--json")))
    assert last["engine"] == "planner" and last["evaluations"][-1]["loss"] < first["evaluations"][0]["loss"]
    assert saved_step(run_folders(three)[-1]) == 120
    assert not left_files(three)
    gone(three)


@pytest.mark.chaos
@with_torch
@pytest.mark.parametrize("lost", ["desktop", "tx2"])  # the first rank, and another
def test_a_rank_that_dies_ends_all_and_the_last_checkpoint_stays(three: Path, lost: str) -> None:
    command = Command(three, *on_torch("--steps", str(ENDLESS)))
    command.says("tx2 joined")
    until(lambda: has_checkpoint(three), lambda: command.errors)
    signal_all(agents(three, lost)[:1], signal.SIGKILL)
    assert command.ended() == 1
    assert f"planner: {lost}: " in one_line(command) and "checkpoint.npz" in one_line(command)
    gone(three)


@pytest.mark.chaos
@with_torch
def test_a_rank_that_is_stopped_is_missed_by_its_heartbeats(three: Path) -> None:
    command = Command(three, *on_torch("--steps", str(ENDLESS), "--heartbeat", "2"))
    command.says("tx2 joined")
    signal_all(agents(three, "tx2")[:1], signal.SIGSTOP)
    assert command.ended() == 1
    assert "no heartbeat of tx2 for 2 s" in one_line(command)
    gone(three)


@pytest.mark.chaos
@with_torch
@pytest.mark.parametrize(("engine", "step"), [("torch", 2), ("torch:hook=powersgd,start=2", 6)])
def test_a_rank_whose_step_hangs_is_named_and_ends_all(three: Path, engine: str, step: int) -> None:
    (three / "tiny.py").write_text(HANGING.format(hang=str(three / "hang"), step=step))
    (three / "hang").touch()
    replan(three, engine=engine)
    command = Command(three, *on_torch("--steps", str(ENDLESS), "--heartbeat", "10"))
    assert command.ended() == 1
    (hung,) = three.glob("*.hangs")
    assert f"planner: {hung.stem}: the agent ends: a step has taken" in one_line(command)
    gone(three)


@pytest.mark.chaos
@with_torch
def test_ctrl_c_ends_all_ranks_after_the_same_round_with_a_checkpoint(three: Path) -> None:
    command = Command(three, *on_torch("--steps", str(ENDLESS)))
    command.says("tx2 joined")
    until(lambda: has_checkpoint(three), lambda: command.errors)
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    (folder,) = run_folders(three)
    assert f"stopped after step {saved_step(folder)} of {ENDLESS}" in one_line(command)
    assert not left_files(three)
    gone(three)


def test_a_device_without_torch_distributed_is_named_before_the_run(tmp_path: Path) -> None:
    replan(new_pair(tmp_path), **TORCH)
    command = run(tmp_path, *on_torch())
    assert command.popen.returncode == 1
    assert "desktop: run rank: this torch was built without torch.distributed" in one_line(command)
    gone(tmp_path)


def test_an_address_that_no_interface_has_is_named(tmp_path: Path) -> None:
    pair_fleet(new_pair(tmp_path), desktop={"data_address": "127.0.1.1"})
    replan(tmp_path, **TORCH)
    command = run(tmp_path, *on_torch())
    assert command.popen.returncode == 1
    assert "desktop" in one_line(command) and "127.0.1.1 is the address of no interface here" in one_line(command)
    gone(tmp_path)


def refused(folder: Path, *arguments: str) -> str:
    """The message of a command that ends before a device is contacted."""
    called = call(folder, *training(*arguments))
    assert called.code == 1
    return called.last_line


def test_what_the_engine_cannot_do_is_refused_at_once(tmp_path: Path) -> None:
    new_pair(tmp_path)
    plan_file(
        tmp_path / "plan.json", f"{tmp_path}/tiny.py:tiny", ("desktop", "tx2"), 10, frameworks={"tx2": "tensorflow"}
    )
    replan(tmp_path, **TORCH)
    assert "tx2 computes with tensorflow; plan again with --framework torch" in refused(tmp_path)


def test_nothing_crosses_a_network_unencrypted_that_nobody_called_trusted(tmp_path: Path) -> None:
    replan(new_pair(tmp_path), **TORCH)
    fleet = tmp_path / "fleet.toml"
    remote = fleet.read_text().replace('"local"', '"nobody@127.0.0.1:1"')
    fleet.write_text(remote)
    assert "--allow-plaintext, or trusted_network = true" in refused(tmp_path)
    assert "plaintext" not in refused(tmp_path, "--allow-plaintext")
    fleet.write_text(f"trusted_network = true\n{remote}")
    assert "plaintext" not in refused(tmp_path)


def test_one_device_trains_alone(tmp_path: Path) -> None:
    new_pair(tmp_path)
    plan_file(tmp_path / "plan.json", f"{tmp_path}/tiny.py:tiny", ["tx2"], 10)
    replan(tmp_path, **TORCH)
    command = run(tmp_path, *on_torch("--json"))
    assert result_of(command)["steps_made"] == 10
    assert "tx2 trains alone" in command.errors
