"""Findings judge what a device told of itself, and say what to do about it. Pure."""

import dataclasses
from typing import Any

import pytest

from planner.check import findings
from planner.check.findings import Finding
from planner.errors import RemoteError
from planner.fleet.device import Device, SshLogin
from profilers.records.device import Facts, HostMemory, Processor, SensorFacts

DEVICE = Device(name="tx2", ssh=SshLogin("tx2"))
FACTS = Facts(
    hostname="tx2",
    board=None,
    system="Ubuntu 22.04, Linux 5.15",
    machine="x86_64",
    python="3.10.12",
    processor=Processor(None, 4, 4.0),
    memory=HostMemory(8_000_000_000, available_bytes=4_000_000_000),
    disk_free_bytes=20_000_000_000,
    frameworks={},
    gpus=(),
    iperf3="3.16",
    sensors=(),
)


def judged(**changes: Any) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings.of_facts(DEVICE, FACTS._replace(**changes))}


@pytest.mark.parametrize(("system", "how"), [(FACTS.system, "sudo apt"), ("macOS 14.5, Darwin 23.5.0", "brew")])
def test_iperf3_is_installed_as_the_system_has_it(system: str, how: str) -> None:
    assert judged(iperf3=None, system=system)["iperf3"].remedy == f"install it there: {how} install iperf3"


@pytest.mark.parametrize(
    ("free_bytes", "status"),
    [(1_000_000_000, "ok"), (999_999_999, "warning"), (200_000_000, "warning"), (199_999_999, "failed")],
)
def test_disk_that_is_nearly_full(free_bytes: int, status: str) -> None:
    finding = judged(disk_free_bytes=free_bytes)["disk"]
    assert finding.status == status
    assert (finding.remedy is None) == (status == "ok")


@pytest.mark.parametrize(("offset_s", "status"), [(0.0, "ok"), (-5.0, "ok"), (5.1, "warning"), (-9.0, "warning")])
def test_clock_offset_in_either_direction(offset_s: float, status: str) -> None:
    assert findings.of_clock(DEVICE, offset_s).status == status


NVML = SensorFacts("nvml:0", "counter", "gpu", 0.1, 1.5)
SILENT = SensorFacts("rapl:0", "unavailable", "", None, None, "permission denied")
PLUG = SensorFacts("meter:shelly:plug", "unavailable", "", None, None, "plug does not answer")


def test_no_power_sensor_says_why() -> None:
    finding = findings.of_power(DEVICE, (SILENT,))
    assert finding.status == "warning" and "rapl:0: permission denied" in finding.detail
    assert finding.remedy == "set idle_watts and max_watts in the fleet file"


def test_power_sensors_are_told_with_what_they_cover_and_how_they_behave() -> None:
    slow = SensorFacts("battery", "sensor", "board", None, None)
    finding = findings.of_power(DEVICE, (NVML, slow, SILENT))
    assert finding.status == "ok"
    assert finding.detail == "nvml:0 (gpu, counter, new every 0.1 s, noise 1.5 W); battery (board, sensor)"


def test_a_meter_that_the_operator_named_and_that_is_silent_is_a_warning() -> None:
    finding = findings.of_power(DEVICE, (NVML, PLUG))
    assert (finding.status, finding.detail) == ("warning", "meter:shelly:plug: plug does not answer")


@pytest.mark.parametrize(
    ("python", "jetpack"), [("3.6.9", "JetPack 4"), ("3.8.10", "JetPack 5"), ("3.10.12", "JetPack 6")]
)
def test_a_jetson_needs_the_wheel_of_its_jetpack(python: str, jetpack: str) -> None:
    facts = FACTS._replace(board="NVIDIA Jetson TX2", python=python)
    assert f"NVIDIA's torch wheel for {jetpack} " in findings.install_remedy(DEVICE, facts, ["torch"])


def test_a_jetson_in_a_container_is_known_by_its_kernel() -> None:
    facts = FACTS._replace(system="Ubuntu 18.04, Linux 4.9.253-tegra", python="3.6.9")
    assert findings.install_remedy(DEVICE, facts, ["torch", "tensorflow"]) == (
        "install NVIDIA's torch or tensorflow wheel for JetPack 4 and Python 3.6 "
        "(the last: torch 1.10, tensorflow 2.7), not pip's own"
    )


