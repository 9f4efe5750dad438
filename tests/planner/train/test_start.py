"""Runs survive or name faults: real processes on local devices are ended, stopped and starved."""

import _thread
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from backends.training import checkpoint
from planner.fleet.file import load_fleet
from planner.paths import RunFolder
from planner.plan.file import load_plan
from planner.train.orders import Options
from planner.train.start import TrainingRun
from tests.planner.pairs import (
    STEPS,
    has_checkpoint,
    hold,
    left_files,
    new_pair,
    new_plan,
    one_line,
    pair_fleet,
    release,
    run_folders,
    saved_step,
    start,
    training,
)
from tests.planner.plans import replan
from tests.running import HANG_S, Command, agents, gone, run, signal_all, until
from tests.tensorboards import scalars

pytestmark = pytest.mark.chaos
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return new_pair(tmp_path)


def test_a_lost_server_ends_the_run_with_its_checkpoint_and_another_cluster_goes_on(pair: Path) -> None:
    hold(pair)
    command = start(pair)
    command.says("desktop joined")
    until(lambda: has_checkpoint(pair), lambda: command.errors)
    signal_all(agents(pair, "desktop")[1:2], signal.SIGKILL)  # between the worker and what fetches checkpoints
    assert command.ended() == 1
    (first,) = run_folders(pair)
    message = one_line(command)
    assert str(first.relative_to(pair) / "checkpoint.npz") in message and "--resume" in message
    gone(pair)
    release(pair)

    before = saved_step(first)
    alone = new_plan(pair, "tx2")
    command = run(pair, *training(str(alone), "--resume", str(first), "--json"))
    assert command.popen.returncode == 0, command.errors
    result = json.loads(command.output)
    assert result["workers"]["tx2"]["steps"] == STEPS - before
    assert saved_step(run_folders(pair)[-1]) == STEPS


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_the_weights_and_a_dead_controller_leaves_nothing_behind(pair: Path, name: str) -> None:
    hold(pair)
    command = start(pair)
    command.says("tx2 joined")
    until(lambda: has_checkpoint(pair), lambda: command.errors)
    command.popen.send_signal(signal.Signals[name])
    assert command.ended() == 128 + signal.Signals[name]
    (first,) = run_folders(pair)
    assert f"--resume {first.relative_to(pair)}" in one_line(command)
    assert 0 < saved_step(first) < STEPS
    assert not left_files(pair)
    gone(pair)

    command = start(pair, "--resume", str(first))
    command.says("tx2 joined")
    command.popen.kill()
    gone(pair)


@pytest.mark.parametrize("strategy", ["parameter-server", "allreduce"])
def test_a_step_that_hangs_while_heartbeats_go_on_is_made_by_another(pair: Path, strategy: str) -> None:
    (pair / "hang").touch()
    replan(pair, strategy=strategy)
    command = start(pair)
    command.says("the agent ends: a step has taken")
    assert command.ended() == 0, command.errors
    assert saved_step(run_folders(pair)[0]) >= STEPS
    assert not left_files(pair)
    gone(pair)


def test_a_device_alone_whose_step_hangs_ends_the_run_with_its_checkpoint(pair: Path) -> None:
    alone = new_plan(pair, "tx2")
    (pair / "hang").touch()
    command = start(pair, str(alone), "--checkpoint-every", "2")
    assert command.ended() == 1
    message = one_line(command)
    assert "the agent ends: a step has taken" in message and "--resume" in message
    gone(pair)


def test_an_agent_that_is_stopped_ends_with_the_command_that_is_killed(pair: Path) -> None:
    hold(pair)
    command = start(pair)
    command.says("tx2 joined")
    signal_all(agents(pair, "tx2"), signal.SIGSTOP)
    command.popen.kill()
    gone(pair)


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss (iproute2)")
@pytest.mark.parametrize("strategy", ["parameter-server", "allreduce"])
def test_a_run_listens_at_the_data_address_only(pair: Path, strategy: str) -> None:
    hold(pair)
    replan(pair, strategy=strategy)
    command = start(pair)
    command.says("tx2 joined")
    listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [line.split() for line in listening if any(f"pid={pid}," in line for pid in agents(pair))]
    release(pair)
    assert command.ended() == 0, command.errors
    assert {fields[3].rpartition(":")[0] for fields in ours} == {"127.0.0.1"}


