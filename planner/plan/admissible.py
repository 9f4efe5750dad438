"""Which clusters are candidates: allowed, connected, able to share the batch, with the memory."""

import numpy as np

from planner.errors import PlanError
from planner.predict.clusters import Candidates, enumerate_clusters, of_peers
from planner.predict.cycle import shared_batches
from planner.predict.inputs import Inputs
from planner.predict.request import RecommendRequest
from planner.predict.training import Training
from planner.units import bytes_text


def admissible(inputs: Inputs, training: Training, request: RecommendRequest) -> tuple[Candidates, list[str]]:
    """The candidates, and notes on devices whose memory limits them. PlanError: none are left."""
    allowed = _sharing(inputs, _allowed(inputs, training, request))
    candidates, notes = _with_room_alone(inputs, training, allowed)
    if request.settings.engine.is_sharded:
        candidates, few = _with_room_for_shares(inputs, training, candidates)
        notes += few
    if not request.strategy.through_server:
        return of_peers(candidates, inputs.pairs.reachable), notes
    candidates, too_small = _with_room_for_servers(inputs, training, candidates)
    return candidates, notes + too_small


def _allowed(inputs: Inputs, training: Training, request: RecommendRequest) -> Candidates:
    if request.server in training.left_out:
        reason = training.left_out[request.server]
        raise PlanError(f"--server {request.server}: {reason}; choose another or profile it again")
    excluded = [name for name in request.exclude if name not in training.left_out]
    return enumerate_clusters(inputs.names, inputs.pairs.reachable, request.include, excluded, request.server)


def _sharing(inputs: Inputs, candidates: Candidates) -> Candidates:
    """The candidates that can compute the global batch, if there is one. PlanError: none can."""
    if inputs.batches.shares is None:
        return candidates
    members = candidates.members(len(inputs.names))
    possible = inputs.batches.shares.possible(members)
    if not possible.any():
        bounds = zip(inputs.names, inputs.batches.shares.least, inputs.batches.shares.most, strict=True)
        each = ", ".join(f"{name} {least} to {most}" for name, least, most in bounds)
        raise PlanError(
            f"--global-batch {inputs.batches.shares.size}: no cluster can divide it; by what was profiled and by "
            f"memory, batches may be: {each}; profile another batch size"
        )
    return candidates.at(possible)


def _with_room_alone(inputs: Inputs, training: Training, candidates: Candidates) -> tuple[Candidates, list[str]]:
    """The candidates without devices whose memory is too small to train alone, and notes on these.

    PlanError: there are none left.
    """
    short = np.array([name in training.too_small_alone for name in inputs.names])
    out = (candidates.members(len(inputs.names)).sum(axis=1) == 1) & short[candidates.hosts]
    names = [inputs.names[host] for host in candidates.hosts[out]]
    notes = [f"{name} cannot train alone: {training.too_small_alone[name]}" for name in names]
    if out.all():
        raise PlanError("; ".join([*notes, "no cluster is left"]))
    return candidates.at(~out), notes


def _with_room_for_shares(inputs: Inputs, training: Training, candidates: Candidates) -> tuple[Candidates, list[str]]:
    """The candidates with so many members that each has the memory of a share, or with one device.

    PlanError: there are none left.
    """
    least = np.array([training.least_members[name] for name in inputs.names])
    members = candidates.members(len(inputs.names))
    count = members.sum(axis=1)
    fits = (count == 1) | ((members * least).max(axis=1) <= count)
    notes = [
        f"{name} has the memory of a share only in clusters of {each} or more"
        for name, each in zip(inputs.names, least.tolist(), strict=True)
        if each > 2
    ]
    if not fits.any():
        raise PlanError("; ".join([*notes, "no cluster is left"]))
    return candidates.at(fits), notes


def _with_room_for_servers(inputs: Inputs, training: Training, candidates: Candidates) -> tuple[Candidates, list[str]]:
    """The candidates whose host has the main memory for its server, and notes on the others.

    PlanError: there are none left.
    """
    workers = candidates.members(len(inputs.names)).sum(axis=1)
    batches = np.full(len(workers), inputs.batches.usual)
    if inputs.batches.shares is not None:
        shared = shared_batches(inputs, candidates.members(len(inputs.names)))
        batches = shared[np.arange(len(workers)), candidates.hosts]
    needed = training.server_headroom.needed_bytes(workers)
    left = training.server_headroom.left_bytes(candidates.hosts, batches)
    fits = (workers == 1) | (needed <= left)
    notes = []
    for host in np.unique(candidates.hosts[~fits]):
        short = np.flatnonzero(~fits & (candidates.hosts == host))
        first = short[np.argmin(workers[short])]
        notes.append(
            f"{inputs.names[host]} hosts no server of {workers[first]} or more workers: its arrays take "
            f"{bytes_text(float(needed[first]))} of memory, and a step of batch {batches[first]} leaves "
            f"{bytes_text(float(left[first]))}"
        )
    if not fits.any():
        remedy = "end other programs there, take a smaller batch, or try --engine auto, which may need no server"
        raise PlanError("; ".join([*notes, f"no cluster is left; {remedy}"]))
    return candidates.at(fits), notes
