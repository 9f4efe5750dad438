"""Costs are what a step takes on every device and an exchange on every pair, without contention."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import TORCH, Engine
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from backends.streams.spec import StreamSpec
from planner.arrays import Floats
from planner.predict import (
    batch_shares,
    batch_size,
    compressor_costs,
    device_costs,
    kernel_mates,
    link_costs,
    step_memory,
    stream_rates,
    torch_costs,
)
from planner.predict.batch_shares import BatchShares
from planner.predict.batch_size import ANY, BatchSizes, RunLength
from planner.predict.device_costs import DeviceCosts, wattage
from planner.predict.device_timings import gradient_times, pick
from planner.predict.kernel_mates import KernelMates
from planner.predict.link_costs import PairCosts
from planner.predict.participants import nobody, participants
from planner.predict.sample_efficiency import RoundsEfficiency
from planner.predict.step_memory import Further, ServerRoom, StepRoom
from planner.predict.stream_rates import StreamRates
from planner.predict.torch_costs import TorchCosts
from planner.profile import data_wait
from planner.profile.file import Profile
from planner.profile.power_readings import disagreements
from planner.provenance import Provenance
from profilers.mixed_precision import FP32
from profilers.records.steps import StepProfile

#: The engine of a run for which none is named.
OWN_ENGINE = Engine()


class ModelErrors(NamedTuple):
    """Relative errors that no measured mean tells: of an exchange's time, and of a whole run's."""

    exchange: float = 0.0
    run: float = 0.0


class Costs(NamedTuple):
    """Measured, uncontended costs of one model at one batch size on N devices.

    names, frameworks, power_sources: of the devices, in the order of all arrays.
    batch: images of a worker's step.
    batches: images and steps by the number of members, where batches grow or arrive in streams.
    up_bytes, down_bytes: as in ``MessageBytes``.
    left_out: the reason by device that cannot be a member.
    what_if: options that ask for something else than what was profiled.
    notes: what may change what the operator does, the most important first; details: how costs
        came about.
    server_room: the main memory of hosts of a parameter server.
    too_small_alone: the reason by device that has the memory of a member, but not to train alone.
    torch: of a run by torch.distributed; None for the planner's own engine.
    job, samples, micro_batch, precision: as in ``Plan``.
    shares: of a global batch; None where all have the same batch. ``batch`` is then that of the
        steps that were asked for.
    state_bytes: of what a model has beside its trained weights.
    rounds_efficiency: as in ``RunLength``; run_steps: its steps.
    model_errors: see ``calibration``.
    streams: as which samples arrive; None where they are there from the start.
    arriving_batches: (N,) images of a step where batches follow streams, else None.
    rates_seed: of the rates of streams that are drawn.
    mates: what devices that share a kernel are slowed by; None where none do.
    """

    names: tuple[str, ...]
    frameworks: tuple[str, ...]
    power_sources: tuple[Provenance, ...]
    model: str
    fingerprint: str
    batch: int
    batches: BatchSizes
    strategy: Strategy
    up_bytes: int
    down_bytes: int
    devices: DeviceCosts
    pairs: PairCosts
    left_out: dict[str, str]
    what_if: tuple[str, ...]
    notes: tuple[str, ...]
    details: tuple[str, ...]
    server_room: ServerRoom
    too_small_alone: dict[str, str]
    torch: TorchCosts | None = None
    job: bool = False
    samples: int | None = None
    micro_batch: int = 0
    precision: str = FP32
    shares: BatchShares | None = None
    state_bytes: int = 0
    rounds_efficiency: RoundsEfficiency | None = None
    run_steps: int | None = None
    model_errors: ModelErrors = ModelErrors()
    streams: StreamRates | None = None
    arriving_batches: Floats | None = None
    rates_seed: int = 0
    mates: KernelMates | None = None

    @property
    def engine(self) -> Engine:
        """What moves the gradients."""
        return OWN_ENGINE if self.torch is None else self.torch.engine

    def local_exchange_s(self, measured_s: Floats, part: float = 1.0) -> Floats:
        """(N,) seconds of a part of an exchange within each device, of a worker beside its server.

        measured_s: (N,) by the probe. On one core or less a few messages can be over before a quota
        takes effect.
        """
        cores = self.devices.cores
        handled_s = np.diagonal(self.pairs.host_stolen_cpu_s) / cores
        return np.asarray(np.maximum(np.where(cores > 1, measured_s, 0.0), part * handled_s))

    def with_gradients(self, gradient_s: Floats) -> "Costs":
        """The same where gradients, and their processor time, take longer or shorter: (N,) each."""
        step_cpu_s = self.devices.step_cpu_s * gradient_s / self.devices.gradient_s
        return self._replace(devices=self.devices._replace(gradient_s=gradient_s, step_cpu_s=step_cpu_s))

    def with_slower_gradients(self, factors: Floats) -> "Costs":
        """The same where gradients of any number of images take so many times as long: (N,)."""
        found, shares = self.with_gradients(self.devices.gradient_s * factors), self.shares
        return found._replace(
            devices=found.devices._replace(image_s=self.devices.image_s * factors),
            shares=shares and shares._replace(gradient_s=shares.gradient_s * factors[:, None]),
        )


def costs_of(
    profile: Profile,
    model: str | None = None,
    framework: str | None = None,
    batch: int | None = None,
    rates: Mapping[str, float] | None = None,
    include: Sequence[str] = (),
    strategy: Strategy = PARAMETER_SERVER,
    run: RunLength = ANY,
    engine: Engine = OWN_ENGINE,
    allow_plaintext: bool = False,
    global_batch: int | None = None,
    clips: bool = False,
    stream: StreamSpec | None = None,
) -> Costs:
    """Costs on every device that was profiled fully; arguments are those of ``RecommendRequest``.

    include: devices that must not be left out.
    run: by which batches may grow.
    engine: with torch.distributed, ``strategy`` is an all-reduce; allow_plaintext: as ``unable``.
    global_batch: images that all members share in a step, in place of ``batch``.
    clips: whether gradients are clipped by their norm.
    stream: as which samples arrive.
    Raises PlanError naming what is missing.
    """
    rates = rates or {}
    model = pick(profile, "model", model)
    found = participants(
        profile, model, framework, batch, strategy, engine, allow_plaintext, global_batch, clips, stream
    )
    found.check_names(profile, "--rate", rates, "leave the option out")
    found.check_names(profile, "--include", include, "do not include it")
    if not found.steps:
        raise nobody(found, profile, model, engine, batch)
    steps, rooms, batch = found.steps, found.rooms, found.batch
    first, with_torch = next(iter(steps.values())), engine.name == TORCH
    names, timed = tuple(steps), list(steps.values())
    sizes = compressor_costs.message_bytes(strategy, first, len(steps))
    caps = {name: link_costs.cap_bytes_per_s(profile.devices[name], rates.get(name)) for name in names}
    watts = {name: wattage(profile.devices[name], step) for name, step in steps.items()}
    pairs = link_costs.of_pairs(profile, steps, caps, sizes)
    unlike = {f"--batch-size {batch}" for step in timed if step.planned_batch != batch and global_batch is None}
    shares = None if global_batch is None else batch_shares.of_devices(profile, steps, rooms, global_batch, strategy)
    alone = {
        name: StepRoom.on(profile.devices[name], step, Further.alone(step, strategy.optimizer.name))
        for name, step in steps.items()
    }
    usual = [batch] * len(steps) if shares is None else shares.even().tolist()
    streams = None if stream is None else stream_rates.of_devices(profile, steps, stream, run.rates_seed)
    follows = streams is not None and strategy.batching == "stream"
    arriving = None
    if strategy.batching == "stream":
        arriving = batch_size.drawn(names, run.rates_seed) if streams is None else streams.batches()
        run = run._replace(arriving=float(arriving.mean()))
    return Costs(
        names=names,
        frameworks=tuple(step.framework for step in timed),
        power_sources=tuple(each.provenance for each in watts.values()),
        model=first.model,
        fingerprint=first.fingerprint,
        batch=batch,
        batches=(
            batch_size.of_run(strategy, len(steps), batch, run)
            if shares is None
            else batch_size.of_global(shares.size, len(steps), batch, run)
        ),
        strategy=strategy,
        up_bytes=sizes.up,
        down_bytes=sizes.down,
        devices=device_costs.of_devices(profile, steps, watts, caps, usual, strategy),
        pairs=pairs,
        left_out=found.left_out,
        what_if=(*(f"--rate {name}" for name in rates), *unlike),
        notes=(
            *_link_notes(names, pairs.up_s + pairs.down_s),
            *_sensor_notes(profile, steps),
            *(f"{name}: {note}" for name, step in steps.items() for note in data_wait.notes(step)),
            *link_costs.unlike_measured(profile, rates),
            *(_batch_notes(profile, steps, batch) if shares is None else ()),
            *(torch_costs.notes(engine) if with_torch else ()),
        ),
        details=(
            *batch_size.notes(strategy, run, streams is not None),
            *(stream_rates.notes(profile, steps, streams, follows) if streams is not None else ()),
            *kernel_mates.notes(profile.devices, steps),
            *_precision_notes(first),
        ),
        server_room=ServerRoom.among(profile, steps, strategy),
        too_small_alone=step_memory.too_small(alone, steps, global_batch or batch),
        torch=torch_costs.of_profile(profile, steps, caps, engine) if with_torch else None,
        job=first.job,
        samples=first.samples,
        micro_batch=first.micro_batch,
        precision=first.precision,
        shares=shares,
        state_bytes=first.state_bytes,
        rounds_efficiency=run.rounds_efficiency,
        run_steps=run.steps,
        streams=streams,
        arriving_batches=arriving,
        rates_seed=run.rates_seed,
        mates=kernel_mates.of_steps(steps),
    )


def _batch_notes(profile: Profile, steps: Mapping[str, StepProfile], batch: int) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, step in steps.items():
        smallest, largest = gradient_times(profile.devices[name], step).sizes
        if not smallest <= batch <= largest:
            names.setdefault(f"{smallest} to {largest}", []).append(name)
    if not names:
        return []
    timed = "; ".join(f"{sizes} on {', '.join(each)}" for sizes, each in names.items())
    return [
        f"--batch-size {batch} lies outside the batch sizes that were timed ({timed}): step times follow the line "
        "through these, and the intervals grow with the distance"
    ]


def _link_notes(names: Sequence[str], exchange_s: Floats) -> list[str]:
    missing = [f"{names[i]}-{names[k]}" for i, k in np.argwhere(~np.isfinite(exchange_s)) if i <= k]
    return [f"no cluster exchanges over links that were not measured: {', '.join(missing)}"] if missing else []


def _sensor_notes(profile: Profile, steps: Mapping[str, StepProfile]) -> list[str]:
    windows = {name: (step.window, profile.devices[name].idle) for name, step in steps.items()}
    return [
        f"{name}: {note}"
        for name, (busy, idle) in windows.items()
        for note in disagreements(busy) or (disagreements(idle) if idle else ())
    ]


def _precision_notes(step: StepProfile) -> list[str]:
    computed = f"steps compute in {step.precision}, as they were profiled; weights and gradients stay {FP32}"
    return [] if step.precision == FP32 else [computed]
