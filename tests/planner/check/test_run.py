"""In a fleet where everything is wrong, `check` tells each device its own trouble only."""

import socket
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from typing import Any

import numpy
import paramiko
import pytest

from planner.agents import client
from planner.check.findings import CHECKS, CheckReport, Finding
from planner.check.run import DeviceCheck, check
from planner.fleet.device import Device, Fleet, Interpreter, SshLogin
from planner.remote.base import Remote
from planner.views.check import render
from profilers.records.device import Facts
from tests.planner.screens import shown
from tests.quick import NUMPY_ALONE
from tests.sshserver import Faults, new_key, ssh_server, write_key

ON_CPU = {"version": "2.4", "accelerator": "cpu", "device": "x", "collectives": ""}
ABSENT = {"error": "it is not installed"}
#: Most of these tests read one report on one fleet.
pytestmark = pytest.mark.xdist_group("check")


def fleet(*devices: Device) -> Fleet:
    return Fleet(devices, Path("fleet.toml"))


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def bare_python(folder: Path, with_numpy: bool) -> str:
    """An interpreter that knows no framework."""
    venv.create(folder, with_pip=False, symlinks=True)
    if with_numpy:
        (site,) = folder.glob("lib/python*/site-packages")
        for part in Path(numpy.__file__).parent.parent.glob("numpy*"):
            (site / part.name).symlink_to(part)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def checked(client_key: paramiko.PKey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckReport]:
    """The report on the whole fleet, in one go."""
    if which("ssh") is None:
        pytest.skip("OpenSSH's ssh not installed")
    folder = tmp_path_factory.mktemp("fleet")
    key, known = write_key(client_key, folder / "id_test"), folder / "known_hosts"
    config = folder / "ssh_config"
    config.write_text(f"Host *\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile none\n")
    cache = {"XDG_CACHE_HOME": str(folder)}
    numpy_alone = {**cache, **NUMPY_ALONE}
    (folder / "broken").mkdir()
    (folder / "broken" / "torch.py").write_text("raise ImportError('libcudart.so.10.2: cannot open it')")
    with ExitStack() as stack:
        servers = {
            "remote": stack.enter_context(ssh_server(client_key)),
            "stranger": stack.enter_context(ssh_server(client_key)),
            "changed": stack.enter_context(ssh_server(client_key)),
            "refused": stack.enter_context(ssh_server(client_key, Faults(refuse_login=True))),
            "cut": stack.enter_context(ssh_server(client_key, Faults(drop_after_bytes=400))),
        }
        lines = [servers[name].known_line() for name in ("remote", "refused", "cut")]
        known.write_text("".join([*lines, servers["changed"].known_line(new_key())]))
        with socket.create_server(("127.0.0.1", 0)) as free:
            closed_port = free.getsockname()[1]

        def over_ssh(name: str, port: int, environment: dict[str, str] = numpy_alone) -> Device:
            return Device(
                name=name, ssh=SshLogin("127.0.0.1", port=port, user="someone", key=key, ssh_config=config),
                interpreter=Interpreter(sys.executable, environment=environment),
            )  # fmt: skip

        def local(name: str, environment: dict[str, str] = numpy_alone, **changes: Any) -> Device:
            python = changes.pop("python", sys.executable)
            return Device(name=name, interpreter=Interpreter(python, environment=environment), **changes)

        yield check(
            fleet(
                over_ssh("off", closed_port),
                *(over_ssh(name, server.port) for name, server in servers.items()),
                local("here", cache, idle_watts=5.0, max_watts=15.0),
                local("nowhere", data_address="192.0.2.1"),
                local("unplugged", data_interface="none0"),
                local("plain", {**cache, "PATH": str(folder)}, python=bare_python(folder / "plain", True)),
                local("bare", cache, python=bare_python(folder / "bare", False)),
                local("broken", {**cache, "PYTHONPATH": str(folder / "broken")}),
                local("missing", python=str(folder / "no-python")),
                local("old", python=script(folder / "python2", "echo planner:old 2.7")),
            ),
            ["torch"],
        )


def found(report: CheckReport, device: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in report.findings if finding.device == device}


def on_screen(report: CheckReport) -> list[str]:
    return shown(render(report, verbose=True)).splitlines()


def assert_only_failed(report: CheckReport, device: str, check: str) -> Finding:
    """Of this device that check failed, all before it are ok, and it cannot take part."""
    of_device = found(report, device)
    assert [name for name in CHECKS if of_device[name].status == "failed"] == [check]
    assert {of_device[name].status for name in CHECKS[: CHECKS.index(check)]} <= {"ok", "warning"}
    assert not report.able[device]
    return of_device[check]


def test_every_device_has_one_finding_of_each_check_in_order(checked: CheckReport) -> None:
    for device in checked.able:
        assert tuple(f.check for f in checked.findings if f.device == device) == CHECKS


@pytest.mark.parametrize("device", ["remote", "here"])
def test_a_sound_device_can_take_part_whatever_is_wrong_with_others(checked: CheckReport, device: str) -> None:
    of_device = found(checked, device)
    assert checked.able[device]
    assert {finding.status for finding in of_device.values()} <= {"ok", "warning"}
    assert of_device["python"].detail == ".".join(map(str, sys.version_info[:3]))
    assert of_device["framework"].detail.startswith("torch ")
    assert abs(float(of_device["clock"].detail.removesuffix(" s"))) < 1


