"""Profiles made up for tests: round numbers, no noise unless asked for, all records."""

from collections.abc import Iterable, Mapping
from string import ascii_lowercase
from typing import Any

from backends.strategies.compressors.registry import COMPRESSORS
from planner.profile.file import DeviceProfile, Profile
from profilers.records.device import Facts, HostMemory, Processor
from profilers.records.json_values import SCHEMA
from profilers.records.links import CurvePoint, IncastProfile, LinkProfile
from profilers.records.readings import PowerReading, Samples, Window
from profilers.records.step_costs import CodecCost, StepCosts
from profilers.records.steps import (
    BatchTiming,
    ComputeSettings,
    ModelSize,
    StepProfile,
    StepSetup,
)

MBIT = 125_000.0


def seconds(mean_s: float, spread: float = 0.0, count: int = 100) -> Samples:
    """``count`` values of mean ``mean_s``, alternating ``spread`` (a share) above and below."""
    return Samples("s", tuple(mean_s * (1 + spread * (-1) ** index) for index in range(count)))


#: A compressor that chooses in no time, and adds a message in 2 ms.
CODEC = CodecCost(seconds(0.0, count=1), seconds(0.002, count=1))


def window(watts: float | None = None, covers: str = "wall", source: str = "sensor", sensor: str = "plug") -> Window:
    """A window with one power reading, or none."""
    power = () if watts is None else (PowerReading(sensor, source, covers, watts, 0.0, 10),)
    return Window(10.0, {}, power)


def facts(cores: float = 4.0) -> Facts:
    """An ordinary computer."""
    return Facts(
        "host", None, "Linux", "x86_64", "3.11.2", Processor(None, int(cores) or 1, cores), HostMemory(2**33, 2**32),
        2**36, {"torch": {"version": "2.0", "accelerator": "cpu", "device": "cpu"}}, (), None, (),
    )  # fmt: skip


def step(gradient_s: float = 0.1, **changes: Any) -> StepProfile:
    """A timed model of 1 MB on a GPU; ``spread`` shakes the gradient times."""
    spread, batch = changes.pop("spread", 0.0), changes.get("batch", 32)
    made = StepProfile(
        model="net", framework="torch", batch=batch,
        setup=StepSetup("abc", "2.0", "cuda", threads=1, slowdown=1.0, protocol="adaptive", steady=True, precise=True),
        size=ModelSize(250_000, parameter_bytes=1_000_000, state_bytes=0, layers=(250_000,)),
        gradient_s=seconds(gradient_s, spread), copy_s=seconds(0.0), update_s=seconds(0.01),
        cpu_s_per_step=gradient_s, data_s=0.0, window=window(),
        costs=StepCosts(seconds(0.002), dict.fromkeys(COMPRESSORS, CODEC), seconds(0.0, count=1)),
    )  # fmt: skip
    return changed(made, **{"half_batch_s": seconds(gradient_s * 0.6), **changes})


def changed(made: StepProfile, **changes: Any) -> StepProfile:
    """A timing with other values in it, its setup, size and costs, or its half batch."""
    half_s = changes.pop("half_batch_s", made.half_batch_s)
    compute = {name: changes.pop(name) for name in ComputeSettings._fields if name in changes}
    made = made._replace(setup=made.setup._replace(compute=made.setup.compute._replace(**compute)))
    for part in ("setup", "size", "costs"):
        inner = getattr(made, part)
        own = {name: changes.pop(name) for name in inner._fields if name in changes}
        made = made._replace(**{part: inner._replace(**own)})
    made = made._replace(**changes)
    others = tuple(each for each in made.other_batches if each.batch != made.batch // 2)
    half = (BatchTiming(made.batch // 2, half_s),) if half_s.values and made.batch > 1 else ()
    return made._replace(other_batches=(*half, *others))


def device(
    made: StepProfile | None = None,
    idle_w: float | None = 10.0,
    max_w: float | None = 50.0,
    cores: float = 4.0,
    **declared: Any,
) -> DeviceProfile:
    """A profiled device whose watts come from the fleet file."""
    snapshot = {
        "kind": "pc",
        "idle_watts": idle_w,
        "max_watts": max_w,
        "rate_bytes_per_s": None,
    }
    steps = (step() if made is None else made,)
    return DeviceProfile({**snapshot, **declared}, facts(cores), window(), steps, None, {"steps": 20.0})


def link(source: str, target: str, rate: float = 100 * MBIT, latency_s: float = 0.0, **changes: Any) -> LinkProfile:
    """A link without a curve: a message takes latency + bytes / rate, and no processor time."""
    made = LinkProfile(
        source, target, "iperf3", Samples("B/s", (rate,) * 5), Samples("s", (latency_s,) * 5), (), 0.0, 0.0
    )
    return made._replace(**changes)


def curve(points: Mapping[int, float]) -> tuple[CurvePoint, ...]:
    """A message-size curve: seconds by bytes."""
    return tuple(CurvePoint(size, seconds(each, count=5)) for size, each in points.items())


def links(names: Iterable[str], rates: Mapping[str, float] | None = None, **changes: Any) -> tuple[LinkProfile, ...]:
    """All ordered pairs, as fast as the slower end (100 Mbit/s by default), and fast loopbacks."""
    names, rates = list(names), rates or {}
    found = []
    for a in names:
        for b in names:
            ends = min(rates.get(a, 100 * MBIT), rates.get(b, 100 * MBIT))
            found.append(link(a, b, 1e9 if a == b else ends, **changes))
    return tuple(found)


def profile(
    devices: Mapping[str, DeviceProfile],
    rates: Mapping[str, float] | None = None,
    incasts: tuple[IncastProfile, ...] = (),
    **changes: Any,
) -> Profile:
    """A whole profile; ``rates`` are the devices' own links, bytes/s."""
    made = Profile(SCHEMA, "0.0", 0.0, dict(devices), links(devices, rates), incasts, {"links": 5.0})
    return made._replace(**changes)


def fleet(*gradients_s: float, rates: Mapping[str, float] | None = None, **changes: Any) -> Profile:
    """Devices a, b, c, ... whose gradients take so long; changes: of their steps."""
    devices = {name: device(step(each, **changes)) for name, each in zip(ascii_lowercase, gradients_s, strict=False)}
    return profile(devices, rates)


def three(slowdown: float = 1.0, spread: float = 0.0) -> Profile:
    """Devices ``a``, ``b`` and ``c``, each about four times slower than the one before.

    ``c`` may be emulated.
    """
    steps = {
        "a": step(0.1, spread=spread),
        "b": step(0.4, spread=spread),
        "c": step(1.7, spread=spread, slowdown=slowdown),
    }
    return profile({name: device(each) for name, each in steps.items()})
