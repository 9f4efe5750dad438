"""A profiler and its failures: nothing that holds is measured twice. Real agents."""

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from planner.agents import addresses
from planner.errors import FleetError
from planner.fleet.file import load_fleet
from planner.profile import profiler as profile
from planner.profile.request import ProfileRequest
from tests.running import FASHION, Command, agents, fleet_file, gone, run, signal_all, tiny_model, until


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A folder with a model and a fleet of two devices, the second 30 times slower."""
    fleet_file(tmp_path, {"desktop": {}, "tx2": {"slowdown": 30}})
    tiny_model(tmp_path, 0.005)
    return tmp_path


def profiling(folder: Path, *arguments: str) -> tuple[str, ...]:
    options = ("--data", str(FASHION), "--batch-size", "2", "--framework", "torch")
    return ("profile", "--model", f"{folder}/tiny.py:tiny", *options, *arguments)


def device(folder: Path, name: str) -> dict[str, Any]:
    path = folder / "profile.json"
    found: dict[str, Any] = json.loads(path.read_text())["devices"][name] if path.exists() else {"steps": []}
    return found


def test_a_device_that_dies_loses_only_its_part_and_the_next_time_only_that_is_measured(pair: Path) -> None:
    command = Command(pair, *profiling(pair))
    command.says("tx2: ")
    until(lambda: device(pair, "desktop")["steps"], lambda: command.errors)
    signal_all(agents(pair, "tx2"), signal.SIGKILL)
    assert command.ended() == 0, command.errors
    measured = device(pair, "desktop")
    assert measured["error"] is None
    assert "tx2" in device(pair, "tx2")["error"] and device(pair, "tx2")["steps"] == []
    gone(pair)

    fleet_file(pair, {"desktop": {}, "tx2": {}})
    command = Command(pair, *profiling(pair))
    until(lambda: device(pair, "tx2")["steps"], lambda: command.errors)
    command.popen.send_signal(signal.SIGINT)
    assert command.ended() == 130
    assert command.errors.count("measured before") == 1
    assert [device(pair, "desktop")[part] for part in ("steps", "idle", "took_s")] == [
        measured[part] for part in ("steps", "idle", "took_s")
    ]
    assert device(pair, "tx2")["error"] is None and len(device(pair, "tx2")["steps"]) == 1
    assert len(measured["steps"][0]["repeats"]) >= 2 and len(device(pair, "tx2")["steps"][0]["repeats"]) == 1
    gone(pair)


def test_a_slow_device_is_timed_for_no_longer_than_the_planned_training_allows(pair: Path) -> None:
    tiny_model(pair, 0.04)
    fleet_file(pair, {"desktop": {}, "tx2": {"slowdown": 3}})
    run(pair, *profiling(pair, "--steps", "10"))
    (few,) = device(pair, "tx2")["steps"]
    assert len(few["gradient_s"]["warmup"]) == 10 and len(few["gradient_s"]["values"]) == 30 + 10  # in a second visit
    assert few["steps_planned"] == 10
    links = json.loads((pair / "profile.json").read_text())["links"]
    assert {link["repeats"] for link in links} == {2} and len(links) == 4


def test_a_device_that_lost_its_address_keeps_its_links(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interface went down between both probes: links and their dates stay as they were."""
    calls, first = [], {}

    def without_an_address(devices: Any, agents: Any) -> Any:
        found, failed = addresses.try_addresses(devices, agents)
        calls.append(found)
        if len(calls) == 2:
            first.update({(link.source, link.target): link for link in profiler.profile.links})
            failed["tx2"] = FleetError("tx2: none0 has no IPv4 address")
            del found["tx2"]
        return found, failed

    monkeypatch.setattr(profile, "try_addresses", without_an_address)
    messages: list[str] = []
    request = ProfileRequest((f"{pair}/tiny.py:tiny",), batch=2, framework="torch", steps_planned=10)
    profiler = profile.Profiler(
        load_fleet(pair / "fleet.toml"), request, pair / "profile.json", lambda who, what, share: messages.append(what)
    )
    made = profiler.run()
    links = {(link.source, link.target): link for link in made.links}
    assert {ends: link.repeats for ends, link in links.items()} == {
        ("desktop", "desktop"): 2, ("desktop", "tx2"): 1, ("tx2", "desktop"): 1, ("tx2", "tx2"): 1,
    }  # fmt: skip
    assert all(links[ends].measured_s == link.measured_s for ends, link in first.items())
    assert "tx2: probed once only: tx2: none0 has no IPv4 address" in messages
    assert made.devices["tx2"].error is None


#: A model for which one of the devices has no memory.
TOO_LARGE = """
import os
import tiny

def large():
    if os.environ["PLANNER_TEST_DEVICE"].endswith("/tx2"):
        raise MemoryError("no 574 MB left")
    return tiny.tiny()
"""


