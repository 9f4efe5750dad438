"""Findings judge the facts that a device reports, and name remedies, without any I/O."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from backends.frameworks.device import REMEDY
from planner.errors import AgentError, HostKeyError, JobError, LoginError, PlannerError
from planner.fleet.device import Device
from planner.jobs.requirements import applicable, asks_for_vendors_build, is_vendors_build, pip_words, unmet
from planner.remote.known_hosts import UnknownHostKeyError
from planner.remote.quoting import command_line
from planner.units import bytes_text
from profilers.records.device import Facts, SensorFacts
from profilers.records.json_values import json_value
from profilers.sensors.base import METER_PREFIX

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"

#: All checks in order; a device that fails one of the first four skips those that follow.
CHECKS = (
    "reachable", "host key", "login", "python",
    "gpu", "disk", "memory", "iperf3", "power", "clock", "framework", "data plane",
)  # fmt: skip

#: The check of the folder with a device's data, where the fleet file names one.
DATA = "data"
#: The check of what a job requires, where one is named.
JOB = "job"

DISK_FAILED_BYTES = 200e6
DISK_WARNING_BYTES = 1e9
MEMORY_WARNING_BYTES = 500e6
CLOCK_WARNING_S = 5.0
JETPACKS = {"3.6": "JetPack 4", "3.8": "JetPack 5", "3.10": "JetPack 6", "3.12": "JetPack 7"}
#: The last wheels that NVIDIA built for JetPack versions that get no further ones.
LAST_WHEELS = {"JetPack 4": {"torch": "1.10", "tensorflow": "2.7"}}
#: How the names of packages begin that NVIDIA and AMD build for their boards, and that need such a
#: build of one another; and of those that come with JetPack.
BUILT_BY_VENDORS = (
    "torch", "tensorflow", "tensorrt", "tf-", "jax", "cupy", "onnxruntime", "nvidia-", "triton", "pytorch-triton",
    "xformers", "flash-attn", "bitsandbytes", "vllm", "pycuda", "paddlepaddle", "mxnet",
)  # fmt: skip
OF_JETPACK = ("opencv",)


class Finding(NamedTuple):
    """One check of one device; ``status`` is ok, warning, failed or skipped."""

    device: str
    check: str
    status: str
    detail: str
    remedy: str | None = None


class CheckReport(NamedTuple):
    """All findings by device and check, in the order of the fleet file and ``CHECKS``."""

    findings: tuple[Finding, ...]
    sensors: Mapping[str, tuple[SensorFacts, ...]] = {}

    @property
    def able(self) -> dict[str, bool]:
        """Whether each device can take part: none of its checks failed."""
        failed = {finding.device for finding in self.findings if finding.status == FAILED}
        return {finding.device: finding.device not in failed for finding in self.findings}

    def to_json(self) -> dict[str, Any]:
        """{"able": {device: bool}, "findings": [{"device", "check", "status", "detail", "remedy"}],
        "sensors": {device: [{"name", "source", "covers", "period_s", "noise_w", "reason"}]}}."""
        return {
            "able": self.able,
            "findings": [finding._asdict() for finding in self.findings],
            "sensors": json_value(self.sensors),
        }


def of_facts(device: Device, facts: Facts) -> Iterable[Finding]:
    """Findings that follow from a device's facts alone: GPU, disk, memory, iperf3."""
    name, free, available = device.name, facts.disk_free_bytes, facts.memory.available_bytes
    yield Finding(name, "gpu", OK, ", ".join(facts.gpus) or "none")
    yield Finding(name, "disk", *_disk(free))
    low = available < MEMORY_WARNING_BYTES
    memory = f"{bytes_text(available)} of {bytes_text(facts.memory.total_bytes)} available"
    remedy = "end other programs there, or training may be killed" if low else None
    yield Finding(name, "memory", WARNING if low else OK, memory, remedy)
    if facts.iperf3:
        yield Finding(name, "iperf3", OK, facts.iperf3)
    else:
        absent = "not found: links are measured in Python, and labelled so"
        install = "brew" if facts.system.startswith("macOS") else "sudo apt"
        yield Finding(name, "iperf3", WARNING, absent, f"install it there: {install} install iperf3")


def of_power(device: Device, sensors: Sequence[SensorFacts]) -> Finding:
    """Whether the device's watts can be measured, and how well; unread meters come first."""
    useful = [sensor for sensor in sensors if sensor.reason is None]
    unread = [sensor for sensor in sensors if sensor.reason is not None and sensor.name.startswith(METER_PREFIX)]
    if unread:
        remedy = "see whether it answers there, and how the device's meters are written"
        return Finding(device.name, "power", WARNING, _reasons(unread), remedy)
    if useful:
        return Finding(device.name, "power", OK, "; ".join(map(sensor_text, useful)))
    if device.idle_watts is not None and device.max_watts is not None:
        watts = f"{device.idle_watts:g} to {device.max_watts:g} W, by the fleet file"
        return Finding(device.name, "power", OK, watts)
    why = f" ({_reasons(sensors)})" if sensors else ""
    remedy = "set idle_watts and max_watts in the fleet file"
    return Finding(device.name, "power", WARNING, f"no sensor, so no energy{why}", remedy)


