"""profile.json holds everything that was measured of a fleet, with its raw samples."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from backends.frameworks.base import FRAMEWORKS
from backends.strategies.compressors.registry import COMPRESSORS
from planner.errors import RecordError
from planner.json_records import decode, load
from profilers.records.device import Facts
from profilers.records.links import IncastProfile, LinkProfile
from profilers.records.readings import StreamRate, Window
from profilers.records.steps import StepProfile
from profilers.stats import mean

#: Training steps that are planned by default (Gu et al., section IV).
DEFAULT_STEPS = 100_000
#: The share of a core below which a quota shows: less than steps lose to what else runs.
NOTICEABLE = 0.9
#: What helps where profile.json cannot be read.
REMEDY = "run `planner profile --fresh`"


class Declared(NamedTuple):
    """What a device's entry in the fleet file declares that predictions and links depend on."""

    host: str | None = None
    data_address: str | None = None
    data_interface: str | None = None
    port: int | None = None
    kind: str | None = None
    idle_watts: float | None = None
    max_watts: float | None = None
    rate_bytes_per_s: float | None = None

    def check(self) -> None:
        """Raises ValueError where a device draws less at most than when it is idle."""
        if self.idle_watts is not None and self.max_watts is not None and self.max_watts < self.idle_watts:
            raise ValueError(f"max_watts: {self.max_watts:g} W is below idle_watts, {self.idle_watts:g} W")


class DeviceProfile(NamedTuple):
    """Everything measured of one device.

    device: what the fleet file declares of it, by key (``Declared``); None where undeclared.
    facts, idle: None where the device failed before.
    streams: of samples that arrive there, by ``StreamSpec.named``.
    error: why it cannot take part, or None.
    took_s: seconds of each part; a model's is ``timing_of``.
    failures: by model, why it could not be timed; by --stream, why its samples were not counted.
    """

    device: dict[str, Any]
    facts: Facts | None
    idle: Window | None
    steps: tuple[StepProfile, ...]
    error: str | None
    took_s: dict[str, float]
    failures: dict[str, str] = {}
    streams: dict[str, StreamRate] = {}

    @property
    def cores(self) -> float | None:
        """Cores that count in predictions: those it may use, or fewer that its steps got.

        Some quotas cannot be read. A processor that computes wants one core at least, so that a
        quota shows where it gets less.
        """
        if self.facts is None:
            return None
        usable = self.facts.processor.usable_cores
        got = max((_cores_got(step) for step in self.steps if step.setup.accelerator == "cpu"), default=usable)
        return got if 0 < got < NOTICEABLE * min(1.0, usable) else usable

    @property
    def reached_at(self) -> tuple[Any, ...]:
        """What tells the machine that it is on, and its address there."""
        return tuple(self.device.get(key) for key in ("host", "port", "data_address", "data_interface"))

    def failed(self, models: Iterable[str]) -> bool:
        """Whether the device can be used for none of these models."""
        return self.error is not None or all(model in self.failures for model in models)

    def timing_s(self, model: str) -> float:
        """Seconds that timing a model took, in all frameworks."""
        return sum(self.took_s.get(part, 0.0) for part in (timing_of(model, each) for each in FRAMEWORKS))


