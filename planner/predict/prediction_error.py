"""Prediction errors say what one standard error of each measured mean changes in time and power.

All are of first order: d log T = sum over means m of (d log T / d log m) d log m. What a mean
changes in the queues is left out.
"""

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import step_cycle
from planner.predict.cluster_cycle import Cycles, update_cpu_s
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs

#: Parts of an error that are of no single device.
OF_ALL = ("exchange", "run")


class ErrorParts(NamedTuple):
    """Relative change of a result by one standard error of a measured mean of a device, (C, N).

    C candidates of N devices; below 0 where the error lowers the result.
    exchange, run: (C, 1), by the errors of the model itself (``costs.ModelErrors``).
    """

    gradient: Floats
    copy: Floats
    update: Floats
    service: Floats
    link: Floats
    stream: Floats
    idle_w: Floats
    busy_w: Floats
    exchange: Floats
    run: Floats

    def product(self, other: "ErrorParts", a: float = 1.0, b: float = 1.0) -> "ErrorParts":
        """The errors of X^a Y^b, where those of X are these and those of Y the other ones."""
        return ErrorParts(*(a * one + b * two for one, two in zip(self, other, strict=True)))

    def at(self, rows: Ints | Bools) -> "ErrorParts":
        """The errors of some of the candidates."""
        return ErrorParts(*(part[rows] for part in self))

    def variance(self) -> Floats:
        """(C,): variance of the result's logarithm."""
        return np.sum([(part**2).sum(axis=1) for part in self], axis=0)


def time_errors(
    costs: Costs, candidates: Candidates, cycle_s: Floats, free_s: Floats, steps: Floats, time_s: Floats
) -> ErrorParts:
    """Errors of the time of a run.

    d log T = sum_i w_i d log T_i^C with w_i = S_i / (T sum of active rates).
    cycle_s, steps: (C, N), S_i being the steps of a member; time_s: (C,).
    free_s: (C, N) cycles if nobody waited for samples. Where samples hold a member up, its steps
        end no sooner, whatever it computes and exchanges.
    """
    active = np.where(steps > 0, 1 / cycle_s, 0.0).sum(axis=1)
    by_cycle = steps / (active * time_s)[:, None]
    held = cycle_s > free_s
    all_held = (held | ~np.isfinite(cycle_s)).all(axis=1, keepdims=True)
    other = 1.0 - computing(costs, candidates, by_cycle / cycle_s).sum(axis=1, keepdims=True)
    return _through_cycles(costs, candidates, np.where(held, 0.0, by_cycle / cycle_s))._replace(
        stream=_of_streams(costs, candidates, np.where(held, by_cycle, 0.0)),
        exchange=np.where(all_held, 0.0, costs.model_errors.exchange * np.maximum(0.0, other)),
        run=np.where(all_held, 0.0, costs.model_errors.run),
    )


def computing(costs: Costs, candidates: Candidates, weight: Floats) -> Floats:
    """What the gradients of each device, and the updates that it makes itself, change, (C, N).

    weight: as in ``_through_cycles``.
    """
    alone = candidates.members(len(costs.names)).sum(axis=1) == 1
    updates_s = np.where(alone[:, None] | bool(costs.strategy.local), costs.devices.update_s, 0.0)
    return weight * (_gradient_s(costs, candidates) + updates_s)