def sensor_text(sensor: SensorFacts) -> str:
    """A sensor, what it covers and, where measured, its period and noise."""
    period = "" if sensor.period_s is None else f", new every {sensor.period_s:.2g} s"
    noise = "" if sensor.noise_w is None else f", noise {sensor.noise_w:.2g} W"
    return f"{sensor.name} ({sensor.covers}, {sensor.source}{period}{noise})"


def of_clock(device: Device, offset_s: float) -> Finding:
    """Whether the device's clock is this machine's; ``offset_s`` is how far it is ahead."""
    detail = f"{offset_s:+.1f} s"
    if abs(offset_s) <= CLOCK_WARNING_S:
        return Finding(device.name, "clock", OK, detail)
    return Finding(device.name, "clock", WARNING, detail, "set its clock: sudo timedatectl set-ntp true")


def of_frameworks(device: Device, facts: Facts, answers: Mapping[str, Mapping[str, str]]) -> Finding:
    """Whether the framework that `profile` uses starts, and on the GPU; else a warning or failure.

    answers: {"version", "accelerator", "device", "collectives"} or {"error"} of each framework that
        was started.
    """
    able = {name: answer for name, answer in answers.items() if "error" not in answer}
    if not able:
        asked = [name for name, answer in answers.items() if REMEDY in answer["error"]]
        reasons = "; ".join(answer["error"].partition(REMEDY)[0] for answer in answers.values())
        remedy = (
            "correct or remove `device` in the fleet file" if asked else install_remedy(device, facts, list(answers))
        )
        return Finding(device.name, "framework", FAILED, reasons, remedy)
    where = ", ".join(
        [f"{name} {answer['version']} on {answer['accelerator']}{_with(answer)}" for name, answer in able.items()]
        + [f"{name} {found.get('version') or ''}".rstrip() + " installed, not started"
           for name, found in facts.frameworks.items() if name not in answers and "error" not in found]
    )  # fmt: skip
    broken = [name for name in answers if name not in able and "error" not in facts.frameworks.get(name, {})]
    if broken:
        reasons = "; ".join(answers[name]["error"] for name in broken)
        remedy = f"mend {' and '.join(broken)}, or profile with --framework {next(iter(able))}"
        return Finding(device.name, "framework", WARNING, f"{where}; {reasons}", remedy)
    if facts.gpus and device.computes_on is None and next(iter(able.values()))["accelerator"] == "cpu":
        on_gpu = [name for name, answer in able.items() if answer["accelerator"] != "cpu"]
        how = f"profile with --framework {on_gpu[0]}" if on_gpu else install_remedy(device, facts, list(able))
        return Finding(device.name, "framework", WARNING, f"{where}, not on the GPU", f"to use {facts.gpus[0]}, {how}")
    return Finding(device.name, "framework", OK, where)


def _with(answer: Mapping[str, str]) -> str:
    """What ``--engine torch`` may use there."""
    return f" with {answer['collectives']}" if answer["collectives"] else ""


def of_packages(
    device: Device, facts: Facts, requirements: Sequence[Requirement], installed: Mapping[str, str | None]
) -> Finding:
    """Whether the device has what a job's requirements.txt asks for."""
    requirements = applicable(requirements, facts.python, facts.machine, facts.system.rpartition(", ")[2])
    missing = unmet(requirements, installed)
    if not missing:
        found = ", ".join(f"{name} {version}" for name, version in installed.items() if version is not None)
        return Finding(device.name, JOB, OK, found)
    wanted = [requirement for requirement in requirements if unmet([requirement], installed)]
    return Finding(device.name, JOB, FAILED, "; ".join(missing), package_remedy(device, facts, wanted, installed))


def suffices(facts: Facts, answer: Mapping[str, str]) -> bool:
    """Whether a framework starts and leaves no GPU of the device unused."""
    return "error" not in answer and not (facts.gpus and answer["accelerator"] == "cpu")


def of_reach(device: str, others: Sequence[str], unreached: Mapping[str, str]) -> Finding:
    """Whether all other devices reach a port of this device; ``unreached``: reasons by device."""
    if not others:
        return Finding(device, "data plane", SKIPPED, "no other device to reach it")
    if not unreached:
        return Finding(device, "data plane", OK, f"reached from {', '.join(others)}")
    reasons = "; ".join(f"from {other}: {reason}" for other, reason in unreached.items())
    remedy = "let its firewall pass TCP from the other devices, or set data_address in the fleet file"
    status = FAILED if len(unreached) == len(others) else WARNING
    return Finding(device, "data plane", status, f"not reached {reasons}", remedy)


