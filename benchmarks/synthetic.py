"""Profiles of devices that are made up; links may be measured ones."""

from collections.abc import Iterable, Mapping

from backends.strategies.compressors.registry import COMPRESSORS
from planner.profile.file import DeviceProfile, Profile
from profilers.records.device import Facts, HostMemory, Processor
from profilers.records.json_values import SCHEMA
from profilers.records.links import CurvePoint, IncastProfile, LinkProfile
from profilers.records.readings import Samples, Window
from profilers.records.step_costs import CodecCost, StepCosts
from profilers.records.steps import BatchTiming, ModelSize, StepProfile, StepSetup

IDLE_W, MAX_W = 5.0, 30.0
CORES = 2.0
CURVE_BYTES = (1 << 10, 1 << 18, 1 << 22)


def device(gradient_s: float, parameters: int, service_s: Samples) -> DeviceProfile:
    """A device with an accelerator whose gradient of ``parameters`` takes ``gradient_s``."""
    declared = {"kind": "pc", "idle_watts": IDLE_W, "max_watts": MAX_W, "rate_bytes_per_s": None}
    codec = CodecCost(_seconds(1e-5), _seconds(1e-3))
    step = StepProfile(
        model="made up", framework="none", batch=32,
        setup=StepSetup("0", "0", "none", threads=1, slowdown=1.0, protocol="none", steady=True, precise=True),
        size=ModelSize(parameters, parameter_bytes=4 * parameters, state_bytes=0),
        gradient_s=_seconds(gradient_s), copy_s=_seconds(0.0), update_s=service_s, cpu_s_per_step=0.0, data_s=0.0,
        window=Window(1.0, {}, ()), costs=StepCosts(service_s, dict.fromkeys(COMPRESSORS, codec), Samples("s", ())),
        other_batches=(BatchTiming(16, _seconds(gradient_s / 2)),),
    )  # fmt: skip
    facts = Facts(
        hostname="host", board=None, system="Linux", machine="x86_64", python="3.11",
        processor=Processor(None, int(CORES), CORES), memory=HostMemory(1 << 33, 1 << 32), disk_free_bytes=1 << 36,
        frameworks={}, gpus=(), iperf3=None, sensors=(),
    )  # fmt: skip
    return DeviceProfile(declared, facts, Window(1.0, {}, ()), (step,), None, {})


def link(source: str, target: str, bytes_per_s: float) -> LinkProfile:
    """A link of one rate and a tenth of a millisecond."""
    points = tuple(CurvePoint(size, _seconds(1e-4 + size / bytes_per_s)) for size in CURVE_BYTES)
    return LinkProfile(
        source, target, "none", Samples("bytes/s", (bytes_per_s,) * 5), _seconds(1e-4), points, 1e-9, 1e-9
    )


def profile(
    devices: Mapping[str, DeviceProfile], links: Iterable[LinkProfile], incasts: Iterable[IncastProfile] = ()
) -> Profile:
    """A profile of these."""
    return Profile(SCHEMA, "0", 0.0, dict(devices), tuple(links), tuple(incasts), {})


def _seconds(mean_s: float) -> Samples:
    return Samples("s", (mean_s,) * 100)