def power_errors(
    costs: Costs, candidates: Candidates, state: Cycles, free_s: Floats, resting: Bools, power_w: Floats
) -> ErrorParts:
    """Errors of the power; 0 where it is unknown.

    P = sum_i idle_i + (busy_i - idle_i) u_i, where the busy share u_i is the load of a cycle
    (``cluster_cycle.loads``) over T_i^C: a mean changes both, and neither counts while u_i is 1.
    free_s: as for ``time_errors``.
    resting: (C, N), devices whose idle watts are counted though they are no members; power_w: (C,).
    """
    devices, rows, hosts = costs.devices, np.arange(power_w.size), candidates.hosts
    members = candidates.members(len(costs.names))
    rate, share_of_power = 1 / state.cycle_s, 1 / power_w[:, None]
    span_w = np.where(members & (state.busy < 1), devices.busy_w - devices.idle_w, 0.0) * share_of_power
    own_s, served_s = step_cycle.loads_of_step(costs, candidates)
    alone = members.sum(axis=1)[:, None] == 1  # whose updates are its own, and no part of a load
    loaded_w = rate * (span_w * own_s + span_w[rows, hosts][:, None] * served_s)
    loaded_w = np.where(alone, span_w * state.busy, loaded_w)
    held = state.cycle_s > free_s
    slower = _through_cycles(costs, candidates, np.where(held, 0.0, -loaded_w / state.cycle_s))
    updates_s = (update_cpu_s(costs) * devices.errors.service)[hosts]
    served = np.zeros_like(rate)
    served[rows, hosts] = span_w[rows, hosts] * rate.sum(axis=1) * updates_s
    idle_w = np.where(members | resting, (1 - state.busy) * devices.idle_w, 0.0)
    busy_w = np.where(members, state.busy * devices.busy_w, 0.0)
    if costs.strategy.local:  # a step makes its own update, and has its part of the round's exchange
        steps = step_cycle.rounds(costs, candidates).steps
        slower = slower._replace(update=slower.update + rate * span_w * devices.update_s * devices.errors.update)
        copies, served = 1 / steps, served * ((rate / steps).sum(axis=1) / rate.sum(axis=1))[:, None]
    else:
        copies = np.ones_like(rate)
    found = slower._replace(
        gradient=slower.gradient + rate * span_w * _gradient_s(costs, candidates) * devices.errors.gradient,
        copy=slower.copy + rate * span_w * copies * devices.copy_s * devices.errors.copy,
        service=slower.service + served,
        stream=_of_streams(costs, candidates, np.where(held, -loaded_w, 0.0)),
        idle_w=idle_w * devices.errors.idle_w * share_of_power,
        busy_w=busy_w * devices.errors.busy_w * share_of_power,
    )
    return ErrorParts(*map(np.nan_to_num, found))


def _through_cycles(costs: Costs, candidates: Candidates, weight: Floats) -> ErrorParts:
    """What an error of each mean changes through the cycles T_i^C that it is a part of.

    d T_i^C = m d log m of a mean m in it. weight: (C, N) 1/s, relative change of a result by T_i^C.
    """
    devices, rows, hosts = costs.devices, np.arange(candidates.hosts.size), candidates.hosts
    alone = candidates.members(len(costs.names)).sum(axis=1) == 1
    updating = np.where(alone[:, None] | bool(costs.strategy.local), weight, 0.0)
    together = np.where(alone[:, None], 0.0, weight)
    if costs.strategy.local:  # only its part of the round's exchange is in a step
        together = together / step_cycle.rounds(costs, candidates).steps
    exchange_s = np.where(costs.pairs.reachable, costs.pairs.up_s + costs.pairs.down_s, 0.0)
    service = np.zeros_like(weight)
    service[rows, hosts] = together.sum(axis=1) * (devices.service_s * devices.errors.service)[hosts]
    return ErrorParts(
        gradient=weight * _gradient_s(costs, candidates) * devices.errors.gradient,
        copy=together * devices.copy_s * devices.errors.copy,
        update=updating * devices.update_s * devices.errors.update,
        service=service,
        link=together * (exchange_s * costs.pairs.error).T[hosts],
        stream=np.zeros_like(weight),
        idle_w=np.zeros_like(weight),
        busy_w=np.zeros_like(weight),
        exchange=np.zeros((hosts.size, 1)),
        run=np.zeros((hosts.size, 1)),
    )


def _of_streams(costs: Costs, candidates: Candidates, by_cycle: Floats) -> Floats:
    """What errors of the rates change through the cycles that samples hold up, (C, N) by stream.

    A batch that follows its rate takes as long to arrive at any.
    by_cycle: (C, N) d log of a result / d log T_i^C, 0 for cycles that nothing holds up.
    """
    if costs.streams is None:
        return np.zeros_like(by_cycle)
    error = costs.streams.error
    if costs.arriving_batches is not None:
        error = np.where(costs.streams.at_bounds(), error, 0.0)
    return -step_cycle.by_slowest_streams(costs, candidates, by_cycle) * error


def _gradient_s(costs: Costs, candidates: Candidates) -> Floats:
    """Seconds of gradients, (C, N) where members share a global batch, else (N,)."""
    return costs.devices.gradient_s if costs.shares is None else step_cycle.gradients_s(costs, candidates)
