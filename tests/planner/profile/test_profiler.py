"""A profiler and its failures: nothing that holds is measured twice. Real agents.

Their framework is in numpy, and probes are brief.
"""

import json
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from planner.console import OnProgress
from planner.fleet.file import load_fleet
from planner.profile import profiler as profile
from planner.profile import step_timing
from planner.profile.file import Profile
from planner.profile.request import ProfileRequest
from planner.views.profile import render
from tests.planner.screens import shown
from tests.quick import BRIEF, NUMPY_ALONE, numpy_model
from tests.running import Command, agents, call, fleet_file, gone, signal_all, until


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A folder with a model and a fleet of two devices."""
    new_fleet(tmp_path, desktop={}, tx2={})
    numpy_model(tmp_path, 0.005)
    return tmp_path


def new_fleet(folder: Path, **entries: dict[str, Any]) -> None:
    """Devices that compute in numpy, and find modules of the folder too."""
    path = {"PYTHONPATH": f"{NUMPY_ALONE['PYTHONPATH']}:{folder}"}
    fleet_file(folder, {name: {**entry, "environment": path} for name, entry in entries.items()})


def model_of(folder: Path) -> str:
    return f"{folder}/tiny.py:tiny"


def new_profiler(
    folder: Path, only: Sequence[str] = (), models: Sequence[str] = (), on_progress: OnProgress = lambda *_: None
) -> profile.Profiler:
    """A profiler of ``tiny`` or other models, with the fewest steps."""
    request = ProfileRequest(
        tuple(models) or (model_of(folder),), 2, framework="torch", steps_planned=10, idle_s=0.1, links=BRIEF
    )
    return profile.Profiler(load_fleet(folder / "fleet.toml"), request, folder / "profile.json", on_progress, only=only)


def profiled(folder: Path, *only: str) -> Profile:
    return new_profiler(folder, only).run()


def profiling(folder: Path, *arguments: str) -> tuple[str, ...]:
    options = ("--batch-size", "2", "--framework", "torch", "--steps", "10")
    return ("profile", "--model", model_of(folder), *options, *arguments)


def device(folder: Path, name: str) -> dict[str, Any]:
    path = folder / "profile.json"
    found: dict[str, Any] = json.loads(path.read_text())["devices"][name] if path.exists() else {"steps": []}
    return found


def test_devices_that_share_a_kernel_are_timed_alone_and_once_together(pair: Path) -> None:
    made = profiled(pair)
    found = [device.steps[0].contention for device in made.devices.values()]
    assert [each.names for each in found if each] == [("desktop", "tx2")] * 2
    assert all(each.factor > 0 for each in found if each)
    assert [device.steps[0].contention for device in profiled(pair).devices.values()] == found


def test_what_the_budget_leaves_out_is_told_in_one_line_and_measured_the_next_time(pair: Path) -> None:
    called = call(pair, *profiling(pair, "--budget", "0s"))
    assert called.code == 1
    assert called.err.count("is spent; run `planner profile` again to measure the rest: ") == 1
    assert f"{model_of(pair)} on desktop" in called.err
    assert [device(pair, name)["steps"] for name in ("desktop", "tx2")] == [[], []]
    assert all(each.steps and not each.failures for each in profiled(pair).devices.values())


@pytest.mark.chaos
def test_a_device_that_dies_loses_only_its_part_and_the_next_time_only_that_is_measured(pair: Path) -> None:
    def kill_tx2(who: str, what: str, share: float | None) -> None:
        if who == "tx2" and "step" in what:
            signal_all(agents(pair, "tx2"), signal.SIGKILL)

    new_profiler(pair, on_progress=kill_tx2).run()
    measured = device(pair, "desktop")
    assert measured["error"] is None
    assert "tx2" in device(pair, "tx2")["error"] and device(pair, "tx2")["steps"] == []
    gone(pair)

    command = Command(pair, *profiling(pair))
    until(lambda: device(pair, "tx2")["steps"], lambda: command.errors)
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    assert [device(pair, "desktop")[part] for part in ("steps", "idle", "took_s")] == [
        measured[part] for part in ("steps", "idle", "took_s")
    ]
    assert device(pair, "tx2")["error"] is None and len(device(pair, "tx2")["steps"]) == 1
    gone(pair)


#: A model for which one of the devices has no memory.
TOO_LARGE = """
import os
import tiny

def large():
    if os.environ["PLANNER_TEST_DEVICE"].endswith("/tx2"):
        raise MemoryError("no 574 MB left")
    return tiny.tiny()
