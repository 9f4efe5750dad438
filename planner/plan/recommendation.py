"""A recommendation holds all predicted clusters of a profile in the order of a metric."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import OWN
from planner.errors import PlanError
from planner.plan.file import PlannedStream, PlannedWorker
from planner.plan.rank import Ranking, Standing
from planner.plan.streams import planned_streams
from planner.predict.cluster_cycle import BOTTLENECKS, COMPUTE, DATA, STREAM
from planner.predict.clusters import ClusterConfig
from planner.predict.costs import Costs
from planner.predict.kernel_regimes import of_cluster
from planner.predict.predict import Factors, Prediction, Predictions, factors
from planner.predict.prediction_error import ErrorParts
from planner.predict.step_cycle import gradients_s, images_factor, rounds, settled, solve
from planner.provenance import Provenance
from profilers.stats import Z95


class Row(NamedTuple):
    """One cluster of a ranking; fields that a ``Plan`` also has mean the same there.

    score, interval: the metric's value and its 95 % bounds, equal where no spread is known.
    tie: whether it ties with the best.
    power_sources: where each member's watts come from; provenance: all of these joined.
    batches: of the members that share a global batch; empty where all have that of ``config``.
    engine: what moves the gradients; the planner's own for a device alone, which sends none.
    streams: of the members' samples; empty where all are there from the start.
    """

    config: ClusterConfig
    prediction: Prediction
    score: float
    interval: tuple[float, float]
    tie: bool
    network_bytes: float
    bottleneck: str
    shares: dict[str, float]
    besides_w: float
    power_sources: dict[str, Provenance]
    provenance: Provenance
    energy_uncertainty: float | None
    time_uncertainty: float | None
    batches: dict[str, int]
    engine: str
    streams: dict[str, PlannedStream]


@dataclass(frozen=True)
class Recommendation:
    """All candidates, predicted and ranked; ``profiling_s`` is what profiling took.

    weights: of the metrics by name.
    notes: what may change what the operator does, the most important first.
    details: how the figures came about.
    engine, clip_norm: as they were asked for.
    beside: clusters that another engine trains, which the ranking counts after these.
    """

    metric: str
    weights: Mapping[str, float]
    steps: int
    costs: Costs
    predictions: Predictions
    ranking: Ranking
    notes: tuple[str, ...]
    profiling_s: float
    details: tuple[str, ...] = ()
    engine: str = OWN
    clip_norm: float | None = None
    beside: "Recommendation | None" = None

    def __len__(self) -> int:
        return int(self.ranking.order.size)

    @property
    def all_costs(self) -> tuple[Costs, ...]:
        """Those of these clusters, and of the clusters beside them."""
        return (self.costs,) if self.beside is None else (self.costs, self.beside.costs)

    @property
    def frameworks(self) -> dict[str, str]:
        """By device; the one here where clusters beside these compute with another."""
        found: dict[str, str] = {}
        for costs in self.all_costs:
            for name, framework in zip(costs.names, costs.frameworks, strict=True):
                found.setdefault(name, framework)
        return found

    def place_of_least(self, metric: str) -> int:
        """The place of the cluster of least ``time`` or ``energy``; 1 where watts are unknown."""
        parts = [self.predictions] + ([] if self.beside is None else [self.beside.predictions])
        values = np.concatenate([each.time_s * (each.power_w if metric == "energy" else 1.0) for each in parts])
        return int(np.argmin(np.nan_to_num(values[self.ranking.order], nan=math.inf))) + 1

    def row(self, place: int) -> Row:
        """The cluster at a place of the ranking, 1 the best. PlanError: there is no such place."""
        part, index = self._cluster(place)
        return part._row(index, self.ranking.at(place))

    def _row(self, index: int, standing: Standing) -> Row:
        (masks, hosts), here = self.predictions.candidates, np.array([index])
        names, shares = self.costs.names, self.predictions.shares[index]
        workers = tuple(name for i, name in enumerate(names) if masks[index] >> i & 1)
        sources = {name: self.costs.power_sources[names.index(name)] for name in workers}
        by_part = self._with_data(dict(zip(BOTTLENECKS, shares.tolist(), strict=True)), index)
        by_part = self._with_streams(by_part, index)
        prediction, time_errors = self.predictions.one(index), self.predictions.time_errors.at(here)
        energy_errors = time_errors.product(self.predictions.power_errors.at(here))
        return Row(
            config=ClusterConfig(names[hosts[index]], workers, self._batch(index)),
            prediction=prediction,
            score=standing.score,
            interval=(standing.low, standing.high),
            tie=standing.tied,
            network_bytes=float(self.predictions.network_bytes[index]),
            bottleneck=max(by_part, key=lambda part: by_part[part]),
            shares=by_part,
            besides_w=float(self.predictions.besides_w[index]),
            power_sources=sources,
            provenance=Provenance.joined(sources.values()),
            energy_uncertainty=None if prediction.power_w is None else _half_interval(energy_errors),
            time_uncertainty=_half_interval(time_errors),
            batches=self._batches(index),
            engine=self.costs.engine.text if len(workers) > 1 else OWN,
            streams=self._streams(index),
        )

    def _batch(self, index: int) -> int:
        """Images of a worker's step, the mean where workers share a global batch."""
        if self.costs.shares is None:
            return self.costs.batch
        return max(1, round(self.costs.shares.size / int(self.predictions.candidates.masks[index]).bit_count()))

    def _batches(self, index: int) -> dict[str, int]:
        if self.costs.shares is None:
            return {}
        candidate, shares = self.predictions.candidates.at(np.array([index])), self._costs(index).shares
        assert shares is not None, "these costs have them, too"
        shared = shares.batches(candidate.members(len(self.costs.names)))[0]
        return {name: int(batch) for name, batch in zip(self.costs.names, shared, strict=True) if batch}

    def _with_data(self, shares: dict[str, float], candidate: int) -> dict[str, float]:
        """The shares where waiting for data, if any, is no part of computing."""
        steps = self.predictions.steps[candidate]
        waiting_s = float(steps @ self.costs.devices.data_s)
        if not waiting_s:
            return shares
        computing = BOTTLENECKS[COMPUTE]
        part = shares[computing] * waiting_s / float(steps @ self._costs(candidate).devices.gradient_s)
        return {**shares, computing: shares[computing] - part, DATA: part}

    def _with_streams(self, shares: dict[str, float], candidate: int) -> dict[str, float]:
        """The shares and, where samples arrive in streams, what these add to the workers' time."""
        if self.costs.streams is None:
            return shares
        cycle_s = self.predictions.cycle_s[candidate]
        here = np.isfinite(cycle_s)
        held = float((1 - self.predictions.free_s[candidate][here] / cycle_s[here]).mean())
        return {**{part: share * (1 - held) for part, share in shares.items()}, STREAM: held}

    def _streams(self, index: int) -> dict[str, PlannedStream]:
        """Of the members of a candidate, by name; empty where all samples are there."""
        if self.costs.streams is None:
            return {}
        found = self.predictions
        lasts_s = np.maximum(0.0, found.time_s[index] - found.start_s[[index]])
        here = found.candidates.at(np.array([index]))
        return planned_streams(self._costs(index), here, found.free_s[[index]], found.cycle_s[[index]], lasts_s)

    def workers(self, place: int) -> tuple[PlannedWorker, ...]:
        part, index = self._cluster(place)
        return part._workers(index)

    def costs_at(self, place: int) -> Costs:
        """The costs that the cluster at a place was predicted with, its rounds being settled."""
        part, index = self._cluster(place)
        return settled(part._costs(index), part.predictions.candidates, index)

    def _costs(self, index: int) -> Costs:
        """The costs of a candidate, which depend on the members that share a kernel."""
        return of_cluster(self.costs, self.predictions.candidates, index)

    def local_steps(self, place: int) -> dict[str, int]:
        """Local steps of each member in a round of the cluster at a place."""
        part, index = self._cluster(place)
        candidate = part.predictions.candidates.at(np.array([index]))
        members, steps = candidate.members(len(part.costs.names))[0], rounds(part._costs(index), candidate).steps[0]
        return {part.costs.names[i]: int(steps[i]) for i in np.flatnonzero(members)}

    def round_s(self, place: int) -> tuple[float, float]:
        """Seconds of the cluster's longest round of local steps, and of the longest computing."""
        part, index = self._cluster(place)
        steps, computing_s = self.local_steps(place), {each.name: each.computing_s for each in self.workers(place)}
        cycle_s = solve(part._costs(index), part.predictions.candidates.at(np.array([index]))).cycle_s[0]
        return (
            max(cycle_s[part.costs.names.index(name)] * count for name, count in steps.items()),
            max((computing_s[name] or 0.0) * count for name, count in steps.items()),
        )

    def images_factor(self, place: int) -> float:
        """Images that the cluster at a place takes over those of one device alone, in rounds."""
        part, index = self._cluster(place)
        return float(images_factor(part._costs(index), part.predictions.candidates.at(np.array([index])))[0])

    def _workers(self, index: int) -> tuple[PlannedWorker, ...]:
        masks, hosts = self.predictions.candidates
        costs = settled(self._costs(index), self.predictions.candidates, index)
        found = factors(costs, int(masks[index]), int(hosts[index]))
        gradient_s = gradients_s(self._costs(index), self.predictions.candidates.at(np.array([index])))[0]
        streams = self._streams(index)
        return tuple(
            self._worker(index, i, found, float(gradient_s[i]))._replace(stream=streams.get(self.costs.names[i]))
            for i in range(len(self.costs.names))
            if masks[index] >> i & 1
        )

    def _worker(self, index: int, device: int, found: Factors, gradient_s: float) -> PlannedWorker:
        devices, masks, shares = self._costs(index).devices, self.predictions.candidates.masks, self.costs.shares
        has_own_batch = shares is not None or self.costs.arriving_batches is not None
        alone = masks[index] == 1 << device
        updates_itself = alone or self.costs.strategy.local
        after_gradient_s = (devices.update_s if updates_itself else devices.copy_s)[device]
        return PlannedWorker(
            name=self.costs.names[device],
            steps=float(self.predictions.steps[index, device]),
            cycle_s=float(self.predictions.cycle_s[index, device]),
            build_s=float(self.predictions.start_s[index, device]),
            cores=float(devices.cores[device]),
            idle_w=_known(devices.idle_w[device]),
            busy_w=_known(devices.busy_w[device]),
            power_w=_known(self.predictions.device_w[index, device]),
            power_source=self.costs.power_sources[device],
            alpha_time=float(found.alpha_time[device]),
            beta_time=float(found.beta_time[device]),
            alpha_power=_known(found.alpha_power[device]),
            beta_power=_known(found.beta_power[device]),
            framework=self.costs.frameworks[device],
            computing_s=float((gradient_s if has_own_batch else devices.gradient_s[device]) + after_gradient_s),
            batch=self._batches(index).get(self.costs.names[device]),
            startup=devices.startups[device],
            evaluation_s=_known(devices.evaluation_s[device]),
        )

    def _cluster(self, place: int) -> tuple["Recommendation", int]:
        """The recommendation whose engine trains the cluster at a place, and its candidate."""
        if not 1 <= place <= len(self):
            raise PlanError(f"--choose {place}: the ranking has places 1 to {len(self)}")
        index, own = int(self.ranking.order[place - 1]), self.predictions.time_s.size
        return (self, index) if self.beside is None or index < own else (self.beside, index - own)


def _half_interval(errors: ErrorParts) -> float | None:
    """Half of a result's 95 % interval, as a share; None where no spread is known."""
    spread = Z95 * math.sqrt(float(errors.variance()[0]))
    return math.expm1(spread) if spread else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
