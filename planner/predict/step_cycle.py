"""The step cycle T_i^C of Eq. 2 is the time of a step of each worker in each candidate cluster.

Gu et al. tune the factors alpha and beta of Eq. 2 and 3 by hand. Here the cycle follows from the
model of the cluster, and ``without_network`` gives the value that the paper's form divides by.
Batches, and rounds of local steps, make gradients longer in some candidates than in others. Streams
hold up steps whose samples arrive later than they are used (``stream_rates``).
"""

import math

import numpy as np

from planner.arrays import Bools, Floats
from planner.predict import cluster_cycle, local_rounds, stream_rates
from planner.predict.batch_size import gradients_s as of_run
from planner.predict.cluster_cycle import Cycles
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs
from planner.predict.local_rounds import Rounds

#: Rounds of one step, which come first where ``after`` is given.
ONE_BY_ONE = "steps:every=1"


def solve(costs: Costs, candidates: Candidates, steps: Floats | None = None) -> Cycles:
    """Cycles of all candidates. A device alone updates by itself and uses no network.

    steps: (C,) of the runs, the first of which may be exchanged one by one before rounds begin, so
        that cycles are means over the run; None for those of rounds.
    """
    if costs.strategy.local:
        found = _of_rounds(costs, candidates)
        if steps is None or not costs.strategy.local.after:
            return found
        one_by_one = _of_rounds(costs._replace(strategy=costs.strategy.with_part("local", ONE_BY_ONE)), candidates)
        return _one_after_the_other(one_by_one, found, np.minimum(1.0, costs.strategy.local.after / steps))
    if costs.strategy.batching == "fixed" and costs.shares is None:
        found = cluster_cycle.solve(costs, candidates)
    else:
        found = _solve_apart(costs, candidates, gradients_s(costs, candidates))
    return _held_up(costs, candidates, found)


def _held_up(costs: Costs, candidates: Candidates, found: Cycles) -> Cycles:
    """Cycles that are no shorter than samples take to arrive; a device idles while it waits."""
    if costs.streams is None:
        return found
    cycle_s = np.maximum(found.cycle_s, least_cycles_s(costs, candidates))
    kept = np.divide(found.cycle_s, cycle_s, out=np.ones_like(cycle_s), where=np.isfinite(cycle_s))
    busy = found.busy * kept
    if costs.strategy.through_server:  # what it does for a worker lessens as that one's steps do
        rows, hosts = np.arange(candidates.hosts.size), candidates.hosts
        served = loads_of_step(costs, candidates)[1] / found.cycle_s
        busy[rows, hosts] += (served * (kept - kept[rows, hosts][:, None])).sum(axis=1)
    return found._replace(cycle_s=cycle_s, busy=busy)


