"""profile.json: what its records say of failures and time."""

import copy
import functools
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from planner.errors import PlannerError, RecordError
from planner.json_records import save
from planner.plan.file import load_plan
from planner.plan.recommend import make_plan, recommend
from planner.profile.file import DeviceProfile, kernels_of, load_profile, timing_of
from profilers.records.json_values import json_value
from profilers.records.readings import PowerReading
from tests.mutations import MUTATIONS, damaged, mutated, written
from tests.planner import profiles
from tests.planner.requests import asked


def device(host: str | None = None, **took_s: float) -> DeviceProfile:
    declared: dict[str, Any] = {} if host is None else {"host": host, "port": None}
    return profiles.device(**declared)._replace(took_s=took_s)


def test_a_device_failed_where_it_can_be_used_for_none_of_the_models() -> None:
    failed_once = profiles.device()._replace(failures={"vgg19": "out of memory"})
    assert failed_once.failed(["vgg19"])
    assert not failed_once.failed(["vgg19", "net"])
    assert profiles.device()._replace(error="lost").failed(["net"])


@pytest.mark.parametrize(
    ("cpu_s", "slowdown", "cores"),
    [(0.1, 1.0, 4.0), (0.03, 1.0, 0.3), (0.05, 2.0, 4.0), (0.0, 1.0, 4.0)],
    ids=["all of a core", "less of it", "all of it between pauses", "unknown"],
)
def test_a_device_whose_steps_get_less_than_a_core_has_a_quota(cpu_s: float, slowdown: float, cores: float) -> None:
    step = profiles.step(0.1, accelerator="cpu", cpu_s_per_step=cpu_s, slowdown=slowdown)
    assert profiles.device(step, cores=4.0).cores == pytest.approx(cores)


def test_a_link_within_a_machine_is_that_of_all_devices_there() -> None:
    devices = {"a": device("pc"), "b": device("tx2"), "c": device("pc"), "d": device("pc")}
    made = profiles.profile(devices)._replace(links=()).with_link(profiles.link("a", "c"), 7.0)
    ends = {(link.source, link.target) for link in made.links}
    assert ends == {(one, other) for one in "acd" for other in "acd" if one != other}
    assert {link.measured_s for link in made.links} == {7.0}
    apart = made.with_link(profiles.link("a", "b"), 8.0)
    assert {(link.source, link.target) for link in apart.links} == {*ends, ("a", "b")}


def test_devices_of_one_machine_take_turns_and_machines_run_in_parallel() -> None:
    devices = {"a": device("pc", idle=2.0, net=30.0), "b": device("pc", net=10.0), "c": device("tx2", net=40.0)}
    assert profiles.profile(devices).profiling_s() == 42.0 + 5.0


def test_a_model_is_timed_in_every_framework() -> None:
    took_s = {timing_of("net", "torch"): 3.0, timing_of("net", "tensorflow"): 4.0, "idle": 2.0}
    assert device()._replace(took_s=took_s).timing_s("net") == 7.0


WHOLE = json_value(profiles.fleet(0.1, 0.2, 0.3))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("cpu_s_per_step", -1, "devices.a.steps[0].cpu_s_per_step: expected a number from 0 on, found -1"),
        ("costs.build_s", -1, "devices.a.steps[0].costs.build_s: expected a number from 0 on, found -1"),
        ("batch", 0, "devices.a.steps[0].batch: expected a whole number from 1 on, found 0"),
        ("setup.slowdown", 10**400, "devices.a.steps[0].setup.slowdown: expected a number"),
    ],
)
def test_a_number_that_cannot_be_is_refused_by_its_key(tmp_path: Path, key: str, value: int, told: str) -> None:
    changed = json.loads(json.dumps(WHOLE))
    *parts, name = key.split(".")
    functools.reduce(dict.__getitem__, parts, changed["devices"]["a"]["steps"][0])[name] = value
    (tmp_path / "profile.json").write_text(json.dumps(changed))
    with pytest.raises(RecordError, match="profile.json: ") as refused:
        load_profile(tmp_path / "profile.json")
    assert told in str(refused.value) and str(refused.value).endswith("; run `planner profile --fresh`")