def of_error(device: Device, check: str, error: PlannerError) -> Finding:
    """The failed check of an error whose message reads ``device: what; remedy``."""
    if isinstance(error, UnknownHostKeyError):
        key = error.host_key
        detail = f"{key.name} is not known; it shows {key.type} {key.fingerprint}"
        return Finding(device.name, check, FAILED, detail, f"planner trust {device.name}")
    message = without_device_name(device.name, error)
    detail, _, remedy = message.rpartition("; ")
    return Finding(device.name, check, FAILED, detail or message, remedy if detail else _remedy(device, check, message))


def without_device_name(device: str, error: PlannerError) -> str:
    """An error's message without the device and the verb, which have columns of their own."""
    message = str(error).removeprefix(f"{device}: ")
    names_verb = isinstance(error, AgentError) and not isinstance(error, JobError)
    return message.partition(": ")[2] if names_verb else message


def stage_of(error: PlannerError) -> str:
    if isinstance(error, HostKeyError):
        return "host key"
    return "login" if isinstance(error, LoginError) else "reachable"


def package_remedy(
    device: Device, facts: Facts, wanted: Sequence[Requirement], installed: Mapping[str, str | None]
) -> str:
    """How to install packages so that no build of a vendor is replaced by one of PyPI."""
    has_vendors = is_jetson(facts) or any(is_vendors_build(found.get("version")) for found in facts.frameworks.values())
    built = BUILT_BY_VENDORS * has_vendors + OF_JETPACK * is_jetson(facts)
    of_vendors = [
        each for each in wanted
        if is_vendors_build(installed.get(each.name))
        or asks_for_vendors_build(each)
        or canonicalize_name(each.name).startswith(built)
    ]  # fmt: skip
    words = " ".join(shlex.quote(pip_words(each)) for each in wanted if each not in of_vendors)
    alone = "--no-deps " * has_vendors  # else pip may replace the framework as a dependency
    remedies = []
    if words:
        remedies.append(f"install it there: {_interpreter(device)} -m pip install {alone}{words}")
    if of_vendors:
        names = " and ".join(pip_words(each) for each in of_vendors)
        remedies.append(
            f"take {names} from its vendor (NVIDIA's wheels on a Jetson), not pip's own, or loosen the line"
        )
    return "; ".join(remedies)


def is_jetson(facts: Facts) -> bool:
    """Whether the device is a Jetson; one in a container is known by its kernel."""
    return "jetson" in (facts.board or "").lower() or "tegra" in facts.system.lower()


def install_remedy(device: Device, facts: Facts, frameworks: Sequence[str]) -> str:
    """How to install one of these frameworks on this kind of board."""
    any_of = " or ".join(frameworks)
    if is_jetson(facts):
        version = ".".join(facts.python.split(".")[:2])
        jetpack = JETPACKS.get(version, "its JetPack")
        last = [f"{name} {LAST_WHEELS[jetpack][name]}" for name in frameworks if jetpack in LAST_WHEELS]
        until = f" (the last: {', '.join(last)})" if last else ""
        return f"install NVIDIA's {any_of} wheel for {jetpack} and Python {version}{until}, not pip's own"
    if facts.machine.startswith(("armv6", "armv7")):
        return f"install a 64-bit system there: {any_of} has no wheel for {facts.machine}"
    kept = [name for name in frameworks if is_vendors_build(facts.frameworks.get(name, {}).get("version"))]
    if kept:
        return f"take another build of {' or '.join(kept)} from where it came: pip's own would replace it"
    pip = f"{_interpreter(device)} -m pip install"
    return f"install it there: {', or '.join(f'{pip} {name}' for name in frameworks)}"


def _reasons(sensors: Iterable[SensorFacts]) -> str:
    return "; ".join(f"{sensor.name}: {sensor.reason}" for sensor in sensors)


def _disk(free_bytes: int) -> tuple[str, str, str | None]:
    detail = f"{bytes_text(free_bytes)} free"
    if free_bytes >= DISK_WARNING_BYTES:
        return OK, detail, None
    status = FAILED if free_bytes < DISK_FAILED_BYTES else WARNING
    return status, detail, f"free some space in ~/.cache there; {bytes_text(DISK_WARNING_BYTES)} is enough"


def _remedy(device: Device, check: str, message: str) -> str:
    if check != "python":
        return "see whether it is still up, then run `planner check` again"
    if "numpy" in message:
        return f"install it there: {_interpreter(device)} -m pip install numpy"
    return f"see what `{_interpreter(device)}` says there, and set `python` or `prefix` in the fleet file"


def _interpreter(device: Device) -> str:
    return command_line([*device.interpreter.prefix, device.interpreter.python])