def run_together(folder: Path, *arguments: str) -> Command:
    """A whole run in which both devices have joined before either goes beyond its first step."""
    hold(folder, 1)
    command = start(folder, *arguments)
    for name in ("desktop", "tx2"):
        command.says(f"{name} joined")
    release(folder)
    assert command.ended() == 0, command.errors
    return command


def test_a_strategy_is_followed_and_what_its_workers_keep_survives_a_resumption(pair: Path) -> None:
    replan(pair, strategy="layer-drop:sync=synchronous")
    command = run_together(pair, "--steps", "60", "--json")
    workers = json.loads(command.output)["workers"]
    assert abs(workers["desktop"]["steps"] - workers["tx2"]["steps"]) <= 5  # one may have begun before the other
    (first,) = run_folders(pair)
    saved = checkpoint.read(str(first / "checkpoint.npz"))
    assert set(saved.member_states) == {"desktop", "tx2"}
    assert all(kept[0].shape == (saved.layout.parameters,) for kept in saved.member_states.values())
    command = run(pair, *training("--resume", str(first), "--steps", "90", "--json"))
    assert command.popen.returncode == 0, command.errors
    assert saved_step(run_folders(pair)[-1]) == 90


def test_a_server_deals_out_batches_and_goes_on_with_them(pair: Path) -> None:
    replan(pair, strategy="parameter-server:batching=dynamic,aggregation=weighted,optimizer=lars")
    run_together(pair, "--steps", "60", "--json")
    (first,) = run_folders(pair)
    saved = checkpoint.read(str(first / "checkpoint.npz"))
    assert set(saved.member_states) == {"/global batch", "/timed desktop", "/timed tx2"}
    command = run(pair, *training("--resume", str(first), "--steps", "70", "--json"))
    assert command.popen.returncode == 0, command.errors
    again = checkpoint.read(str(run_folders(pair)[-1] / "checkpoint.npz"))
    assert again.member_states["/global batch"][0][0] >= saved.member_states["/global batch"][0][0] > 0


def test_the_figures_of_a_run_are_written_for_tensorboard_and_prometheus(pair: Path) -> None:
    command = run_together(pair, "--steps", "40", "--tensorboard", "runs", "--metrics-file", "run.prom", "--json")
    result, (folder,) = json.loads(command.output), run_folders(pair)
    written = scalars(folder)
    evaluated = [(each["step"], pytest.approx(each["metrics"]["accuracy"])) for each in result["evaluations"]]
    assert written["test_metric/accuracy"] == evaluated
    assert written["steps_done"][-1] == (40, 40.0)
    assert {"worker_loss/tx2", "worker_exchange_share/desktop"} <= written.keys()
    families = text_string_to_metric_families((pair / "run.prom").read_text())
    newest = {(each.name, each.labels.get("worker")): each for family in families for each in family.samples}
    assert all(each.labels["run"] == folder.name for each in newest.values())
    assert newest["planner_run_active", None].value == 0 and newest["planner_steps_done", None].value == 40
    steps = {name: newest["planner_worker_steps", name].value for name in ("desktop", "tx2")}
    assert steps == {name: part["steps"] for name, part in result["workers"].items()}


@pytest.mark.parametrize("strategy", ["allreduce", "dlion:sync=bounded", "crossover", "diloco:local=steps:every=5"])
def test_peers_exchange_among_themselves_and_go_on_after_one_has_died(pair: Path, strategy: str) -> None:
    hold(pair)
    replan(pair, strategy=strategy)
    command = start(pair, "--json")
    command.says("coordinator: tx2 joined")
    until(lambda: has_checkpoint(pair), lambda: command.errors)
    signal_all(agents(pair, "tx2")[:1], signal.SIGKILL)
    command.says("tx2 was dropped")
    release(pair)
    assert command.ended() == 0, command.errors
    result = json.loads(command.output)
    assert result["steps_made"] >= 200
    assert result["strategy"] == strategy
    (first,) = run_folders(pair)
    assert saved_step(first) == 200
    command = run(pair, *training("--resume", str(first), "--steps", "240", "--json"))
    assert command.popen.returncode == 0, command.errors
    assert saved_step(run_folders(pair)[-1]) == 240
    gone(pair)


def test_ctrl_c_before_the_first_step_ends_at_once(pair: Path) -> None:
    command = start(pair)
    until(lambda: len(agents(pair)) >= 2, lambda: command.errors)
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    gone(pair)


