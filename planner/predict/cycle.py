"""The step cycle T_i^C of Eq. 2: a step of each worker in each candidate cluster.

Gu et al. tune the factors alpha and beta of Eq. 2 and 3 by hand. Here the cycle follows from

    cycle = max(compute(batch) + exchange(kind), batch / arrival rate).

The computing depends on the batch, and on who shares a kernel; the exchange on its kind
(``planner.predict.kinds``). Where samples arrive in streams, a step of b samples takes no less time
than these need to arrive; where members wait for one another, the slowest stream holds all up.
"""

import math
from collections.abc import Callable

import numpy as np

from backends.strategies.engine import TORCH, Engine
from backends.strategies.local_updates import LocalSpec
from backends.strategies.strategy import Strategy
from planner.arrays import Bools, Floats, Ints
from planner.predict import stream_waits
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import async_server, barrier, ddp, gossip, rounds, shards
from planner.predict.kinds.async_server import serving_s
from planner.predict.kinds.cycles import COMPUTE, Cycles, served
from planner.predict.kinds.rounds import Rounds

#: Rounds of one step, which come first where ``after`` is given.
ONE_BY_ONE = LocalSpec.from_text("steps:every=1")
#: The kinds of exchange, by which the errors of predictions are told apart.
ASYNC_SERVER, BARRIER, DDP, SHARDS = "asynchronous server", "barrier", "ddp", "shards"
GOSSIP, ROUNDS = "gossip", "rounds"
KINDS = (ASYNC_SERVER, BARRIER, DDP, SHARDS, GOSSIP, ROUNDS)
#: What a device that trains alone is filed under, which exchanges nothing.
ALONE = "alone"

Solver = Callable[[Inputs, Candidates, Floats], Cycles]
_SOLVERS: dict[str, Solver] = {
    ASYNC_SERVER: async_server.cycles, BARRIER: barrier.cycles, DDP: ddp.cycles, SHARDS: shards.cycles,
    GOSSIP: gossip.cycles,
}  # fmt: skip


def kind_of(strategy: Strategy, engine: Engine) -> str:
    """The kind of exchange, one of KINDS."""
    return ROUNDS if strategy.local else _kind_within(strategy, engine)


def _kind_within(strategy: Strategy, engine: Engine) -> str:
    """The kind of a single exchange, which rounds wrap."""
    sync = strategy.sync
    if engine.name == TORCH:
        return SHARDS if engine.is_sharded else DDP
    if strategy.through_server:
        return BARRIER if not sync.staleness and not sync.backups else ASYNC_SERVER
    return BARRIER if math.isfinite(sync.staleness) or sync.waits_for(2) > 1 else GOSSIP


def cycles(inputs: Inputs, candidates: Candidates, steps: Floats | None = None) -> tuple[Cycles, Floats]:
    """Cycles of all candidates, and (C, N) cycles if nobody waited for samples.

    A device alone updates by itself and uses no network.
    steps: (C,) of the runs, the first of which may be exchanged one by one before rounds begin, so
        that cycles are means over the run; None for those of rounds.
    """
    free = _rounds_of(inputs, candidates) if inputs.strategy.local else _solved(inputs, candidates)
    local = inputs.strategy.local
    if local and steps is not None and local.after:
        one_by_one = _rounds_of(inputs._replace(strategy=inputs.strategy._replace(local=ONE_BY_ONE)), candidates)
        free = _one_after_the_other(one_by_one, free, np.minimum(1.0, local.after / steps))
    return _held_up(inputs, candidates, free), free.cycle_s


def batches(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C, N) mean samples of a member's step; for no member, some number."""
    members = candidates.members(len(inputs.names))
    if inputs.batches.shares is not None:
        return shared_batches(inputs, members).astype(np.float64)
    if inputs.batches.arriving is not None:
        return np.broadcast_to(inputs.batches.arriving, members.shape)
    if inputs.strategy.batching != "dynamic":
        return np.full(members.shape, float(inputs.batches.usual))
    slower = inputs.devices.contention.of(members)
    more_s = _dealt_s(inputs, members) - inputs.devices.gradient_s * slower
    return np.asarray(np.maximum(0.0, inputs.batches.usual + more_s / (inputs.devices.image_s * slower)))


def shared_batches(inputs: Inputs, members: Bools) -> Ints:
    """(C, N) samples of each member of clusters that share a global batch; 0 for no member."""
    assert inputs.batches.shares is not None, "there is a global batch"
    return inputs.batches.shares.batches(members, inputs.devices.contention)


