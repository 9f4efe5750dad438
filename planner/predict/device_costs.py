"""Device costs are the seconds, bytes/s and watts that each device of a profile has by itself."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from backends.strategies.strategy import Strategy
from planner.arrays import Floats
from planner.predict import compressor_costs, link_costs, update_costs
from planner.predict.device_timings import gradient_times
from planner.predict.gradient_time import image_s
from planner.predict.message_time import standard_error
from planner.profile import data_wait
from planner.profile.file import DeviceProfile, Profile
from planner.profile.power_readings import Wattage, unavailable, watts_of_parts, watts_of_whole
from planner.profile.startup import Startup
from planner.provenance import NAMEPLATE, Provenance
from profilers.records.readings import Samples
from profilers.records.steps import StepProfile
from profilers.stats import mean

#: Gradients around one, over whose mean its variation is told.
AROUND = 20
#: Most numbers that tell how a gradient's time varies.
QUANTILES = 64


class DeviceErrors(NamedTuple):
    """Relative standard errors of the measured means behind ``DeviceCosts``, (N,) each."""

    gradient: Floats
    copy: Floats
    update: Floats
    service: Floats
    idle_w: Floats
    busy_w: Floats


class DeviceCosts(NamedTuple):
    """Uncontended costs of N devices, (N,) each.

    gradient_s: a worker's gradient of one batch; image_s: what one more image adds to it.
    copy_s: copies of a gradient and weights between accelerator and host.
    encode_s, add_s: to choose what one message holds, and to add a peer's.
    update_s: an update of a device that trains alone; service_s: one of a server that it hosts.
    build_s: until the model is built and its first step can begin; first_step_s: that this step
        takes longer than others, for what is traced, loaded or allocated in it.
    data_s: of ``gradient_s``, seconds that it waits for its batch to be read.
    step_cpu_s: processor seconds of a gradient that compete with a server on the same host,
        0 where another accelerator computes.
    cores: processor cores that it gets, fractions for quotas.
    in_bytes_per_s, out_bytes_per_s: of its link with all peers at once, infinite where no
        contention shows.
    idle_w, busy_w: watts idle and at full load, NaN where unknown.
    evaluation_s: of one sample of the test set, NaN where unknown.
    variation: the times of a gradient that were measured over their mean, of each device.
    startups: how runs begin on them; None where that was not measured.
    """

    gradient_s: Floats
    image_s: Floats
    copy_s: Floats
    encode_s: Floats
    update_s: Floats
    build_s: Floats
    first_step_s: Floats
    service_s: Floats
    add_s: Floats
    step_cpu_s: Floats
    cores: Floats
    in_bytes_per_s: Floats
    out_bytes_per_s: Floats
    idle_w: Floats
    busy_w: Floats
    data_s: Floats
    evaluation_s: Floats
    variation: tuple[Floats, ...]
    startups: tuple[Startup | None, ...]
    errors: DeviceErrors

    @property
    def alone_s(self) -> Floats:
        """(N,) seconds of a step of a device that trains alone."""
        return self.gradient_s + self.update_s

    @property
    def ready_s(self) -> Floats:
        """(N,) seconds until a worker begins to send: its gradient, copies and encoding."""
        return self.gradient_s + self.copy_s + self.encode_s


def of_devices(
    profile: Profile,
    steps: Mapping[str, StepProfile],
    watts: Mapping[str, Wattage],
    caps: Mapping[str, float],
    batches: Sequence[int],
    strategy: Strategy,
) -> DeviceCosts:
    """Costs of the devices in ``steps``, in that order; all mappings are by device.

    steps: the chosen timings; caps: bytes/s that a network is held to.
    batches: images of a step of each.
    """
    timed, optimizer = list(steps.values()), strategy.optimizer.name
    gradients = [
        gradient_times(profile.devices[name], step).at(batch)
        for (name, step), batch in zip(steps.items(), batches, strict=True)
    ]
    gradient_s = _array(each.seconds for each in gradients)
    competing_cpu_s = _array(step.cpu_s_per_step if step.accelerator == "cpu" else 0.0 for step in timed)
    cores = [profile.devices[name].cores for name in steps]
    return DeviceCosts(
        gradient_s=gradient_s,
        image_s=_array(image_s(step) for step in timed),
        copy_s=_means(step.copy_s for step in timed),
        encode_s=_array(compressor_costs.encode_s(strategy, step) for step in timed),
        update_s=_means(update_costs.update_s(optimizer, step) for step in timed),
        build_s=_array(step.build_s for step in timed),
        first_step_s=_array(step.first_step_s for step in timed),
        service_s=_array(compressor_costs.service_s(strategy, step) for step in timed),
        add_s=_array(compressor_costs.add_s(strategy, step) for step in timed),
        step_cpu_s=competing_cpu_s * gradient_s / _means(step.gradient_s for step in timed),
        cores=_array(each for each in cores if each is not None),
        in_bytes_per_s=_array(link_costs.capacity_bytes_per_s(profile, name, "in", caps[name]) for name in steps),
        out_bytes_per_s=_array(link_costs.capacity_bytes_per_s(profile, name, "out", caps[name]) for name in steps),
        idle_w=_array(watts[name].idle_w for name in steps),
        busy_w=_array(watts[name].busy_w for name in steps),
        data_s=gradient_s * _array(data_wait.share(step) for step in timed),
        evaluation_s=_array(math.nan if step.evaluation_s is None else step.evaluation_s for step in timed),
        variation=tuple(_over_mean(step.gradient_s) for step in timed),
        startups=tuple(profile.devices[name].startup for name in steps),
        errors=DeviceErrors(
            gradient=_array(each.error for each in gradients),
            copy=_errors(step.copy_s for step in timed),
            update=_errors(update_costs.update_s(optimizer, step) for step in timed),
            service=_errors(update_costs.service_s(optimizer, step) for step in timed),
            idle_w=_array(watts[name].idle_error for name in steps),
            busy_w=_array(watts[name].busy_error for name in steps),
        ),
    )


def wattage(device: DeviceProfile, step: StepProfile) -> Wattage:
    """Watts by a sensor of the whole device, else the fleet file, else sensors of its parts."""
    idle_w, max_w = device.device.get("idle_watts"), device.device.get("max_watts")
    found = watts_of_whole(device.idle, step.window)
    if found is None and idle_w is not None and max_w is not None:
        source = Provenance(NAMEPLATE, ("board",), detail="fleet file")
        found = Wattage(float(idle_w), float(max_w), 0.0, 0.0, source)
    found = found or watts_of_parts(device.idle, step.window)
    found = found or Wattage(idle_watts(device), math.nan, 0.0, 0.0, unavailable(step.window))
    if step.slowdown == 1:
        return found
    emulated = found.provenance._replace(emulated=True).noting(f"slowdown {step.slowdown:g}")
    return found._replace(provenance=emulated)


def idle_watts(device: DeviceProfile) -> float:
    """Idle watts of a device that takes no part, NaN where unknown."""
    declared = device.device.get("idle_watts")
    found = watts_of_whole(device.idle, device.idle)
    if found is None and declared is not None:
        return float(declared)
    found = found or watts_of_parts(device.idle, device.idle)
    return math.nan if found is None else found.idle_w


def _means(samples: Iterable[Samples]) -> Floats:
    return _array(mean(each.values) if each.values else 0.0 for each in samples)


def _over_mean(samples: Samples) -> Floats:
    """Times over the mean of those around them, so that a slow change counts as no variation.

    Of many, evenly spaced quantiles.
    """
    values = np.array(samples.values)
    parts = np.array_split(values, max(1, values.size // AROUND))
    shares: Floats = np.concatenate([part / part.mean() for part in parts])
    if shares.size > QUANTILES:
        shares = np.quantile(shares, (np.arange(QUANTILES) + 0.5) / QUANTILES)
    return shares / shares.mean()


def _errors(samples: Iterable[Samples]) -> Floats:
    return _array(standard_error(each) for each in samples)


def _array(values: Iterable[float]) -> Floats:
    return np.fromiter(values, np.float64)
