"""Workers that are ended, stopped, cut off or cannot work: real processes on local devices."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.planner.pairs import STEPS, has_checkpoint, new_pair, one_line, run_folders, saved_step, start, training
from tests.running import agents, fleet_file, gone, plan_file, run, signal_all, until

pytestmark = [pytest.mark.xdist_group("processes"), pytest.mark.timeout(150)]


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return new_pair(tmp_path)


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


def test_a_model_that_fails_is_not_tried_again_and_again(pair: Path) -> None:
    (pair / "tiny.py").write_text("def tiny():\n    return undefined_name\n")
    plan_file(pair / "plan.json", str(pair / "tiny.py:tiny"), ("desktop", "tx2"), STEPS)
    command = run(pair, *training(), timeout_s=30)
    assert command.popen.returncode == 1
    assert "NameError" in one_line(command) and ".py:2" in one_line(command)
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


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
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