def gradients_s(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C, N) seconds of the gradients of the batches that members have; 0 for no member."""
    members, devices = candidates.members(len(inputs.names)), inputs.devices
    if inputs.batches.shares is not None:
        found = inputs.batches.shares.gradients(shared_batches(inputs, members))
    elif inputs.batches.arriving is not None:
        found = np.maximum(0.0, devices.gradient_s + (inputs.batches.arriving - inputs.batches.usual) * devices.image_s)
    elif inputs.strategy.batching == "dynamic":
        return np.where(members, _dealt_s(inputs, members), 0.0)
    else:
        found = devices.gradient_s
    return np.where(members, found * devices.contention.of(members), 0.0)


def _dealt_s(inputs: Inputs, members: Bools) -> Floats:
    """(C, N) seconds of gradients where batches are dealt out so that all end at once (DLion).

    They solve sum_i (t - fixed_i) / image_i = n b, where the first image costs fixed_i more.
    """
    n, slower = members.sum(axis=1), inputs.devices.contention.of(members)
    gradient_s, image_s = inputs.devices.gradient_s * slower, inputs.devices.image_s * slower
    fixed_s = gradient_s - inputs.batches.usual * image_s
    together = np.where(members, 1 / image_s, 0.0).sum(axis=1)
    fixed = np.where(members, fixed_s / image_s, 0.0).sum(axis=1)
    dealt_s = (n * inputs.batches.sizes.images[n] + fixed) / together
    return np.where((n > 1)[:, None], dealt_s[:, None], gradient_s)


def local_step_s(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C, N) seconds of a step that a member makes by itself; an update for no member."""
    return gradients_s(inputs, candidates) + inputs.devices.update_s


def rounds_of(inputs: Inputs, candidates: Candidates) -> Rounds:
    """The rounds of a strategy that has them. A device alone makes none."""
    members, local = candidates.members(len(inputs.names)), inputs.strategy.local
    alone = members.sum(axis=1) == 1
    exchange_s = np.zeros(alone.size)
    if local.seconds is None and local.every is None:
        exchange_s = np.where(alone, 0.0, _exchange_s(inputs, candidates, members))
    step_s = local_step_s(inputs, candidates)
    found = rounds.of_candidates(local, step_s, exchange_s, members, inputs.run.steps)
    return found._replace(steps=np.where(alone[:, None], 1.0, found.steps))


def settled(inputs: Inputs, candidates: Candidates, index: int) -> Inputs:
    """The inputs with a strategy whose rounds are those that were chosen for one candidate."""
    if not inputs.strategy.local:
        return inputs
    found = rounds_of(inputs, candidates.at(np.array([index]))).settled(inputs.strategy.local, 0)
    return inputs._replace(strategy=inputs.strategy.with_part("local", found.as_text()))


def images_factor(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C,) images that rounds of local steps take over those of one device alone; else 1."""
    efficiency = inputs.run.learning.rounds
    if efficiency is None:
        return np.ones(candidates.hosts.size)
    members, steps = candidates.members(len(inputs.names)), rounds_of(inputs, candidates).steps
    return efficiency.images_factor(
        steps, members, inputs.batches.sizes.images[members.sum(axis=1)], inputs.batches.usual
    )


def least_cycles_s(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C, N) seconds below which no step is, for samples have to arrive; 0 without streams."""
    members = candidates.members(len(inputs.names))
    if inputs.streams is None:
        return np.zeros(members.shape)
    arrive_s = batches(inputs, candidates) / inputs.streams.rate
    return stream_waits.least_cycles(arrive_s, _steps(inputs, candidates), members, _together(inputs))


def waiting_shares(inputs: Inputs, candidates: Candidates, free_s: Floats) -> Floats:
    """(C, N) shares of a member's time in which it waits for its own samples; 0 without streams.

    free_s: (C, N) cycles if nobody waited for samples.
    """
    if inputs.streams is None:
        return np.zeros(free_s.shape)
    return stream_waits.waiting_shares(
        free_s, least_cycles_s(inputs, candidates), batches(inputs, candidates) / inputs.streams.rate,
        gradients_s(inputs, candidates), _steps(inputs, candidates), candidates.members(len(inputs.names)),
        _together(inputs),
    )  # fmt: skip


def _solved(inputs: Inputs, candidates: Candidates) -> Cycles:
    return _with_alone(inputs, candidates, _exchanged(inputs, candidates, gradients_s(inputs, candidates)))


