"""profile.json: what its records say of failures and time, and files of older versions."""

import json
from pathlib import Path
from typing import Any

from planner.profile.file import DeviceProfile, load_profile, machines_of, timing_of
from profilers.records import IncastProfile, encode
from tests.planner import profiles


def device(host: str | None = None, **took_s: float) -> DeviceProfile:
    declared: dict[str, Any] = {} if host is None else {"host": host, "port": None}
    return profiles.device(**declared)._replace(took_s=took_s)


def test_a_device_failed_where_it_can_be_used_for_none_of_the_models() -> None:
    failed_once = profiles.device()._replace(failures={"vgg19": "out of memory"})
    assert failed_once.failed(["vgg19"])
    assert not failed_once.failed(["vgg19", "net"])
    assert profiles.device()._replace(error="lost").failed(["net"])


def test_devices_of_one_address_are_one_machine_and_those_without_are_each_their_own() -> None:
    devices = {"a": device("pc"), "b": device("tx2"), "c": device("pc"), "d": device(), "e": device()}
    assert machines_of(devices) == {"a": ("a", "c"), "b": ("b",), "d": ("d",), "e": ("e",)}


def test_devices_of_one_machine_take_turns_and_machines_run_in_parallel() -> None:
    devices = {"a": device("pc", idle=2.0, net=30.0), "b": device("pc", net=10.0), "c": device("tx2", net=40.0)}
    assert profiles.profile(devices).profiling_s() == 42.0 + 5.0


def test_a_model_is_timed_in_every_framework_and_in_older_files_in_one() -> None:
    took_s = {timing_of("net", "torch"): 3.0, timing_of("net", "tensorflow"): 4.0, "idle": 2.0}
    assert device()._replace(took_s=took_s).timing_s("net") == 7.0
    assert device(net=5.0).timing_s("net") == 5.0


def test_keys_of_older_files_are_read(tmp_path: Path) -> None:
    incasts = (IncastProfile("a", "in", "iperf3", {"b": 1.0, "c": 2.0}),)
    devices = {name: profiles.device(profiles.step(repeats=(0.1, 0.2))) for name in "abc"}
    links = profiles.links("abc", send_stolen_cpu_s=1e-9, receive_stolen_cpu_s=2e-9, repeats=2)
    profile = profiles.profile(devices, incasts=incasts, links=links)
    older = encode(profile)
    older["fans"] = older.pop("incasts")
    for device in older["devices"].values():
        for step in device["steps"]:
            step.update(senders=step.pop("compressors"), visits=step.pop("repeats"))
    for link in older["links"]:
        link.update(visits=link.pop("repeats"), send_taken_s=link.pop("send_stolen_cpu_s"))
        link["receive_taken_s"] = link.pop("receive_stolen_cpu_s")
    (tmp_path / "profile.json").write_text(json.dumps(older))
    assert load_profile(tmp_path / "profile.json") == profile