def test_a_model_that_fails_on_a_device_takes_nothing_else_from_it(pair: Path) -> None:
    fleet_file(pair, {name: {"environment": {"PYTHONPATH": str(pair)}} for name in ("desktop", "tx2")})
    (pair / "large.py").write_text(TOO_LARGE)
    large = f"{pair}/large.py:large"
    command = run(pair, "profile", "--model", large, *profiling(pair, "--steps", "10")[1:])
    assert command.popen.returncode == 0, command.errors
    found = device(pair, "tx2")
    assert found["error"] is None and [steps["model"] for steps in found["steps"]] == [f"{pair}/tiny.py:tiny"]
    assert "no 574 MB left" in found["failures"][large] and "no 574 MB left" in command.output
    assert len(device(pair, "desktop")["steps"]) == 2 and device(pair, "desktop")["failures"] == {}
    links = json.loads((pair / "profile.json").read_text())["links"]
    assert len(links) == 4

    (pair / "large.py").write_text("from tiny import tiny as large\n")
    command = run(pair, "profile", "--model", large, *profiling(pair, "--steps", "10", "--device", "tx2")[3:])
    assert command.popen.returncode == 0, command.errors
    assert device(pair, "tx2")["failures"] == {} and len(device(pair, "tx2")["steps"]) == 2


def test_a_device_without_an_address_takes_only_its_own_links_and_the_profile_says_why(pair: Path) -> None:
    elsewhere = {"tx2": {"data_interface": "none0"}, "tx1": {"data_address": "192.0.2.1"}}
    fleet_file(pair, {"desktop": {}, **elsewhere})
    command = run(pair, *profiling(pair, "--steps", "10", "--json"))
    assert command.popen.returncode == 0, command.errors
    profile = json.loads((pair / "profile.json").read_text())
    assert 'data_interface "none0" has no IPv4 address' in profile["devices"]["tx2"]["error"]
    assert {f"{link['source']} -> {link['target']}" for link in profile["links"]} == {
        "desktop -> desktop", "tx1 -> desktop"
    }  # fmt: skip
    assert set(profile["link_errors"]) == {"desktop -> tx1", "tx1 -> tx1"}
    assert json.loads(command.output)["link_errors"] == profile["link_errors"]

    fleet_file(pair, {"desktop": {}, "tx2": {"data_interface": "none0"}})
    run(pair, *profiling(pair, "--steps", "10", "--device", "desktop"))
    assert json.loads((pair / "profile.json").read_text())["link_errors"] == {}


def test_one_device_may_be_measured_and_what_is_known_of_others_stays(pair: Path) -> None:
    fleet_file(pair, {"desktop": {}, "tx2": {}})
    for name in ("desktop", "tx2"):
        command = run(pair, *profiling(pair, "--device", name))
        assert command.popen.returncode == 0, command.errors
    assert device(pair, "desktop")["steps"] and device(pair, "tx2")["steps"]
    links = json.loads((pair / "profile.json").read_text())["links"]
    assert {(link["source"], link["target"]) for link in links} == {("desktop", "desktop"), ("tx2", "tx2")}


def test_a_profile_that_is_truncated_is_named_and_may_be_made_again(pair: Path) -> None:
    (pair / "profile.json").write_text('{"schema": 1, "devices"')
    command = run(pair, *profiling(pair))
    assert command.popen.returncode == 1
    assert "profile.json" in command.last_line and "--fresh" in command.last_line


def test_a_profile_that_cannot_be_written_is_noticed_before_any_device_is_asked(pair: Path) -> None:
    command = run(pair, *profiling(pair, "--out", str(pair / "nowhere" / "profile.json")))
    assert command.popen.returncode == 1
    assert "nowhere/profile.json" in command.last_line
    assert "desktop" not in command.errors


def test_a_chosen_device_that_fails_is_an_error_though_others_were_measured_before(pair: Path) -> None:
    fleet_file(pair, {"desktop": {}, "tx2": {}})
    assert run(pair, *profiling(pair, "--device", "desktop")).popen.returncode == 0
    fleet_file(pair, {"desktop": {}, "tx2": {"python": "no-such-python"}})
    command = run(pair, *profiling(pair, "--device", "tx2"))
    assert command.popen.returncode == 1
    assert "no-such-python" in command.output
    assert device(pair, "desktop")["error"] is None


def test_an_unknown_model_is_named_with_the_nearest(pair: Path) -> None:
    command = run(pair, "profile", "--model", "ciphr")
    assert command.popen.returncode == 1
    assert "ciphr" in command.last_line and "cipher" in command.last_line


def test_a_model_file_with_a_mistake_is_named_with_its_line(pair: Path) -> None:
    (pair / "tiny.py").write_text("def tiny():\n    return undefined_name\n")
    command = run(pair, *profiling(pair, "--json"))
    assert command.popen.returncode == 1
    errors = [device["error"] for device in json.loads(command.output)["devices"].values()]
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