#: What each device is failed for, and parts of what is said of it: the detail, and the remedy.
FAILED = {
    "off": ("reachable", "nothing listens at 127.0.0.1:", "sshd"),
    "stranger": ("host key", "SHA256:", "planner trust stranger"),
    "changed": ("host key", "has changed", "planner trust changed"),
    "refused": ("login", "refuses the login", "ssh-copy-id -p"),
    "missing": ("python", "No such file", "`python`"),
    "old": ("python", "is Python 2.7", "3.6 or newer"),
    "bare": ("python", "No module named 'numpy'", "/bare/bin/python -m pip install numpy"),
    "plain": ("framework", "torch is not installed for this Python", "/plain/bin/python -m pip install torch"),
    "broken": ("framework", "libcudart.so.10.2: cannot open it", ""),
    "nowhere": ("data plane", "cannot listen on 192.0.2.1", "data_address"),
    "unplugged": ("data plane", '"none0" has no address that others reach', ""),
}


@pytest.mark.parametrize("device", FAILED)
def test_a_device_is_told_its_own_trouble_and_the_remedy(checked: CheckReport, device: str) -> None:
    failed, detail, remedy = FAILED[device]
    finding = assert_only_failed(checked, device, failed)
    assert detail in finding.detail and remedy in str(finding.remedy)


@pytest.mark.parametrize("device", ["off", "stranger", "refused"])
def test_what_cannot_be_asked_of_a_device_is_skipped(checked: CheckReport, device: str) -> None:
    rest = CHECKS[CHECKS.index(FAILED[device][0]) + 1 :]
    assert {found(checked, device)[name].status for name in rest} == {"skipped"}


def test_connection_lost_on_the_way_keeps_what_was_found_before(checked: CheckReport) -> None:
    of_device = found(checked, "cut")
    assert of_device["login"].status == of_device["python"].status == "ok"
    assert [finding.check for finding in of_device.values() if finding.status == "failed"] == ["gpu"]
    assert "connection was lost" in of_device["gpu"].detail
    assert of_device["framework"].status == "skipped"


def test_declared_watts_stand_in_for_a_sensor(checked: CheckReport) -> None:
    assert found(checked, "here")["power"].status == "ok"


def test_as_json(checked: CheckReport) -> None:
    data = checked.to_json()
    assert data["able"] == checked.able
    assert data["findings"][0] == checked.findings[0]._asdict()
    assert set(data["findings"][0]) == {"device", "check", "status", "detail", "remedy"}
    assert set(data["sensors"]) == set(checked.able)
    told = data["sensors"]["here"]
    assert told and set(told[0]) == {"name", "source", "covers", "period_s", "noise_w", "reason"}


def test_on_screen_each_failure_is_one_line_with_its_remedy(checked: CheckReport) -> None:
    lines = on_screen(checked)
    for finding in checked.findings:
        if finding.status in ("failed", "warning"):
            start = f"{'✗' if finding.status == 'failed' else '!'} {finding.device}: {finding.check}: "
            assert len([line for line in lines if line.startswith(start)]) == 1
    assert lines[0] == "2 of 14 devices can take part."


# -- one device, and what it is not asked ----------------------------------------------------------


def test_a_python_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "START_S", 0.3)
    report = check(
        fleet(Device(name="stuck", interpreter=Interpreter(script(tmp_path / "python", "cat > /dev/null")))), ()
    )
    assert_only_failed(report, "stuck", "python")


def test_alone_and_without_a_framework(tmp_path: Path) -> None:
    device = Device(name="here", interpreter=Interpreter(sys.executable, environment={"XDG_CACHE_HOME": str(tmp_path)}))
    stages: list[str] = []
    report = check(fleet(device), (), lambda name, what, share: stages.append(what))
    assert report.able == {"here": True}
    assert {found(report, "here")[name].status for name in ("framework", "data plane")} == {"skipped"}
    assert stages[0] == "reachable" and stages[-1] == "done"


def test_a_framework_that_ends_its_process_takes_no_other_check_along(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os\nos.write(2, b'compiled to use AVX\\n')\nos._exit(132)")
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    report = check(
        fleet(Device(name="here", interpreter=Interpreter(sys.executable, environment=environment))), ["torch"]
    )
    assert "compiled to use AVX" in assert_only_failed(report, "here", "framework").detail


@pytest.mark.parametrize(("torch_works", "started"), [(True, ["torch"]), (False, ["torch", "tensorflow"])])
def test_frameworks_are_started_until_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_works: bool, started: list[str]
) -> None:
    asked = []

    def start(exam: DeviceCheck, remote: Remote, facts: Facts, name: str) -> dict[str, str]:
        asked.append(name)
        return ABSENT if name == "torch" and not torch_works else ON_CPU

    monkeypatch.setattr(DeviceCheck, "_start_framework", start)
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    check(
        fleet(Device(name="here", interpreter=Interpreter(sys.executable, environment=environment))),
        ["torch", "tensorflow"],
    )
    assert asked == started


def test_the_folder_with_a_devices_data_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/one").write_text("1")
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    entries = {"here": str(tmp_path / "set"), "gone": str(tmp_path / "none"), "other": None}
    devices = [
        Device(name=name, interpreter=Interpreter(sys.executable, environment=cache), data=data)
        for name, data in entries.items()
    ]
    report = check(fleet(*devices), ())
    found = {each.device: each for each in report.findings if each.check == "data"}
    assert {name: each.status for name, each in found.items()} == {"here": "ok", "gone": "failed", "other": "skipped"}
    assert found["here"].detail == "1 file"
    assert found["gone"].detail == f"no folder {tmp_path}/none, which the fleet file names as data"
    assert found["gone"].remedy == "copy the set there, or correct `data` in the fleet file"
    assert "data" in shown(render(report, verbose=True))
