"""A run: time, power, energy and EDP of every candidate cluster (Gu et al., Eq. 2 to 7)."""

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.predict import cycle
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds.cycles import Cycles
from power_models import nameplate


class Prediction(NamedTuple):
    """One cluster; its power, energy and EDP are None where a member's watts are unknown."""

    time_s: float
    power_w: float | None

    @property
    def energy_j(self) -> float | None:
        """E_j = P_j T_j (Eq. 6)."""
        return None if self.power_w is None else self.power_w * self.time_s

    @property
    def edp_js(self) -> float | None:
        """EDP_j = E_j T_j (Eq. 7)."""
        return None if self.power_w is None else self.power_w * self.time_s**2


class Factors(NamedTuple):
    """alpha and beta of Eq. 2 and 3 by device, (N,) each, NaN for devices that are no members.

    T_i^C = T_i alpha_time beta_time, where T_i is a step of the device alone. alpha_time leads to
    infinitely fast links, beta_time to the real ones. The same for power, from the busy watts P_i.
    """

    alpha_time: Floats
    beta_time: Floats
    alpha_power: Floats
    beta_power: Floats


class Predictions(NamedTuple):
    """C candidates of N devices.

    time_s, network_bytes: (C,), of the whole run.
    power_w: (C,), NaN where a member's watts are unknown; besides_w: the part that is no member's.
    start_s: (C, N), until a member makes steps in their usual time.
    cycle_s: (C, N), T_i^C, infinite for no member; free_s: if nobody waited for samples.
    device_w: (C, N), P_i^C, 0 for no member.
    steps: (C, N), S_i, the steps that each worker makes.
    shares: (C, 4), of the workers' time, by ``kinds.cycles.BOTTLENECKS``; of a cycle without waits
        for samples.
    """

    candidates: Candidates
    time_s: Floats
    power_w: Floats
    besides_w: Floats
    network_bytes: Floats
    start_s: Floats
    cycle_s: Floats
    free_s: Floats
    device_w: Floats
    steps: Floats
    shares: Floats

    def at(self, rows: Bools) -> "Predictions":
        """Those of some of the candidates."""
        parts: dict[str, Any] = {
            name: part[rows] if isinstance(part, np.ndarray) else part.at(rows) for name, part in self._asdict().items()
        }
        return Predictions(**parts)

    def one(self, index: int) -> Prediction:
        power_w = float(self.power_w[index])
        return Prediction(float(self.time_s[index]), None if np.isnan(power_w) else power_w)


class Bill(NamedTuple):
    """Watts that count besides those of members: of all that idle, and of what else is on."""

    count_idle: bool = False
    extra_w: float = 0.0


def predict(inputs: Inputs, candidates: Candidates, steps: int, bill: Bill | None = None) -> Predictions:
    """Predict all candidates, each making ``steps`` steps in all.

    With a sample efficiency, they make as many of their own as teach as much.
    """
    bill = bill or Bill()
    members = candidates.members(len(inputs.names))
    wanted = steps * inputs.batches.sizes.steps[members.sum(axis=1)] * cycle.images_factor(inputs, candidates)
    state, free_s = cycle.cycles(inputs, candidates, wanted)
    rate, start_s = 1 / state.cycle_s, start_times(inputs, candidates)
    time_s = run_time(wanted, rate, start_s)
    done = rate * np.maximum(0.0, time_s[:, None] - start_s)
    device_w = device_watts(inputs, candidates, state)
    idle_w = np.where(bill.count_idle & ~members, inputs.watts.idle_w, 0.0)
    besides_w = bill.extra_w + idle_w.sum(axis=1)
    return Predictions(
        candidates=candidates,
        time_s=time_s,
        power_w=device_w.sum(axis=1) + besides_w,
        besides_w=besides_w,
        network_bytes=(done * state.network_bytes).sum(axis=1),
        start_s=start_s,
        cycle_s=state.cycle_s,
        free_s=free_s,
        device_w=device_w,
        steps=done,
        shares=state.shares,
    )


