"""The members of a cluster as a plan tells of them: steps, watts, batches, and their streams."""

import math

import numpy as np

from planner.arrays import Floats, Ints
from planner.plan.file import PlannedFactors, PlannedStream, PlannedWatts, PlannedWorker
from planner.plan.standing import Part
from planner.predict import cycle
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds.shards import gather_s
from planner.predict.run import Factors, factors
from planner.predict.stream_waits import slowest_streams

#: What makes a member's cycle as long as it is; ``OF_OTHER`` is followed by names.
OWN_STREAM, OF_OTHER, STEPS = "its stream", "the stream of", "its steps"


def planned_workers(part: Part, index: int) -> tuple[PlannedWorker, ...]:
    """The members of one candidate."""
    candidates, candidate = part.predictions.candidates, part.candidate(index)
    found = factors(cycle.settled(part.inputs, candidates, index), candidates, index)
    gradient_s = cycle.gradients_s(part.inputs, candidate)[0]
    streams, batches = streams_of(part, index), batches_of(part, index)
    members, made = np.flatnonzero(candidate.members(len(part.inputs.names))[0]), []
    evaluation_s = part.training.evaluation_s + _gathering_s(part.inputs, members)
    for i in members.tolist():
        name = part.inputs.names[i]
        worker = _worker(part, index, i, found, float(gradient_s[i]))
        own = worker._replace(stream=streams.get(name), batch=batches.get(name))
        made.append(own._replace(evaluation_s=_known(evaluation_s[i])))
    return tuple(made)


def _gathering_s(inputs: Inputs, members: Ints) -> float:
    """Seconds that a sample of an evaluation waits until its batch has gathered the model."""
    if not inputs.engine.is_sharded or members.size < 2:
        return 0.0
    assert inputs.torch is not None, "the engine is torch.distributed"
    return gather_s(inputs, members) / (inputs.torch.model.micro_batch or inputs.batches.usual)


def _worker(part: Part, index: int, device: int, found: Factors, gradient_s: float) -> PlannedWorker:
    devices, watts, predictions = part.inputs.devices, part.inputs.watts, part.predictions
    alone = predictions.candidates.masks[index] == 1 << device
    updates_itself = alone or part.inputs.strategy.local
    after_gradient_s = (devices.update_s if updates_itself else devices.copy_s)[device]
    return PlannedWorker(
        name=part.inputs.names[device],
        steps=float(predictions.steps[index, device]),
        cycle_s=float(predictions.cycle_s[index, device]),
        build_s=float(predictions.start_s[index, device]),
        cores=float(devices.cores[device]),
        watts=PlannedWatts(
            _known(watts.idle_w[device]),
            _known(watts.busy_w[device]),
            _known(predictions.device_w[index, device]),
            watts.sources[device],
        ),
        factors=PlannedFactors(
            float(found.alpha_time[device]),
            float(found.beta_time[device]),
            _known(found.alpha_power[device]),
            _known(found.beta_power[device]),
        ),
        framework=part.inputs.frameworks[device],
        computing_s=gradient_s + float(after_gradient_s),
        compute=part.training.compute[device],
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def batches_of(part: Part, index: int) -> dict[str, int]:
    """Of the members of a candidate that share a global batch, by name; empty without one."""
    if part.inputs.batches.shares is None:
        return {}
    shared = cycle.shared_batches(part.inputs, part.candidate(index).members(len(part.inputs.names)))[0]
    return {name: int(batch) for name, batch in zip(part.inputs.names, shared, strict=True) if batch}


def streams_of(part: Part, index: int) -> dict[str, PlannedStream]:
    """Of the members of a candidate, by name; empty where all samples are there."""
    if part.inputs.streams is None:
        return {}
    found = part.predictions
    lasts_s = np.maximum(0.0, found.time_s[index] - found.start_s[[index]])
    return _planned_streams(part.inputs, part.candidate(index), found.free_s[[index]], found.cycle_s[[index]], lasts_s)


def _planned_streams(
    inputs: Inputs, candidate: Candidates, free_s: Floats, cycle_s: Floats, lasts_s: Floats
) -> dict[str, PlannedStream]:
    """By name, of the members of one candidate.

    free_s: (1, N) cycles if nobody waited for samples; cycle_s: (1, N); lasts_s: (1, N) seconds for
    which each makes steps.
    """
    streams = inputs.streams
    assert streams is not None, "the caller asked"
    samples, least_s = cycle.batches(inputs, candidate), cycle.least_cycles_s(inputs, candidate)
    waiting, surplus = cycle.waiting_shares(inputs, candidate, free_s), streams.surplus(samples, cycle_s)
    buffered = streams.buffered(samples, surplus, lasts_s)[0]
    held = least_s[0] > free_s[0]
    slowest = slowest_streams(free_s, least_s, samples / streams.rate)[0]
    of_other = f"{OF_OTHER} {', '.join(inputs.names[i] for i in np.flatnonzero(slowest))}"
    growth = np.zeros_like(surplus) if streams.truncates else surplus
    found = {}
    for i in np.flatnonzero(candidate.members(len(inputs.names))[0]):
        held_bytes = float(buffered[i] * streams.sample_bytes[i])
        found[inputs.names[i]] = PlannedStream(
            rate=float(streams.rate[i]),
            samples=float(samples[0, i]),
            free_s=float(free_s[0, i]),
            least_s=float(least_s[0, i]),
            bound_by=OWN_STREAM if slowest[i] else of_other if held[i] else STEPS,
            waiting_share=float(waiting[0, i]),
            growth=float(growth[0, i]),
            buffered=float(buffered[i]),
            buffered_bytes=None if math.isnan(held_bytes) else held_bytes,
        )
    return found