def test_ctrl_c_that_another_thread_took_is_seen_while_the_servers_agent_starts(
    pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None
    plan, fleet = load_plan(pair / "plan.json"), load_fleet(pair / "fleet.toml")
    run = TrainingRun(plan, fleet, nothing, Options(""), RunFolder(pair), lambda *_: None)
    released = threading.Event()
    ended: list[str] = []

    def start_agent(name: str) -> None:
        released.wait(HANG_S)
        ended.append(name)

    monkeypatch.setattr(run._pool, "another", start_agent)
    threading.Timer(0.2, _thread.interrupt_main).start()  # as Ctrl-C, but nothing that waits is woken
    with pytest.raises(KeyboardInterrupt):
        run._start(None, nothing)
    assert not ended  # the wait for the agent was cut short
    released.set()


def test_a_device_without_the_framework_is_named(pair: Path) -> None:
    hidden = pair / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError(\"No module named 'torch'\")\n")
    pair_fleet(pair, tx2={"environment": {"PYTHONPATH": str(hidden)}})
    command = run(pair, *training())
    assert command.popen.returncode == 1
    assert "tx2" in one_line(command) and "torch" in one_line(command)
    assert not left_files(pair)
    gone(pair)


def test_a_run_that_has_ended_goes_on_with_more_steps_or_with_what_it_lacks_and_not_otherwise(pair: Path) -> None:
    new_plan(pair, "tx2", steps=20)
    assert run(pair, *training()).popen.returncode == 0
    (first,) = run_folders(pair)
    resumed = training("--resume", str(first), "--json")
    command = run(pair, *resumed)
    assert command.popen.returncode == 1 and "--steps" in one_line(command)

    command = run(pair, *resumed, "--steps", "30")
    assert command.popen.returncode == 0, command.errors
    assert saved_step(run_folders(pair)[-1]) == 30

    path = first / "checkpoint.npz"
    saved = checkpoint.read(str(path))
    saved.meta["evaluations"].clear()  # as of a run that was stopped before its last evaluation
    checkpoint.write(str(path), saved)
    command = run(pair, *resumed)
    assert command.popen.returncode == 0, command.errors
    assert [each["step"] for each in json.loads(command.output)["evaluations"]] == [20]
    assert not left_files(pair)
    command = run(pair, *training("--resume", str(run_folders(pair)[-1])))
    assert command.popen.returncode == 1 and "--steps" in one_line(command)

    path.write_bytes(path.read_bytes()[:3000])
    command = run(pair, *resumed, "--steps", "40")
    assert command.popen.returncode == 1
    assert str(path) in one_line(command)


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
    hold(pair)
    command = start(pair, "--run-dir", str(small_disk / "runs"))
    until(lambda: any(small_disk.glob("runs/*/checkpoint.npz")), lambda: command.errors)
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(bytes(4096))
    release(pair)
    (folder,) = (small_disk / "runs").iterdir()
    kept = saved_step(folder)
    assert command.ended() == 1
    assert "No space left" in command.last_line and str(folder) in command.last_line
    assert saved_step(folder) >= kept > 0
    assert f"step {STEPS}: loss" in command.errors  # the run itself went on to its end
    assert checkpoint.peek(next(map(str, pair.glob("cache-desktop/planner/run-*-checkpoint.npz"))))["step"] == STEPS
    gone(pair)


@as_root
@pytest.mark.parametrize("names", [("desktop", "tx2"), ("desktop",)])
def test_a_disk_of_the_host_that_fills_up_costs_no_checkpoint(
    pair: Path, small_disk: Path, names: tuple[str, ...]
) -> None:
    new_plan(pair, *names)
    hold(pair)
    command = start(pair)
    until(lambda: (pair / "runs").exists() and has_checkpoint(pair), lambda: command.errors)
    (there,) = left_files(pair)
    (folder,) = run_folders(pair)
    before = saved_step(folder)
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(bytes(4096))
    subprocess.run(["mount", "--bind", str(small_disk), str(there.parent)], check=True)
    try:
        release(pair)
        command.says("No space left on device; it is kept in a spare place")
        assert command.ended() == 0, command.errors
    finally:
        subprocess.run(["umount", str(there.parent)], check=True)
    assert 0 < before < saved_step(folder) == STEPS
    gone(pair)


@as_root
def test_a_full_disk_on_a_device_is_named(pair: Path, small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(40_000))
    pair_fleet(pair, tx2={"environment": {"XDG_CACHE_HOME": str(small_disk)}})
    command = run(pair, *training())
    assert command.popen.returncode == 1
    assert "tx2" in one_line(command) and "No space left" in one_line(command)
    gone(pair)