ON_CPU = {"version": "2.4", "accelerator": "cpu", "device": "x", "collectives": ""}
ABSENT = {"error": "it is not installed"}


def test_a_gpu_left_unused_is_a_warning() -> None:
    facts = FACTS._replace(gpus=("RTX 3060",))
    assert findings.of_frameworks(DEVICE, facts, {"torch": ON_CPU}).status == "warning"
    assert findings.of_frameworks(DEVICE, FACTS, {"torch": ON_CPU}).status == "ok"
    asked = dataclasses.replace(DEVICE, computes_on="cpu")
    assert findings.of_frameworks(asked, facts, {"torch": ON_CPU}).status == "ok"
    both = findings.of_frameworks(DEVICE, facts, {"torch": ON_CPU, "tensorflow": {**ON_CPU, "accelerator": "cuda"}})
    assert (both.status, both.remedy) == ("warning", "to use RTX 3060, profile with --framework tensorflow")


def test_what_torch_distributed_has_there_is_told() -> None:
    torch = {**ON_CPU, "collectives": "gloo, fully_shard"}
    assert findings.of_frameworks(DEVICE, FACTS, {"torch": torch}).detail == "torch 2.4 on cpu with gloo, fully_shard"


def test_a_framework_that_was_not_started_is_told_as_such() -> None:
    facts = FACTS._replace(frameworks={"torch": {"version": "2.4"}, "tensorflow": {"version": "2.6.2"}})
    finding = findings.of_frameworks(DEVICE, facts, {"torch": ON_CPU})
    assert (finding.status, finding.detail) == ("ok", "torch 2.4 on cpu, tensorflow 2.6.2 installed, not started")


@pytest.mark.parametrize(
    ("gpus", "answer", "enough"),
    [
        ((), ON_CPU, True),
        (("RTX 3060",), {**ON_CPU, "accelerator": "cuda"}, True),
        (("RTX 3060",), ON_CPU, False),
        ((), ABSENT, False),
    ],
)
def test_one_framework_is_enough_where_it_leaves_no_gpu_unused(
    gpus: tuple[str, ...], answer: dict[str, str], enough: bool
) -> None:
    assert findings.suffices(FACTS._replace(gpus=gpus), answer) is enough


def test_a_device_with_no_framework_hears_how_to_install_either() -> None:
    facts = FACTS._replace(frameworks={"torch": ABSENT, "tensorflow": ABSENT})
    none = findings.of_frameworks(DEVICE, facts, {"torch": ABSENT, "tensorflow": ABSENT})
    assert none.status == "failed"
    assert none.remedy == "install it there: python3 -m pip install torch, or python3 -m pip install tensorflow"


def test_what_the_fleet_file_asks_for_and_no_framework_has_is_a_mistake_there() -> None:
    answers = {"torch": {"error": 'torch has no mps here; set `device` in the fleet file to "cpu", or remove it'}}
    finding = findings.of_frameworks(DEVICE, FACTS, answers)
    assert (finding.status, finding.detail) == ("failed", "torch has no mps here")
    assert finding.remedy == "correct or remove `device` in the fleet file"


def test_a_framework_that_is_there_and_does_not_start_is_a_warning_beside_one_that_does() -> None:
    facts = FACTS._replace(frameworks={"torch": {"version": "2.4"}, "tensorflow": {"version": "2.6.2"}})
    answers = {"torch": {"error": "libcudart.so.10.2: cannot open it"}, "tensorflow": ON_CPU}
    finding = findings.of_frameworks(DEVICE, facts, answers)
    assert (finding.status, finding.detail) == ("warning", "tensorflow 2.4 on cpu; libcudart.so.10.2: cannot open it")
    assert finding.remedy == "mend torch, or profile with --framework tensorflow"


def test_reached_by_some_is_a_warning_and_by_none_a_failure() -> None:
    assert findings.of_reach("a", ["b", "c"], {}).status == "ok"
    assert findings.of_reach("a", ["b", "c"], {"c": "no answer"}).status == "warning"
    both = findings.of_reach("a", ["b", "c"], {"b": "no answer", "c": "refused"})
    assert both.status == "failed" and both.detail == "not reached from b: no answer; from c: refused"


def test_an_error_without_a_remedy_gets_one() -> None:
    finding = findings.of_error(DEVICE, "reachable", RemoteError("tx2: gone"))
    assert finding.detail == "gone" and "planner check" in str(finding.remedy)