def least_cycles_s(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds below which no step is, for samples have to arrive; 0 without streams."""
    members = candidates.members(len(costs.names))
    if costs.streams is None:
        return np.zeros(members.shape)
    return stream_rates.least_cycles(_arrive_s(costs, candidates), _steps(costs, candidates), members, _together(costs))


def waiting_shares(costs: Costs, candidates: Candidates, free_s: Floats) -> Floats:
    """(C, N) shares of a member's time in which it waits for its own samples; 0 without streams.

    free_s: (C, N) cycles if nobody waited for samples.
    """
    if costs.streams is None:
        return np.zeros(free_s.shape)
    return stream_rates.waiting_shares(
        free_s, least_cycles_s(costs, candidates), _arrive_s(costs, candidates), gradients_s(costs, candidates),
        _steps(costs, candidates), candidates.members(len(costs.names)), _together(costs),
    )  # fmt: skip


def by_slowest_streams(costs: Costs, candidates: Candidates, shares: Floats) -> Floats:
    """(C, N) ``shares`` are given to the devices whose streams hold up the cycles that they are of.

    Where members wait for one another, those with the slowest stream hold up all of them.
    shares: (C, N) of cycles that samples hold up; 0 for others.
    """
    members = candidates.members(len(costs.names))
    if not _together(costs):
        return np.where(members, shares, 0.0)
    arrive_s = _arrive_s(costs, candidates)
    slowest = members & stream_rates.sets_least_cycle(least_cycles_s(costs, candidates), arrive_s)
    return np.where(slowest, (shares.sum(axis=1) / slowest.sum(axis=1))[:, None], 0.0)


def without_waits(costs: Costs) -> Costs:
    """The costs where all samples are there in time."""
    return costs if costs.streams is None else costs._replace(streams=costs.streams.unlimited())


def batches(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) mean samples of a member's step; for no member, some number."""
    members = candidates.members(len(costs.names))
    if costs.shares is not None:
        return costs.shares.batches(members).astype(np.float64)
    if costs.strategy.batching == "fixed":
        return np.full(members.shape, float(costs.batch))
    if costs.arriving_batches is not None:
        return np.broadcast_to(costs.arriving_batches, members.shape)
    more_s = gradients_s(costs, candidates) - costs.devices.gradient_s
    return np.asarray(np.maximum(0.0, costs.batch + more_s / costs.devices.image_s))


def _arrive_s(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds in which the samples of a step arrive."""
    assert costs.streams is not None, "the caller asked"
    return batches(costs, candidates) / costs.streams.rate


def _steps(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) steps of a member between two exchanges."""
    if costs.strategy.local:
        return rounds(costs, candidates).steps
    return np.ones((candidates.hosts.size, len(costs.names)))


def _together(costs: Costs) -> bool:
    """Whether members wait for one another at each exchange, or at the latest after some."""
    return math.isfinite(costs.strategy.sync.staleness)


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


def _solve_apart(costs: Costs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles where gradients, (C, N) seconds, take longer in some candidates than in others."""
    gradient_s = np.where(candidates.members(len(costs.names)), gradient_s, costs.devices.gradient_s)
    keys = np.column_stack([candidates.masks, gradient_s])
    order = np.lexsort(keys.T)
    rows = np.split(order, np.flatnonzero(np.diff(keys[order], axis=0).any(axis=1)) + 1)
    parts = [cluster_cycle.solve(costs.with_gradients(gradient_s[at[0]]), candidates.at(at)) for at in rows]
    order = np.argsort(np.concatenate(rows))
    return Cycles(*(np.concatenate(each)[order] for each in zip(*parts, strict=True)))


def rounds(costs: Costs, candidates: Candidates) -> Rounds:
    """The rounds of a strategy that has them. A device alone makes none."""
    members, local = candidates.members(len(costs.names)), costs.strategy.local
    exchange_s = np.zeros(candidates.hosts.size)
    if local.seconds is None and local.every is None:
        exchange_s = _exchange_s(costs, candidates, members)
    alone = members.sum(axis=1) == 1
    exchange_s = np.where(alone, 0.0, exchange_s)  # its own end of a loopback need not be measured
    found = local_rounds.of_candidates(local, local_step_s(costs, candidates), exchange_s, members, costs.run_steps)
    return found._replace(steps=np.where(alone[:, None], 1.0, found.steps))


def images_factor(costs: Costs, candidates: Candidates) -> Floats:
    """(C,) images that rounds of local steps take over those of one device alone; else 1."""
    if costs.rounds_efficiency is None:
        return np.ones(candidates.hosts.size)
    members, steps = candidates.members(len(costs.names)), rounds(costs, candidates).steps
    return costs.rounds_efficiency.images_factor(steps, members, costs.batches.images[members.sum(axis=1)], costs.batch)


def settled(costs: Costs, candidates: Candidates, index: int) -> Costs:
    """The costs of a strategy whose rounds are those that were chosen for one candidate."""
    if not costs.strategy.local:
        return costs
    found = rounds(costs, candidates.at(np.array([index]))).settled(costs.strategy.local, 0)
    return costs._replace(strategy=costs.strategy.with_part("local", found.as_text()))


def local_step_s(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds of a step that a member makes by itself; an update for no member."""
    return gradients_s(costs, candidates) + costs.devices.update_s


def _exchange_s(costs: Costs, candidates: Candidates, members: Bools) -> Floats:
    """(C,) seconds of the slowest member's exchange, without contention where nobody waits."""
    if costs.strategy.through_server and costs.strategy.sync.staleness:
        there_and_back_s = (costs.pairs.up_s + costs.pairs.down_s).T[candidates.hosts]
        return np.asarray(np.where(members, there_and_back_s, 0.0).max(axis=1))
    exchange = cluster_cycle.solve(costs.with_gradients(np.full(len(costs.names), 1e-9)), candidates)
    return np.asarray(np.where(members, exchange.cycle_s, 0.0).max(axis=1))


def _of_rounds(costs: Costs, candidates: Candidates) -> Cycles:
    """Cycles of one step each, of rounds that are solved as steps with long gradients.

    Peers also send their state to all others in each round.
    """
    members = candidates.members(len(costs.names))
    steps, step_s = rounds(costs, candidates).steps, local_step_s(costs, candidates)
    found = _solve_apart(_varying_less(costs, members, steps), candidates, steps * step_s)
    others = 0.0 if costs.strategy.through_server else np.maximum(0, members.sum(axis=1) - 1)[:, None]
    sent_bytes = found.network_bytes + np.where(members, others * costs.state_bytes, 0.0)
    alone = (members.sum(axis=1) == 1)[:, None]
    cycle_s = np.where(alone & members, step_s, found.cycle_s / steps)
    return _held_up(costs, candidates, found._replace(cycle_s=cycle_s, network_bytes=sent_bytes / steps))


def _varying_less(costs: Costs, members: Bools, steps: Floats) -> Costs:
    """A sum of h times varies less than each of them: by the square root of their number."""
    together = members & (members.sum(axis=1) > 1)[:, None]
    usual = steps.sum(axis=0, where=together) / np.maximum(1, together.sum(axis=0))
    roots = np.sqrt(np.maximum(1.0, usual))
    varied = tuple(1 + (each - 1) / root for each, root in zip(costs.devices.variation, roots, strict=True))
    return costs._replace(devices=costs.devices._replace(variation=varied))


def gradients_s(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds of the gradients of the batches that members have; 0 for no member."""
    masks, where = np.unique(candidates.masks, return_inverse=True)
    members = Candidates(masks, masks).members(len(costs.names))
    if costs.shares is not None:
        found = costs.shares.gradients(costs.shares.batches(members))
    elif costs.strategy.batching == "fixed":
        found = np.broadcast_to(costs.devices.gradient_s, members.shape)
    elif costs.arriving_batches is not None:
        more_s = (costs.arriving_batches - costs.batch) * costs.devices.image_s
        found = np.broadcast_to(np.maximum(0.0, costs.devices.gradient_s + more_s), members.shape)
    else:
        found = np.stack([_of_changing_batches(costs, row) for row in members])
    return np.asarray(np.where(members, found, 0.0)[where])


def _of_changing_batches(costs: Costs, members: Bools) -> Floats:
    """(N,) seconds of the gradients that ``members``, (N,), compute in a run of theirs."""
    devices, found = costs.devices, np.zeros(len(members))
    ranked = sorted(np.flatnonzero(members), key=lambda i: costs.names[i])
    found[ranked] = of_run(
        costs.strategy, costs.batch, costs.batches, devices.gradient_s[ranked], devices.image_s[ranked]
    )
    return found


def without_network(costs: Costs) -> Costs:
    """The costs with infinitely fast links: an exchange is the busier end's processor time."""
    pairs, unlimited = costs.pairs, np.full(len(costs.names), np.inf)
    exchange_s = np.minimum(pairs.up_s + pairs.down_s, np.maximum(pairs.worker_cpu_s, pairs.host_cpu_s))
    np.fill_diagonal(exchange_s, np.diagonal(pairs.up_s + pairs.down_s))
    return costs._replace(
        devices=costs.devices._replace(in_bytes_per_s=unlimited, out_bytes_per_s=unlimited),
        pairs=pairs._replace(
            up_s=exchange_s,
            down_s=np.zeros_like(exchange_s),
            host_stolen_cpu_s=pairs.host_cpu_s,
            weights_s=np.zeros_like(exchange_s),
            latency_s=np.zeros_like(exchange_s),
        ),
        torch=costs.torch and costs.torch._replace(bytes_per_s=np.full_like(exchange_s, np.inf)),
    )


def loads_of_step(costs: Costs, candidates: Candidates) -> tuple[Floats, Floats]:
    """``cluster_cycle.loads`` of each worker's step at the host of its candidate, (C, N) each.

    Of a round, each step has its part.
    """
    own_s, served_s = (each[candidates.hosts] for each in cluster_cycle.loads(costs))
    if not costs.strategy.local:
        return own_s, served_s
    steps = rounds(costs, candidates).steps
    return local_step_s(costs, candidates) + (own_s - costs.devices.gradient_s) / steps, served_s / steps
