"""What a step costs on every device and an exchange on every pair, before any of them meet in a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.errors import PlanError
from planner.predict import codec_cost, link_costs
from planner.predict import strategy as exchange
from planner.predict.batch_size import ANY, BatchSizes, RunLength, notes, of_run
from planner.predict.power import wattage
from planner.predict.step_time import gradient_at, image_s, pick, pick_framework, timed_steps
from planner.predict.strategy import DEFAULT
from planner.predict.transfer_time import standard_error
from planner.profile import repeats
from planner.profile.file import DeviceProfile, Profile
from planner.profile.power_readings import disagreements
from planner.provenance import Provenance
from profilers.records import Samples, StepProfile
from profilers.stats import mean


class Costs(NamedTuple):
    """Measured, uncontended costs of one model at one batch size on N devices.

    (N,): frameworks; of a device as a worker gradient_s, image_s (what one image more adds to it), copy_s, send_s (to
    choose what one message holds), update_s and build_s; service_s of one server update on it, add_s to take in a
    peer's message, step_cpu_s processor seconds of one gradient that compete with a server on the same host (0 where
    another accelerator computes), cores, in_bytes_per_s and out_bytes_per_s of a host's link with all peers at once
    (infinite where no contention shows), idle_w and busy_w (NaN unknown). (N, N), [worker, host]: up_s
    and down_s of one exchange (infinite unmeasured), worker_cpu_s and host_cpu_s processor seconds of it,
    host_taken_s those that a computation on the host lacks meanwhile; on the diagonal, a co-located worker, all
    of them are the host's; send_taken_s and receive_taken_s those that computations at both ends lack of what goes up;
    weights_s and latency_s of all weights and of next to nothing, one way. error_*: relative standard errors of means.
    strategy: what the bytes are of; batches: the images of its steps.
    """

    names: tuple[str, ...]
    model: str
    fingerprint: str
    frameworks: tuple[str, ...]
    batch: int
    up_bytes: int
    down_bytes: int
    gradient_s: Floats
    image_s: Floats
    copy_s: Floats
    send_s: Floats
    update_s: Floats
    build_s: Floats
    service_s: Floats
    add_s: Floats
    step_cpu_s: Floats
    cores: Floats
    in_bytes_per_s: Floats
    out_bytes_per_s: Floats
    up_s: Floats
    down_s: Floats
    worker_cpu_s: Floats
    host_cpu_s: Floats
    host_taken_s: Floats
    send_taken_s: Floats
    receive_taken_s: Floats
    weights_s: Floats
    latency_s: Floats
    idle_w: Floats
    busy_w: Floats
    power_sources: tuple[Provenance, ...]
    error_gradient: Floats
    error_copy: Floats
    error_update: Floats
    error_service: Floats
    error_link: Floats
    error_idle: Floats
    error_busy: Floats
    left_out: dict[str, str]
    notes: tuple[str, ...]
    batches: BatchSizes
    strategy: str = DEFAULT

    @property
    def ready_s(self) -> Floats:
        """(N,): until a worker begins to send: its gradient, copies, and choosing what is sent."""
        return self.gradient_s + self.copy_s + self.send_s

    def reachable(self) -> Bools:
        """(N, N): worker i has measured links with host k both ways."""
        return np.isfinite(self.up_s + self.down_s)


def costs(
    profile: Profile,
    model: str | None = None,
    framework: str | None = None,
    batch: int | None = None,
    rates: Mapping[str, float] | None = None,
    include: Sequence[str] = (),
    strategy: str = DEFAULT,
    run: RunLength = ANY,
) -> Costs:
    """Costs of ``model`` at ``batch`` (the profiled one) on every device that has all that is needed.

    model: may be left out where the profile holds one; framework: on all devices, None for what is fastest on each;
    rates: what-if line rates of devices' networks, bytes/s; include: devices that must not be left out; strategy: how
    they exchange what they learn; run: by which batches may grow. Raises PlanError naming what is missing.
    """
    rates = rates or {}
    _check_names(profile, "--rate", rates)
    _check_names(profile, "--include", include)
    model = pick(profile, "model", model)
    timed, left_out = timed_steps(profile, model, pick_framework(profile, framework, model), batch)
    for name in include:
        if name in left_out:
            raise PlanError(f"--include {name}: {left_out[name]}; profile it again or do not include it")
    for name in rates:
        if name in left_out:
            raise PlanError(f"--rate {name}: {left_out[name]}; profile it again or leave the option out")
    if not timed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise PlanError(f"no device can train {model} ({reasons}); run `planner profile` again")
    size = next(iter(timed.values())).batch if batch is None else batch
    batches = of_run(strategy, len(timed), size, run)
    found = _assemble(profile, timed, left_out, size, rates, strategy, batches)
    return found._replace(notes=(*found.notes, *notes(strategy, run)))


def _assemble(
    profile: Profile,
    steps: Mapping[str, StepProfile],
    left_out: dict[str, str],
    batch: int,
    rates: Mapping[str, float],
    strategy: str,
    batches: BatchSizes,
) -> Costs:
    names = tuple(steps)
    each = list(steps.values())
    first = each[0]
    found = exchange.strategy(strategy)
    share = exchange.traffic(found, first, len(names))
    state_bytes = first.state_bytes if exchange.through_server(found) else 0  # peers keep theirs
    up_bytes = round(share.up * first.gradient_bytes) + state_bytes
    down_bytes = round(share.down * first.parameter_bytes)
    gradient_s, error_gradient = np.array([gradient_at(step, batch) for step in each]).T
    grown = gradient_s / _means(step.gradient_s for step in each)
    caps = {name: link_costs.cap_bytes_per_s(profile.devices[name], rates.get(name)) for name in names}
    links = link_costs.measured(profile)
    pairs = link_costs.exchanges(names, links, caps, up_bytes, down_bytes)
    capacities = {
        direction: _array(link_costs.capacity_bytes_per_s(profile, name, direction, caps[name]) for name in names)
        for direction in ("in", "out")
    }
    watts = [wattage(profile.devices[name], step) for name, step in steps.items()]
    return Costs(
        names=names, model=first.model, fingerprint=first.fingerprint, batch=batch,
        frameworks=tuple(step.framework for step in each),
        up_bytes=up_bytes, down_bytes=down_bytes,
        gradient_s=gradient_s,
        image_s=_array(image_s(step) for step in each),
        copy_s=_means(step.copy_s for step in each),
        send_s=_array(codec_cost.send_s(found, step) for step in each),
        update_s=_means(step.update_s for step in each),
        build_s=_array(step.build_s for step in each),
        service_s=_array(codec_cost.service_s(found, step) for step in each),
        add_s=_array(codec_cost.add_s(found, step) for step in each),
        step_cpu_s=_array(step.cpu_s_per_step if step.accelerator == "cpu" else 0.0 for step in each) * grown,
        cores=_array(_cores(profile.devices[name]) for name in names),
        in_bytes_per_s=capacities["in"],
        out_bytes_per_s=capacities["out"],
        up_s=pairs[0], down_s=pairs[1], worker_cpu_s=pairs[2], host_cpu_s=pairs[3], error_link=pairs[4],
        host_taken_s=pairs[5], send_taken_s=pairs[6], receive_taken_s=pairs[7],
        weights_s=link_costs.between(names, links, caps, first.parameter_bytes + first.state_bytes),
        latency_s=link_costs.between(names, links, caps, 0),
        idle_w=_array(each.idle_w for each in watts), busy_w=_array(each.busy_w for each in watts),
        power_sources=tuple(each.provenance for each in watts),
        error_gradient=error_gradient,
        error_copy=_errors(step.copy_s for step in each),
        error_update=_errors(step.update_s for step in each),
        error_service=_errors(step.service_s for step in each),
        error_idle=_array(each.idle_error for each in watts),
        error_busy=_array(each.busy_error for each in watts),
        left_out=left_out,
        batches=batches,
        strategy=strategy,
        notes=(
            *exchange.notes(found, first),
            *codec_cost.notes(found, each),
            *_batch_notes(steps, batch),
            *link_costs.unlike_measured(profile, rates),
            *_link_notes(names, pairs[0] + pairs[1]),
            *_sensor_notes(profile, steps),
            *(f"{name}: {note}" for name, step in steps.items() for note in repeats.notes(step)),
        ),
    )  # fmt: skip


def _batch_notes(steps: Mapping[str, StepProfile], batch: int) -> list[str]:
    outside = [name for name, step in steps.items() if not max(1, step.batch // 2) <= batch <= step.batch]
    if not outside:
        return []
    return [f"extrapolated: batch size {batch} lies outside what was timed on {', '.join(outside)}"]


def _link_notes(names: Sequence[str], exchange_s: Floats) -> list[str]:
    missing = [f"{names[i]}-{names[k]}" for i, k in np.argwhere(~np.isfinite(exchange_s)) if i <= k]
    if not missing:
        return []
    return [f"links not measured, so neither end serves the other: {', '.join(missing)}"]


def _sensor_notes(profile: Profile, steps: Mapping[str, StepProfile]) -> list[str]:
    windows = {name: (step.window, profile.devices[name].idle) for name, step in steps.items()}
    return [
        f"{name}: {note}"
        for name, (busy, idle) in windows.items()
        for note in disagreements(busy) or (disagreements(idle) if idle else ())
    ]


def _check_names(profile: Profile, option: str, names: Sequence[str] | Mapping[str, float]) -> None:
    for name in names:
        if name not in profile.devices:
            raise PlanError(f"{option} {name}: no such device; devices: {', '.join(profile.devices)}")


def _cores(device: DeviceProfile) -> float:
    assert device.facts is not None
    return device.facts.usable_cores


def _means(samples: Iterable[Samples]) -> Floats:
    return _array(mean(each.values) if each.values else 0.0 for each in samples)


def _errors(samples: Iterable[Samples]) -> Floats:
    return _array(standard_error(each) for each in samples)


def _array(values: Iterable[float]) -> Floats:
    return np.fromiter(values, np.float64)