"""


@pytest.mark.e2e
def test_a_model_that_fails_on_a_device_takes_nothing_else_from_it(pair: Path) -> None:
    (pair / "large.py").write_text(TOO_LARGE)
    large = f"{pair}/large.py:large"
    made = new_profiler(pair, models=(large, model_of(pair))).run()
    found = made.devices["tx2"]
    assert found.error is None and [steps.model for steps in found.steps] == [model_of(pair)]
    assert "no 574 MB left" in found.failures[large] and "no 574 MB left" in shown(render(made, pair))
    assert len(made.devices["desktop"].steps) == 2 and made.devices["desktop"].failures == {}
    assert len(made.links) == 2

    (pair / "large.py").write_text("from tiny import tiny as large\n")
    found = new_profiler(pair, ("tx2",), (large,)).run().devices["tx2"]
    assert found.failures == {} and len(found.steps) == 2


#: A model whose fifth step hangs on one of the devices.
HANGING = """
import os, time
import tiny

class Hanging(type(tiny.tiny()[0])):
    steps = 0

    def gradient(self, *args, **options):
        self.steps += 1
        if self.steps == 5 and os.environ["PLANNER_TEST_DEVICE"].endswith("/tx2"):
            time.sleep(3600.0)
        return super().gradient(*args, **options)

def hanging():
    return Hanging(input_shape=(28, 28, 1), classes=10), (28, 28, 1)
"""


@pytest.mark.chaos
def test_a_step_that_hangs_costs_its_device_and_no_other(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_timing, "SILENCE_S", 60.0)
    (pair / "hanging.py").write_text(HANGING)
    made = new_profiler(pair, models=(f"{pair}/hanging.py:hanging",)).run()
    assert "no answer to `time steps` within 60 s" in str(made.devices["tx2"].error)
    assert made.devices["desktop"].error is None and len(made.devices["desktop"].steps) == 1
    gone(pair)


@pytest.mark.e2e
def test_a_device_without_an_address_takes_only_its_own_links_and_the_profile_says_why(pair: Path) -> None:
    new_fleet(pair, desktop={}, tx2={"data_interface": "none0"}, tx1={"data_address": "192.0.2.1"})
    made = profiled(pair)
    assert 'data_interface "none0" has no address that others reach' in str(made.devices["tx2"].error)
    assert {(link.source, link.target) for link in made.links} == {("tx1", "desktop")}
    assert set(made.link_errors) == {"desktop -> tx1"}

    new_fleet(pair, desktop={}, tx2={"data_interface": "none0"})
    assert profiled(pair, "desktop").link_errors == {}


def test_one_device_may_be_measured_and_what_is_known_of_others_stays(pair: Path) -> None:
    for name in ("desktop", "tx2"):
        made = profiled(pair, name)
    assert made.devices["desktop"].steps and made.devices["tx2"].steps
    assert made.links == ()  # which need both


def test_a_profile_that_is_truncated_is_named_and_may_be_made_again(pair: Path) -> None:
    (pair / "profile.json").write_text('{"schema": 1, "devices"')
    called = call(pair, *profiling(pair))
    assert called.code == 1
    assert "profile.json" in called.last_line and "--fresh" in called.last_line


def test_a_profile_that_cannot_be_written_is_noticed_before_any_device_is_asked(pair: Path) -> None:
    called = call(pair, *profiling(pair, "--out", str(pair / "nowhere" / "profile.json")))
    assert called.code == 1
    assert "nowhere/profile.json" in called.last_line
    assert "desktop" not in called.err


def test_a_chosen_device_that_fails_is_an_error_though_others_were_measured_before(pair: Path) -> None:
    profiled(pair, "desktop")
    new_fleet(pair, desktop={}, tx2={"python": "no-such-python"})
    called = call(pair, *profiling(pair, "--device", "tx2"))
    assert called.code == 1
    assert "no-such-python" in called.out
    assert device(pair, "desktop")["error"] is None


def test_a_model_file_with_a_mistake_is_named_with_its_line(pair: Path) -> None:
    (pair / "tiny.py").write_text("def tiny():\n    return undefined_name\n")
    errors = [str(device.error) for device in profiled(pair).devices.values()]
    assert all("NameError" in error and ".py:2" in error for error in errors)


def test_ctrl_c_does_not_wait_for_a_device_that_never_answers(pair: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with (pair / "fleet.toml").open("a") as fleet:
            fleet.write(f'[devices.tx1]\naddress = "someone@127.0.0.1:{silent.getsockname()[1]}"\n')
        command = Command(pair, *profiling(pair))
        until(lambda: len(agents(pair)) == 2, lambda: command.errors)
        command.popen.send_signal(signal.SIGINT)
        assert command.ended() == 130
        assert "tx1: failed" not in command.errors
    gone(pair)
