"""Runs through what goes wrong in them: real processes on local devices, ended, stopped and starved."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends import checkpoint
from tests.running import FASHION, Command, agents, fleet_file, gone, plan_file, run, signal_all, tiny_model, until

pytestmark = [pytest.mark.xdist_group("processes"), pytest.mark.timeout(150)]

STEPS = 200
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and network namespaces need root")


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A folder with a fleet of two devices and a plan for both."""
    fleet_file(tmp_path, {"desktop": {}, "tx2": {}})
    plan_file(tmp_path / "plan.json", tiny_model(tmp_path), ("desktop", "tx2"), STEPS)
    return tmp_path


def start(folder: Path, *arguments: str) -> Command:
    return Command(folder, *training(*arguments))


def training(*arguments: str) -> tuple[str, ...]:
    return ("train", "--data", str(FASHION), "--heartbeat", "2", "--checkpoint-every", "20", *arguments)


def run_folders(folder: Path) -> list[Path]:
    return sorted((folder / "runs").iterdir())


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def saved_step(folder: Path) -> int:
    path = folder / "checkpoint.npz"
    return int(checkpoint.peek(str(path))["step"]) if path.exists() else 0


def has_checkpoint(folder: Path) -> bool:
    return any(saved_step(each) > 0 for each in run_folders(folder))


def one_line(command: Command) -> str:
    """The message with which a command failed, the only one of its kind."""
    said = [line for line in command.errors.splitlines() if line.startswith("planner: ")]
    assert said == [command.last_line], command.errors
    return said[0]


def test_a_worker_that_dies_or_hangs_is_dropped_and_comes_back_and_no_step_is_lost(pair: Path) -> None:
    command = start(pair, "--evaluate-every", "1000", "--steps", str(4 * STEPS))
    command.says("joined tx2")
    until(lambda: has_checkpoint(pair), 20, lambda: command.errors)
    signal_all(agents(pair, "tx2"), signal.SIGKILL)
    command.says("dropped tx2")
    command.says("joined tx2", times=2)
    signal_all(agents(pair, "tx2"), signal.SIGSTOP)
    command.says("silent tx2", timeout_s=8)
    assert command.ended() == 0, command.errors
    (folder,) = run_folders(pair)
    result = json.loads((folder / "result.json").read_text())
    assert saved_step(folder) == 4 * STEPS
    assert sum(worker["steps"] for worker in result["workers"].values()) == 4 * STEPS
    assert all(worker["steps"] > 0 for worker in result["workers"].values())
    gone(pair)


def test_a_lost_server_ends_the_run_with_its_checkpoint_and_another_cluster_goes_on(pair: Path) -> None:
    command = start(pair)
    command.says("joined desktop")
    until(lambda: has_checkpoint(pair), 20, lambda: command.errors)
    signal_all(agents(pair, "desktop")[1:2], signal.SIGKILL)  # between the worker and what fetches checkpoints
    assert command.ended() == 1
    (first,) = run_folders(pair)
    message = one_line(command)
    assert str(first.relative_to(pair) / "checkpoint.npz") in message and "--resume" in message
    gone(pair)

    before = saved_step(first)
    alone = plan_file(pair / "alone.json", str(pair / "tiny.py:tiny"), ("tx2",), STEPS)
    command = run(pair, *training(str(alone), "--resume", str(first), "--json"))
    assert command.popen.returncode == 0, command.errors
    result = json.loads(command.output)
    assert result["workers"]["tx2"]["steps"] == STEPS - before
    assert saved_step(run_folders(pair)[-1]) == STEPS


def test_ctrl_c_keeps_the_weights_and_a_dead_controller_leaves_nothing_behind(pair: Path) -> None:
    command = start(pair)
    command.says("joined tx2")
    until(lambda: has_checkpoint(pair), 20, lambda: command.errors)
    command.popen.send_signal(signal.SIGINT)
    assert command.ended(15) == 130
    (first,) = run_folders(pair)
    assert f"--resume {first.relative_to(pair)}" in one_line(command)
    assert 0 < saved_step(first) < STEPS
    gone(pair)

    command = start(pair, "--resume", str(first))
    command.says("joined tx2")
    command.popen.kill()
    gone(pair)


def test_ctrl_c_before_the_first_step_ends_at_once(pair: Path) -> None:
    command = start(pair)
    until(lambda: len(agents(pair)) >= 2, 30, lambda: command.errors)
    command.popen.send_signal(signal.SIGINT)
    assert command.ended(6) == 130
    gone(pair)


def test_a_model_that_fails_is_not_tried_again_and_again(pair: Path) -> None:
    (pair / "tiny.py").write_text("def tiny():\n    return undefined_name\n")
    plan_file(pair / "plan.json", str(pair / "tiny.py:tiny"), ("desktop", "tx2"), STEPS)
    command = run(pair, *training(), timeout_s=30)
    assert command.popen.returncode == 1
    assert "NameError" in one_line(command) and ".py:2" in one_line(command)
    gone(pair)


def test_data_of_another_shape_are_named(pair: Path) -> None:
    (pair / "tiny.py").write_text((pair / "tiny.py").read_text().replace("28 * 28", "100").replace("28, 28", "10, 10"))
    plan_file(pair / "plan.json", str(pair / "tiny.py:tiny"), ("desktop", "tx2"), STEPS)
    command = run(pair, *training(), timeout_s=30)
    assert command.popen.returncode == 1
    assert "10, 10" in one_line(command) and "28, 28" in one_line(command)