class Profile(NamedTuple):
    """A profiled fleet.

    planner: the version that wrote it; created_s: seconds since the epoch.
    links: directed; source == target is the loopback of a worker and a server on one host.
    took_s: seconds of each part common to all devices (links).
    steps_planned: training steps the profile was made for.
    link_errors: by link or incast, why it could not be measured.
    """

    schema: int
    planner: str
    created_s: float
    devices: dict[str, DeviceProfile]
    links: tuple[LinkProfile, ...]
    incasts: tuple[IncastProfile, ...]
    took_s: dict[str, float]
    steps_planned: int = DEFAULT_STEPS
    link_errors: dict[str, str] = {}

    def check(self) -> None:
        """Raises RecordError where what is declared of a device does not fit."""
        for name, device in self.devices.items():
            known = {key: each for key, each in device.device.items() if key in Declared._fields}
            decode(Declared, known, f"devices.{name}.device")

    def require_compressors(self) -> None:
        """Raises RecordError where a compressor was not timed, as one that was added since."""
        for name, device in self.devices.items():
            for at, step in enumerate(device.steps):
                if untimed := COMPRESSORS.keys() - step.costs.compressors.keys():
                    raise RecordError(f"devices.{name}.steps[{at}].compressors: missing {', '.join(sorted(untimed))}")

    def with_device(self, name: str, **changes: Any) -> "Profile":
        """The profile with other fields of one device."""
        return self._replace(devices={**self.devices, name: self.devices[name]._replace(**changes)})

    def with_link(self, result: LinkProfile | IncastProfile, now_s: float) -> "Profile":
        """The profile with an incast, or a link, which keeps the date of its first probe.

        A link within a machine is its loopback, which is that of all devices there.
        """
        if isinstance(result, IncastProfile):
            return self._replace(incasts=(*self.incasts, result._replace(measured_s=now_s)))
        machine, made = self.beside(result.source), result._replace(measured_s=result.measured_s or now_s)
        alike = itertools.permutations(machine, 2) if result.target in machine else [(result.source, result.target)]
        new = {ends: made._replace(source=ends[0], target=ends[1]) for ends in alike}
        others = (link for link in self.links if (link.source, link.target) not in new)
        return self._replace(links=(*others, *new.values()))

    def beside(self, name: str) -> tuple[str, ...]:
        """The devices on one machine with this one, itself included: others reach all alike."""
        own = self.devices[name].reached_at
        return tuple(other for other, device in self.devices.items() if device.reached_at == own)

    def with_link_seconds(self, took_s: float) -> "Profile":
        """The profile after so many more seconds of measuring links."""
        return self._replace(took_s={**self.took_s, "links": self.took_s.get("links", 0.0) + took_s})

    def without_links(self, name: str) -> "Profile":
        """The profile without incasts, and without the links of a name that has moved."""
        links = tuple(link for link in self.links if name not in (link.source, link.target))
        return self._replace(links=links, incasts=())

    def profiling_s(self, model: str | None = None) -> float:
        """Seconds that profiling took, or would have taken for one model alone."""

        def took_s(device: DeviceProfile) -> float:
            others = {steps.model for steps in device.steps if model not in (None, steps.model)}
            return sum(device.took_s.values()) - sum(map(device.timing_s, others))

        return self.longest_s(took_s) + sum(self.took_s.values())

    def longest_s(self, took_s: Callable[[DeviceProfile], float]) -> float:
        """Seconds of the slowest kernel; its devices take turns."""
        kernels = kernels_of(self.devices).values()
        return max((sum(took_s(self.devices[name]) for name in names) for names in kernels), default=0.0)


def _cores_got(step: StepProfile) -> float:
    """Processor seconds in a second of computing. A slowed device pauses for the rest of it."""
    computing_s = mean(step.gradient_s.values) - step.data_s if step.gradient_s.values else 0.0
    return step.setup.slowdown * step.cpu_s_per_step / computing_s if computing_s > 0 else math.inf


def machines_of(devices: Mapping[str, DeviceProfile]) -> dict[str, tuple[str, ...]]:
    """Return the devices on each machine, which share an address, by the first one."""
    machines: dict[Any, tuple[str, ...]] = {}
    for name, device in devices.items():
        address = (device.device["host"], device.device.get("port")) if "host" in device.device else name
        machines[address] = (*machines.get(address, ()), name)
    return {names[0]: names for names in machines.values()}


def kernels_of(devices: Mapping[str, DeviceProfile]) -> dict[str, tuple[str, ...]]:
    """Return the devices on each kernel, which share its processors, by the first one.

    Of several addresses, as containers and the parts of a lab have. Where a device does not tell
    its kernel, its address counts.
    """
    kernels: dict[str, tuple[str, ...]] = {}
    for first, names in machines_of(devices).items():
        facts = devices[first].facts
        key = first if facts is None or facts.boot_id is None else facts.boot_id
        kernels[key] = (*kernels.get(key, ()), *names)
    return {names[0]: names for names in kernels.values()}


def timing_of(model: str, framework: str) -> str:
    """Return the key of a model's timing in ``DeviceProfile.took_s``."""
    return f"{model} with {framework}"


def load_profile(path: Path) -> Profile:
    """Read profile.json. Raises RecordError, with the remedy."""
    profile = load(Profile, path, REMEDY)
    try:
        profile.require_compressors()
    except RecordError as error:
        raise RecordError(f"{path}: {error}; {REMEDY}") from None
    return profile
