"""A training to predict: the inputs of the model from a profile, and what a plan repeats of it."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import TORCH
from backends.strategies.strategy import Strategy
from backends.training.run_settings import RunSettings
from planner.arrays import Floats
from planner.predict import batches, buckets, contention, global_batch, links, messages, shortage, stream_waits
from planner.predict.batches import TRAINING_SAMPLES, Batches, RunLength
from planner.predict.gradient_times import gradient_times, image_s
from planner.predict.inputs import Devices, Errors, Inputs, Watts
from planner.predict.memory import Further, ServerHeadroom, StepHeadroom
from planner.predict.participants import Participants, nobody, participants
from planner.predict.request import RecommendRequest
from planner.predict.shortage import StepOffer
from planner.predict.stream_waits import StreamRates
from planner.predict.timings import pick
from planner.predict.watts import wattage
from planner.profile import data_wait
from planner.profile.file import Profile
from planner.profile.power_readings import disagreements, rejected
from profilers.mixed_precision import FP32
from profilers.records.readings import Samples
from profilers.records.steps import ComputeSettings, StepProfile
from profilers.stats import mean

Steps = Mapping[str, StepProfile]


class Training(NamedTuple):
    """What is trained, and on whom; devices are those of ``Inputs``.

    settings: of the run, with what the profile says where nothing else was asked for.
    samples: of the data set.
    left_out: the reason by device that cannot be a member.
    least_members: as of ``Participants``.
    too_small_alone: the reason by device that has the memory of a member, but not to train alone.
    offers: by device whose memory is too small, what would fit there.
    what_if: options that ask for something else than what was profiled.
    notes: what may change what the operator does, the most important first; details: how the
        inputs came about.
    server_headroom: the main memory of hosts of a parameter server.
    evaluation_s: of one sample of the test set, NaN where it is unknown.
    compute: how each was profiled, and trains.
    """

    settings: RunSettings
    fingerprint: str
    samples: int | None
    left_out: dict[str, str]
    least_members: dict[str, int]
    too_small_alone: dict[str, str]
    offers: dict[str, tuple[StepOffer, ...]]
    what_if: tuple[str, ...]
    notes: tuple[str, ...]
    details: tuple[str, ...]
    server_headroom: ServerHeadroom
    evaluation_s: Floats
    compute: tuple[ComputeSettings, ...]


def prepare(profile: Profile, request: RecommendRequest) -> tuple[Inputs, Training]:
    """What every device that was profiled fully takes. Raises PlanError naming what is missing."""
    model = pick(profile, "model", request.settings.model or None)
    found = participants(profile, model, request)
    found.check_names(profile, "--rate", request.rates, "leave the option out")
    found.check_names(profile, "--include", request.include, "do not include it")
    if not found.steps:
        raise nobody(found, profile, model, request.settings)
    first = next(iter(found.steps.values()))
    settings = request.settings._replace(
        model=model,
        job=first.setup.job,
        steps=request.settings.steps or profile.steps_planned,
        batch=found.batch,
        compute=first.setup.compute,
    )
    made = _inputs(profile, found, request._replace(settings=settings))
    return made, _training(profile, found, made, settings, request)


def _inputs(profile: Profile, found: Participants, request: RecommendRequest) -> Inputs:
    steps, names, timed, settings = found.steps, tuple(found.steps), list(found.steps.values()), request.settings
    caps = {name: links.cap_bytes_per_s(profile.devices[name], request.rates.get(name)) for name in names}
    arrivals = None if settings.stream is None else stream_waits.of_devices(profile, steps, settings)
    run, made = _batches(profile, found, request, arrivals)
    usual = [found.batch] * len(steps) if made.shares is None else made.shares.even().tolist()
    pairs, link_error = links.of_pairs(profile, steps, caps)
    watts = [wattage(profile.devices[name], step) for name, step in steps.items()]
    gradients = [
        gradient_times(profile.devices[name], step).at(size)
        for (name, step), size in zip(steps.items(), usual, strict=True)
    ]
    return Inputs(
        names=names,
        frameworks=tuple(step.framework for step in timed),
        devices=_devices(profile, steps, _array(each.seconds for each in gradients), caps, settings.strategy),
        pairs=pairs,
        watts=Watts(
            _array(each.idle_w for each in watts),
            _array(each.busy_w for each in watts),
            tuple(each.provenance for each in watts),
        ),
        errors=Errors(
            gradient=_array(each.error for each in gradients),
            contention=_array(step.contention.error if step.contention else 0.0 for step in timed),
            link=link_error,
            idle_w=_array(each.idle_error for each in watts),
            busy_w=_array(each.busy_error for each in watts),
            stream=np.zeros(len(names)) if arrivals is None else arrivals.error,
        ),
        message=messages.message_bytes(settings.strategy, timed[0], len(steps)),
        strategy=settings.strategy,
        engine=settings.engine,
        run=run,
        batches=made,
        streams=arrivals,
        torch=buckets.of_steps(timed, settings.engine) if settings.engine.name == TORCH else None,
    )


def _batches(
    profile: Profile, found: Participants, request: RecommendRequest, arrivals: StreamRates | None
) -> tuple[RunLength, Batches]:
    """The run's length and its batches. arrivals: the streams of samples, if they arrive."""
    steps, settings = found.steps, request.settings
    samples = request.learning.training_samples or next(iter(steps.values())).setup.samples or TRAINING_SAMPLES
    run = RunLength(settings.steps, request.learning._replace(training_samples=samples))
    if request.global_batch is not None:
        shares = global_batch.shares_of_devices(profile, steps, found.headroom, request.global_batch, settings.strategy)
        return run, Batches(found.batch, batches.of_global(shares.size, len(steps), found.batch, run), shares)
    arriving = None
    if settings.strategy.batching == "stream":
        arriving = batches.drawn(tuple(steps), settings.rates_seed) if arrivals is None else arrivals.batches()
        run = run._replace(arriving=float(arriving.mean()))
    sizes = batches.of_run(settings.strategy, len(steps), found.batch, run)
    return run, Batches(found.batch, sizes, arriving=arriving)


