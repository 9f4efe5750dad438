"""Time, power, energy and EDP of every candidate cluster (Gu et al., Eq. 2 to 7)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import kernel_regimes, step_cycle
from planner.predict.cluster_cycle import Cycles
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs
from planner.predict.prediction_error import ErrorParts, power_errors, time_errors
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
    cycle_s: (C, N), T_i^C, infinite for no member.
    device_w: (C, N), P_i^C, 0 for no member.
    steps: (C, N), S_i, the steps that each worker makes.
    shares: (C, 4), of the workers' time, by ``cluster_cycle.BOTTLENECKS``; of a cycle without waits
        for samples.
    free_s: (C, N), T_i^C if nobody waited for samples.
    """

    candidates: Candidates
    time_s: Floats
    power_w: Floats
    besides_w: Floats
    network_bytes: Floats
    start_s: Floats
    cycle_s: Floats
    device_w: Floats
    steps: Floats
    shares: Floats
    free_s: Floats
    time_errors: ErrorParts
    power_errors: ErrorParts

    def at(self, rows: Bools) -> "Predictions":
        """Those of some of the candidates."""
        parts: dict[str, Any] = {
            name: part[rows] if isinstance(part, np.ndarray) else part.at(rows) for name, part in self._asdict().items()
        }
        return Predictions(**parts)

    @classmethod
    def joined(cls, parts: Sequence["Predictions"], places: Ints) -> "Predictions":
        """All candidates of the parts, each at its place."""
        order = np.argsort(places)
        arrays = {name: [getattr(part, name) for part in parts] for name in cls._fields}
        return cls(**{name: _joined(each, order) for name, each in arrays.items()})

    def one(self, index: int) -> Prediction:
        power_w = float(self.power_w[index])
        return Prediction(float(self.time_s[index]), None if np.isnan(power_w) else power_w)


def _joined(parts: Sequence[Any], order: Ints) -> Any:
    """Arrays by candidate, or records of such arrays, one after the other, in this order."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)[order]
    return type(parts[0])(*(_joined(each, order) for each in zip(*parts, strict=True)))


def predict(
    costs: Costs, candidates: Candidates, steps: int, count_idle: bool = False, extra_w: float = 0.0
) -> Predictions:
    """Predict all candidates, each making ``steps`` steps in all.

    With a sample efficiency, they make as many of their own as teach as much (``costs.batches``).
    count_idle: also count the idle watts of devices that are no members (Eq. 5 does not).
    extra_w: watts added to every candidate.
    """
    parts = kernel_regimes.regimes(costs, candidates)
    found = [_predict(each, candidates.at(rows), steps, count_idle, extra_w) for each, rows in parts]
    return found[0] if len(found) == 1 else Predictions.joined(found, np.concatenate([rows for _, rows in parts]))


def _predict(costs: Costs, candidates: Candidates, steps: int, count_idle: bool, extra_w: float) -> Predictions:
    """Predict candidates that all have these costs."""
    members = candidates.members(len(costs.names))
    wanted = steps * costs.batches.steps[members.sum(axis=1)] * step_cycle.images_factor(costs, candidates)
    state = step_cycle.solve(costs, candidates, wanted)
    free_s = state.cycle_s
    if costs.streams is not None:
        free_s = step_cycle.solve(step_cycle.without_waits(costs), candidates, wanted).cycle_s
    rate = 1 / state.cycle_s
    start_s = start_times(costs, candidates)
    time_s = run_time(wanted, rate, start_s)
    done = rate * np.maximum(0.0, time_s[:, None] - start_s)
    device_w = device_watts(costs, candidates, state)
    resting = count_idle & ~members
    besides_w = extra_w + np.where(resting, costs.devices.idle_w, 0.0).sum(axis=1)
    power_w = device_w.sum(axis=1) + besides_w
    return Predictions(
        candidates=candidates,
        time_s=time_s,
        power_w=power_w,
        besides_w=besides_w,
        network_bytes=(done * state.network_bytes).sum(axis=1),
        start_s=start_s,
        cycle_s=state.cycle_s,
        device_w=device_w,
        steps=done,
        shares=state.shares,
        free_s=free_s,
        time_errors=time_errors(costs, candidates, state.cycle_s, free_s, done, time_s),
        power_errors=power_errors(costs, candidates, state, free_s, resting, power_w),
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


def device_watts(costs: Costs, candidates: Candidates, state: Cycles) -> Floats:
    """P_i^C, (C, N): idle watts plus the busy share of what load adds; 0 for no member."""
    members = candidates.members(len(costs.names))
    return np.where(members, nameplate.watts(costs.devices.idle_w, costs.devices.busy_w, state.busy), 0.0)


def factors(costs: Costs, mask: int, host: int) -> Factors:
    """alpha and beta of one cluster; of its rounds, where those have begun."""
    candidate = Candidates(np.array([mask]), np.array([host]))
    costs = kernel_regimes.of_cluster(costs, candidate, 0)
    ideal_costs = step_cycle.without_network(costs)
    real, ideal = step_cycle.solve(costs, candidate), step_cycle.solve(ideal_costs, candidate)
    real_w, ideal_w = (device_watts(costs, candidate, state)[0] for state in (real, ideal))
    members = candidate.members(len(costs.names))[0]
    if costs.shares is not None:
        costs = costs.with_gradients(step_cycle.gradients_s(costs, candidate)[0])

    def ratio(upper: Floats, lower: Floats) -> Floats:
        return np.divide(upper, lower, out=np.full(members.shape, np.nan), where=members & (lower > 0))

    return Factors(
        alpha_time=ratio(ideal.cycle_s[0], costs.devices.alone_s),
        beta_time=ratio(real.cycle_s[0], ideal.cycle_s[0]),
        alpha_power=ratio(ideal_w, costs.devices.busy_w),
        beta_power=ratio(real_w, ideal_w),
    )


def start_times(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds until a member makes steps in their usual time, 0 for no member.

    What its first step takes longer counts as time before it.
    """
    members = candidates.members(len(costs.names))
    begun_s = np.where(members, costs.devices.build_s + costs.devices.first_step_s, 0.0)
    alone = (members.sum(axis=1) == 1)[:, None]
    if costs.strategy.through_server:
        served_s = _served(costs, candidates, members) + costs.devices.first_step_s
        return np.where(alone, begun_s, np.where(members, served_s, 0.0))
    return np.where(members, begun_s.max(axis=1, keepdims=True), 0.0)  # peers wait for one another


def _served(costs: Costs, candidates: Candidates, members: Bools) -> Floats:
    """(C, N) seconds until a worker around a server can begin.

    The worker beside the server gives it the initial weights, and the others wait for them. The
    first weights that a worker receives are all of them, whatever later answers leave out.
    """
    begun_s = (costs.devices.build_s + np.diagonal(costs.pairs.weights_s))[candidates.hosts, None]
    later_s = costs.pairs.down_s.T[candidates.hosts]
    more_s = np.maximum(0.0, costs.pairs.weights_s[candidates.hosts] - np.where(members, later_s, 0.0))
    return np.maximum(costs.devices.build_s, begun_s) + more_s