def test_a_model_that_was_edited_after_the_plan_is_refused(pair: Path) -> None:
    with (pair / "tiny.py").open("a") as source:
        source.write("\n# another model now\n")
    command = run(pair, *training(), timeout_s=30)
    assert command.popen.returncode == 1
    assert "changed since it was profiled" in one_line(command)


def test_a_device_without_the_framework_is_named(pair: Path) -> None:
    hidden = pair / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError(\"No module named 'torch'\")\n")
    fleet_file(pair, {"desktop": {}, "tx2": {"environment": {"PYTHONPATH": str(hidden)}}})
    command = run(pair, *training(), timeout_s=30)
    assert command.popen.returncode == 1
    assert "tx2" in one_line(command) and "torch" in one_line(command)
    gone(pair)


def test_a_plan_that_is_truncated_is_named(pair: Path) -> None:
    plan = pair / "plan.json"
    plan.write_bytes(plan.read_bytes()[:200])
    command = run(pair, *training())
    assert command.popen.returncode == 1
    assert "plan.json" in one_line(command) and "planner recommend" in one_line(command)


def test_a_checkpoint_that_is_truncated_is_named(pair: Path) -> None:
    command = run(pair, *training("--steps", "20"))
    assert command.popen.returncode == 0, command.errors
    (first,) = run_folders(pair)
    kept = first / "checkpoint.npz"
    kept.write_bytes(kept.read_bytes()[:3000])
    command = run(pair, *training("--resume", str(first), "--steps", "40"))
    assert command.popen.returncode == 1
    assert str(kept) in one_line(command)


def test_more_steps_may_follow_a_run_that_has_ended(pair: Path) -> None:
    plan_file(pair / "plan.json", str(pair / "tiny.py:tiny"), ("tx2",), 20)
    assert run(pair, *training()).popen.returncode == 0
    (first,) = run_folders(pair)
    command = run(pair, *training("--resume", str(first)))
    assert command.popen.returncode == 1 and "--steps" in one_line(command)
    command = run(pair, *training("--resume", str(first), "--steps", "30"))
    assert command.popen.returncode == 0, command.errors
    assert saved_step(run_folders(pair)[-1]) == 30


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@as_root
def test_a_full_disk_costs_no_checkpoint_and_no_step(pair: Path, small_disk: Path) -> None:
    command = start(pair, "--run-dir", str(small_disk / "runs"))
    until(lambda: any(small_disk.glob("runs/*/checkpoint.npz")), 40, lambda: command.errors)
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(bytes(4096))
    (folder,) = (small_disk / "runs").iterdir()
    kept = saved_step(folder)
    assert command.ended() == 1
    assert "No space left" in command.last_line and str(folder) in command.last_line
    assert saved_step(folder) >= kept > 0
    assert f"step {STEPS}: loss" in command.errors  # the run itself went on to its end
    assert checkpoint.peek(next(map(str, pair.glob("cache-desktop/planner/run-*-checkpoint.npz"))))["step"] == STEPS
    gone(pair)


@as_root
def test_a_full_disk_on_a_device_is_named(pair: Path, small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(40_000))
    fleet_file(pair, {"desktop": {}, "tx2": {"environment": {"XDG_CACHE_HOME": str(small_disk)}}})
    command = run(pair, *training())
    assert command.popen.returncode == 1
    assert "tx2" in one_line(command) and "No space left" in one_line(command)
    gone(pair)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[str]:
    """A network namespace, reached from here at 10.213.77.2; its end of the link and its name are the fixture."""
    if shutil.which("ip") is None:
        pytest.skip("needs ip (iproute2)")
    name = f"pl{os.getpid() % 100000}"
    commands = (
        f"netns add {name}",
        f"link add {name} type veth peer name inside netns {name}",
        f"addr add 10.213.77.1/24 dev {name}",
        f"link set {name} up",
        f"-n {name} addr add 10.213.77.2/24 dev inside",
        f"-n {name} link set inside up",
        f"-n {name} link set lo up",
    )
    try:
        for command in commands:
            if subprocess.run(["ip", *command.split()], capture_output=True, check=False).returncode != 0:
                pytest.skip(f"`ip {command}` is not allowed here")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@as_root
def test_a_worker_whose_link_is_cut_is_dropped_and_comes_back_with_the_link(pair: Path, network: str) -> None:
    inside = {"prefix": f"ip netns exec {network}", "data_address": "10.213.77.2"}
    fleet_file(pair, {"desktop": {"data_address": "10.213.77.1"}, "tx2": inside})
    command = start(pair, "--evaluate-every", "1000", "--steps", str(4 * STEPS))
    command.says("joined tx2")
    subprocess.run(["ip", "link", "set", network, "down"], check=True)
    command.says("silent tx2", timeout_s=8)
    command.says("lost", timeout_s=8)
    subprocess.run(["ip", "link", "set", network, "up"], check=True)
    command.says("joined tx2", times=2)
    assert command.ended() == 0, command.errors
    (folder,) = run_folders(pair)
    assert saved_step(folder) == 4 * STEPS
    gone(pair)