def _exchanged(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    return _SOLVERS[_kind_within(inputs.strategy, inputs.engine)](inputs, candidates, gradient_s)


def _with_alone(inputs: Inputs, candidates: Candidates, found: Cycles) -> Cycles:
    """The cycles, with those of devices alone in their places."""
    members = candidates.members(len(inputs.names))
    alone = (members.sum(axis=1) == 1)[:, None]
    alone_s = np.where(members, gradients_s(inputs, candidates) + inputs.devices.update_s, np.inf)
    return Cycles(
        np.where(alone, alone_s, found.cycle_s),
        np.where(alone, members, found.busy),
        np.where(alone, np.eye(4)[COMPUTE], found.shares),
        np.where(alone, 0.0, found.network_bytes),
    )


def _rounds_of(inputs: Inputs, candidates: Candidates) -> Cycles:
    """Cycles of one step each, of rounds that are solved as steps with long gradients.

    Peers also send their state to all others in each round.
    """
    members = candidates.members(len(inputs.names))
    steps, step_s = rounds_of(inputs, candidates).steps, local_step_s(inputs, candidates)
    found = _exchanged(inputs, candidates, np.where(members, steps * step_s, 0.0))
    others = 0.0 if inputs.strategy.through_server else np.maximum(0, members.sum(axis=1) - 1)[:, None]
    sent_bytes = found.network_bytes + np.where(members, others * inputs.message.state, 0.0)
    found = found._replace(cycle_s=found.cycle_s / steps, network_bytes=sent_bytes / steps)
    return _with_alone(inputs, candidates, found)


def _exchange_s(inputs: Inputs, candidates: Candidates, members: Bools) -> Floats:
    """(C,) seconds of the slowest member's exchange, without contention where nobody waits."""
    if inputs.strategy.through_server and inputs.strategy.sync.staleness:
        up_s, down_s = (inputs.pairs.seconds(size) for size in inputs.message[:2])
        return np.asarray(np.where(members, up_s.T[candidates.hosts] + down_s[candidates.hosts], 0.0).max(axis=1))
    found = _exchanged(inputs, candidates, np.where(members, 1e-9, 0.0))
    return np.asarray(np.where(members, found.cycle_s, 0.0).max(axis=1))


def _one_after_the_other(first: Cycles, then: Cycles, part: Floats) -> Cycles:
    """Means over runs whose first cycles make a part of all steps, (C,), before the others."""
    rates = 1 / first.cycle_s, 1 / then.cycle_s  # 0 for no member
    first_s, then_s = part / rates[0].sum(axis=1), (1 - part) / rates[1].sum(axis=1)
    of_time = (first_s / (first_s + then_s))[:, None]
    rate = of_time * rates[0] + (1 - of_time) * rates[1]
    sent_bytes = of_time * rates[0] * first.network_bytes + (1 - of_time) * rates[1] * then.network_bytes
    return Cycles(
        cycle_s=np.divide(1.0, rate, out=np.full_like(rate, np.inf), where=rate > 0),
        busy=of_time * first.busy + (1 - of_time) * then.busy,
        shares=of_time * first.shares + (1 - of_time) * then.shares,
        network_bytes=np.divide(sent_bytes, rate, out=np.zeros_like(rate), where=rate > 0),
    )


def _held_up(inputs: Inputs, candidates: Candidates, free: Cycles) -> Cycles:
    """Cycles that are no shorter than samples take to arrive; a device idles while it waits.

    A server's host serves each of the others as often as this one asks.
    """
    if inputs.streams is None:
        return free
    cycle_s = np.maximum(free.cycle_s, least_cycles_s(inputs, candidates))
    kept = np.divide(free.cycle_s, cycle_s, out=np.ones_like(cycle_s), where=np.isfinite(cycle_s))
    busy = free.busy * kept
    if inputs.strategy.through_server:
        at = np.arange(len(cycle_s)), candidates.hosts
        exchange = served(inputs, candidates.members(len(inputs.names)), candidates.hosts)
        round_s = free.cycle_s * _steps(inputs, candidates)
        serving = serving_s(inputs, exchange, candidates.hosts) / round_s
        busy[at] = np.minimum(1.0, busy[at] + (serving * (kept - kept[at][:, None])).sum(axis=1))
    return free._replace(cycle_s=cycle_s, busy=busy)


def _steps(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C, N) steps of a member between two exchanges."""
    if inputs.strategy.local:
        return rounds_of(inputs, candidates).steps
    return np.ones((candidates.hosts.size, len(inputs.names)))


def _together(inputs: Inputs) -> bool:
    """Whether members wait for one another at each exchange, or at the latest after some."""
    return math.isfinite(inputs.strategy.sync.staleness)