def run_time(steps: int | Floats, rate: Floats, start_s: Floats) -> Floats:
    """T_j of S = sum_i r_i max(0, T_j - T_i^B) (Eq. 4, clamped), (C,) seconds.

    The right side is the largest of its sums over subsets of workers, so T_j is the smallest of
    their roots, which is that of the workers that start first.
    steps: S, or (C,); rate: r_i, (C, N) steps/s, 0 for no member; start_s: T_i^B, (N,) or (C, N).
    """
    starts_s = np.broadcast_to(start_s, rate.shape)
    order = np.argsort(starts_s, axis=1)
    ordered = np.take_along_axis(rate, order, axis=1)
    rates = np.cumsum(ordered, axis=1)
    begun = np.cumsum(ordered * np.take_along_axis(starts_s, order, axis=1), axis=1)
    wanted = np.broadcast_to(steps, rate.shape[:1])[:, None]
    roots = np.divide(wanted + begun, rates, out=np.full_like(rates, np.inf), where=rates > 0)
    return roots.min(axis=1)


def device_watts(inputs: Inputs, candidates: Candidates, state: Cycles) -> Floats:
    """P_i^C, (C, N): idle watts plus the busy share of what load adds; 0 for no member."""
    members = candidates.members(len(inputs.names))
    return np.where(members, nameplate.watts(inputs.watts.idle_w, inputs.watts.busy_w, state.busy), 0.0)


def factors(inputs: Inputs, candidates: Candidates, index: int) -> Factors:
    """alpha and beta of one candidate; of its rounds, where those have begun."""
    candidate = candidates.at(np.array([index]))
    real, ideal = (cycle.cycles(each, candidate)[0] for each in (inputs, inputs.over_infinite_links()))
    real_w, ideal_w = (device_watts(inputs, candidate, state)[0] for state in (real, ideal))
    members = candidate.members(len(inputs.names))[0]
    alone_s = (cycle.gradients_s(inputs, candidate) + inputs.devices.update_s)[0]

    def ratio(upper: Floats, lower: Floats) -> Floats:
        return np.divide(upper, lower, out=np.full(members.shape, np.nan), where=members & (lower > 0))

    return Factors(
        alpha_time=ratio(ideal.cycle_s[0], alone_s),
        beta_time=ratio(real.cycle_s[0], ideal.cycle_s[0]),
        alpha_power=ratio(ideal_w, inputs.watts.busy_w),
        beta_power=ratio(real_w, ideal_w),
    )


def start_times(inputs: Inputs, candidates: Candidates) -> Floats:
    """(C, N) seconds until a member makes steps in their usual time, 0 for no member.

    What its first step takes longer counts as time before it.
    """
    members, devices = candidates.members(len(inputs.names)), inputs.devices
    begun_s = np.where(members, devices.build_s + devices.first_step_s, 0.0)
    alone = (members.sum(axis=1) == 1)[:, None]
    if inputs.strategy.through_server:
        served_s = _served_s(inputs, candidates, members) + devices.first_step_s
        return np.where(alone, begun_s, np.where(members, served_s, 0.0))
    begun_s = begun_s.max(axis=1, keepdims=True)  # peers wait for one another
    if inputs.torch is not None:
        begun_s = begun_s + _broadcast_s(inputs, members)
    return np.where(members, begun_s, 0.0)


def _broadcast_s(inputs: Inputs, members: Bools) -> Floats:
    """(C, 1) seconds until all ranks have the first one's weights, which go along a tree."""
    weights_s = inputs.pairs.seconds(inputs.message.weights)
    np.fill_diagonal(weights_s, 0.0)
    one_s = np.where(members, weights_s[members.argmax(axis=1)], 0.0).max(axis=1, keepdims=True)
    return one_s * np.ceil(np.log2(members.sum(axis=1, keepdims=True)))


def _served_s(inputs: Inputs, candidates: Candidates, members: Bools) -> Floats:
    """(C, N) seconds until a worker around a server can begin.

    The worker beside the server gives it the initial weights, and the others wait for them. The
    first weights that a worker receives are all of them, whatever later answers leave out.
    """
    weights_s, hosts = inputs.pairs.seconds(inputs.message.weights), candidates.hosts
    begun_s = (inputs.devices.build_s + np.diagonal(weights_s))[hosts, None]
    later_s = np.where(members, inputs.pairs.seconds(inputs.message.down)[hosts], 0.0)
    more_s = np.maximum(0.0, np.where(members, weights_s[hosts], 0.0) - later_s)
    return np.maximum(inputs.devices.build_s, begun_s) + more_s