def _devices(
    profile: Profile, steps: Steps, gradient_s: Floats, caps: Mapping[str, float], strategy: Strategy
) -> Devices:
    """gradient_s: (N,) of the devices in ``steps``, in that order; caps: bytes/s by device."""
    timed, optimizer = list(steps.values()), strategy.optimizer.name
    cpu_s = _array(step.cpu_s_per_step if step.setup.accelerator == "cpu" else 0.0 for step in timed)
    return Devices(
        gradient_s=gradient_s,
        image_s=_array(image_s(step) for step in timed),
        data_s=gradient_s * _array(data_wait.share(step) for step in timed),
        copy_s=_means(step.copy_s for step in timed),
        encode_s=_array(messages.encode_s(strategy, step) for step in timed),
        add_s=_array(messages.add_s(strategy, step) for step in timed),
        update_s=_array(messages.update_s(optimizer, step) for step in timed),
        service_s=_array(messages.service_s(strategy, step) for step in timed),
        build_s=_array(step.costs.build_s for step in timed),
        first_step_s=_array(step.costs.first_step_s for step in timed),
        cpu_s=cpu_s * gradient_s / _means(step.gradient_s for step in timed),
        cores=_array(profile.devices[name].cores or 1.0 for name in steps),
        in_bytes_per_s=_array(links.capacity_bytes_per_s(profile, name, "in", caps[name]) for name in steps),
        out_bytes_per_s=_array(links.capacity_bytes_per_s(profile, name, "out", caps[name]) for name in steps),
        contention=contention.of_steps(steps),
    )