@pytest.mark.parametrize("declared", [{"idle_watts": "5"}, {"rate_bytes_per_s": -1}, {"port": 1e6}, {"max_watts": {}}])
def test_what_a_device_declares_is_checked_too(tmp_path: Path, declared: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(WHOLE))
    changed["devices"]["a"]["device"].update(declared)
    (tmp_path / "profile.json").write_text(json.dumps(changed))
    with pytest.raises(RecordError, match=rf"devices\.a\.device\.{next(iter(declared))}: expected"):
        load_profile(tmp_path / "profile.json")


@settings(MUTATIONS, max_examples=50)  # each makes a plan
@given(mutated(WHOLE))
def test_a_damaged_profile_is_refused_or_gives_a_plan(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated-profile.json"
    path.write_text(written(value))
    with suppress(PlannerError):
        with np.errstate(all="ignore"):
            made = make_plan(recommend(load_profile(path), asked({"time": 1.0}, steps=1000)), "fleet.toml")
        save(made, path.with_suffix(".plan"))
        assert load_plan(path.with_suffix(".plan")) == made


@MUTATIONS
@given(damaged(json.dumps(WHOLE).encode()))
def test_a_profile_with_damaged_bytes_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged-profile.json"
    path.write_bytes(content)
    with suppress(RecordError):
        load_profile(path)


def _first_step(value: Any) -> Any:
    return next(iter(value["devices"].values()))["steps"][0]


def sensed(source: str, covers: str) -> Any:
    return json_value(PowerReading("x", source, covers, 5.0, 0.1, 10))


def _facts(value: Any) -> Any:
    return next(iter(value["devices"].values()))["facts"]


@pytest.mark.parametrize(
    ("where", "change", "reason"),
    [
        (lambda value: next(iter(value["devices"].values()))["device"], {"idle_watts": 9.0, "max_watts": 1.0},
         "max_watts: 1 W is below idle_watts, 9 W"),
        (_first_step, {"data_s": 1e3}, "data_s: 1000 s are longer than any gradient"),
        (lambda value: _first_step(value)["setup"], {"requested_batch": 1}, "requested_batch: 1 is below the batch"),
        (lambda value: _first_step(value)["size"], {"layers": [1, 2], "parameters": 4}, "layers: 3 elements of 4 para"),
        (_first_step, {"memory": {"batches": [{"batch": 8, "host_bytes": 1}], "too_large": 8}}, "too_large: 8 is not"),
        (_first_step, {"memory": {"batches": [], "too_large": 1}}, "too_large: 1 is not above 32, which was timed"),
        (_first_step, {"contention": {"names": [], "factor": 2.0, "error": 0.0}}, "a factor of 2 among 0 devices"),
        (_first_step, {"contention": {"names": ["a", "b"], "factor": 0, "error": 0.0}}, "a factor of 0 among 2"),
        (lambda value: _facts(value)["memory"], {"available_bytes": 2**34}, "available_bytes: 17179869184 are more"),
        (lambda value: _facts(value)["processor"], {"usable_cores": 64}, "usable_cores: 64 of 4 online"),
        (lambda value: _first_step(value)["window"], {"power": [sensed("guess", "gpu")]}, "has the source 'guess'"),
        (lambda value: _first_step(value)["window"], {"power": [sensed("sensor", "house")]}, "and covers 'house'"),
    ],
)  # fmt: skip
def test_figures_that_contradict_each_other_are_refused(
    tmp_path: Path, where: Any, change: dict[str, Any], reason: str
) -> None:
    value = copy.deepcopy(WHOLE)
    where(value).update(change)
    (tmp_path / "profile.json").write_text(json.dumps(value))
    with pytest.raises(RecordError, match=reason):
        load_profile(tmp_path / "profile.json")


def test_devices_of_one_kernel_share_a_machine() -> None:
    devices = {name: profiles.device() for name in "abcd"}
    for name, boot_id in {"a": "one", "b": "two", "c": "one", "d": None}.items():
        facts = devices[name].facts
        assert facts is not None
        devices[name] = devices[name]._replace(facts=facts._replace(boot_id=boot_id))
    assert kernels_of(devices) == {"a": ("a", "c"), "b": ("b",), "d": ("d",)}