def _training(
    profile: Profile, found: Participants, made: Inputs, settings: RunSettings, request: RecommendRequest
) -> Training:
    steps, first = found.steps, next(iter(found.steps.values()))
    alone = {
        name: StepHeadroom.on(profile.devices[name], step, Further.alone(step, made.strategy.optimizer.name))
        for name, step in steps.items()
    }
    short_alone = shortage.too_small(alone, steps, request.global_batch or found.batch)
    evaluation_s = [step.costs.evaluation_s for step in steps.values()]
    unlike = request.global_batch is None and any(step.planned_batch != found.batch for step in steps.values())
    batch_asked = [f"--batch-size {found.batch}"] if unlike else []
    return Training(
        settings=settings,
        fingerprint=first.setup.fingerprint,
        samples=first.setup.samples,
        left_out=found.left_out,
        least_members=found.least_members,
        too_small_alone={name: f"{first.model}: {short.text}" for name, short in short_alone.items()},
        offers={name: short.offers for name, short in {**short_alone, **found.too_small}.items() if short.offers},
        what_if=(*(f"--rate {name}" for name in request.rates), *batch_asked),
        notes=tuple(_notes(profile, steps, made, request.rates)),
        details=tuple(_details(profile, steps, made, settings)),
        server_headroom=ServerHeadroom.among(profile, steps, made.strategy),
        evaluation_s=_array(math.nan if each is None else each for each in evaluation_s),
        compute=tuple(step.setup.compute for step in steps.values()),
    )


def _notes(profile: Profile, steps: Steps, made: Inputs, rates: Mapping[str, float]) -> Iterable[str]:
    yield from _link_notes(made)
    for name, step in steps.items():
        idle = profile.devices[name].idle
        sensors = disagreements(step.window) or (disagreements(idle) if idle else ())
        yield from (f"{name}: {note}" for note in (*sensors, *rejected(idle, step.window), *data_wait.notes(step)))
    yield from links.unlike_measured(profile, rates)
    if made.batches.shares is None:
        yield from _batch_notes(profile, steps, made.batches.usual)
    if made.engine.hook == "powersgd":
        yield (
            f"hook=powersgd: predicted as after its first {made.engine.start:,} rounds, which send all; variables "
            "count as square matrices, and the time to factor them was not profiled"
        )


def _details(profile: Profile, steps: Steps, made: Inputs, settings: RunSettings) -> Iterable[str]:
    yield from batches.notes(settings, made.run)
    if made.streams is not None:
        yield from stream_waits.notes(profile, steps, made.streams, made.batches.arriving is not None)
    yield from contention.notes(profile.devices, steps)
    for name, step in steps.items():
        compute = step.setup.compute
        parts = [f"in parts of {compute.micro_batch} samples at most"] if compute.micro_batch else []
        parts += ["with activation checkpointing"] if compute.activation_checkpointing else []
        if parts:
            yield f"{name} computes {' and '.join(parts)}, as it was profiled"
    if settings.compute.precision != FP32:
        yield f"steps compute in {settings.compute.precision}, as they were profiled; weights and gradients stay {FP32}"


def _batch_notes(profile: Profile, steps: Steps, batch: int) -> Iterable[str]:
    names: dict[str, list[str]] = {}
    for name, step in steps.items():
        smallest, largest = gradient_times(profile.devices[name], step).sizes
        if not smallest <= batch <= largest:
            names.setdefault(f"{smallest} to {largest}", []).append(name)
    if names:
        timed = "; ".join(f"{sizes} on {', '.join(each)}" for sizes, each in names.items())
        yield (
            f"--batch-size {batch} lies outside the batch sizes that were timed ({timed}): step times follow the line "
            "through these, and the intervals grow with the distance"
        )


def _link_notes(made: Inputs) -> Iterable[str]:
    missing = [f"{made.names[i]}-{made.names[k]}" for i, k in np.argwhere(~made.pairs.reachable) if i <= k]
    if missing:
        yield f"no cluster exchanges over links that were not measured: {', '.join(missing)}"


def _means(samples: Iterable[Samples]) -> Floats:
    return _array(mean(each.values) if each.values else 0.0 for each in samples)


def _array(values: Iterable[float]) -> Floats:
    return np.fromiter(values, np.float64)
