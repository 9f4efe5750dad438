"""A recommendation ranks the predicted clusters of a profile, and one of them becomes plan.json."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import OWN
from planner.errors import PlanError
from planner.plan.file import Plan, PlannedWorker
from planner.plan.rank import Ranking, Standing, exponents, rank
from planner.plan.request import RecommendRequest, training_samples, with_optimizer
from planner.plan.shared_batch import weighing_samples
from planner.predict.batch_size import RunLength
from planner.predict.clusters import Candidates, ClusterConfig, enumerate_clusters, of_peers
from planner.predict.costs import Costs, costs_of
from planner.predict.device_costs import idle_watts
from planner.predict.predict import Factors, Prediction, Predictions, factors, predict
from planner.predict.prediction_error import ErrorParts
from planner.predict.step_cycle import BOTTLENECKS, COMPUTE, DATA, gradients_s
from planner.profile.file import Profile
from planner.provenance import Provenance
from planner.units import bytes_text
from profilers.records import SCHEMA
from profilers.stats import Z95


class Row(NamedTuple):
    """One cluster of a ranking; fields that a ``Plan`` also has mean the same there.

    score, interval: the metric's value and its 95 % bounds, equal where no spread is known.
    tie: whether it ties with the best.
    power_sources: where each member's watts come from; provenance: all of these joined.
    batches: of the members that share a global batch; empty where all have that of ``config``.
    engine: what moves the gradients; the planner's own for a device alone, which sends none.
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


@dataclass(frozen=True)
class Recommendation:
    """All candidates, predicted and ranked; ``profiling_s`` is what profiling took.

    weights: of the metrics by name.
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
        )

    def _batch(self, index: int) -> int:
        """Images of a worker's step, the mean where workers share a global batch."""
        if self.costs.shares is None:
            return self.costs.batch
        return max(1, round(self.costs.shares.size / int(self.predictions.candidates.masks[index]).bit_count()))

    def _batches(self, index: int) -> dict[str, int]:
        if self.costs.shares is None:
            return {}
        candidate = self.predictions.candidates.at(np.array([index]))
        shared = self.costs.shares.batches(candidate.members(len(self.costs.names)))[0]
        return {name: int(batch) for name, batch in zip(self.costs.names, shared, strict=True) if batch}

    def _with_data(self, shares: dict[str, float], candidate: int) -> dict[str, float]:
        """The shares where waiting for data, if any, is no part of computing."""
        steps, devices = self.predictions.steps[candidate], self.costs.devices
        waiting_s = float(steps @ devices.data_s)
        if not waiting_s:
            return shares
        computing = BOTTLENECKS[COMPUTE]
        part = shares[computing] * waiting_s / float(steps @ devices.gradient_s)
        return {**shares, computing: shares[computing] - part, DATA: part}

    def workers(self, place: int) -> tuple[PlannedWorker, ...]:
        part, index = self._cluster(place)
        return part._workers(index)

    def costs_at(self, place: int) -> Costs:
        """The costs that the cluster at a place was predicted with."""
        return self._cluster(place)[0].costs

    def _workers(self, index: int) -> tuple[PlannedWorker, ...]:
        masks, hosts = self.predictions.candidates
        found = factors(self.costs, int(masks[index]), int(hosts[index]))
        gradient_s = gradients_s(self.costs, self.predictions.candidates.at(np.array([index])))[0]
        return tuple(
            self._worker(index, i, found, float(gradient_s[i]))
            for i in range(len(self.costs.names))
            if masks[index] >> i & 1
        )

    def _worker(self, index: int, device: int, found: Factors, gradient_s: float) -> PlannedWorker:
        devices, masks, shares = self.costs.devices, self.predictions.candidates.masks, self.costs.shares
        alone = masks[index] == 1 << device
        after_gradient_s = (devices.update_s if alone else devices.copy_s)[device]
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
            computing_s=float((devices.gradient_s[device] if shares is None else gradient_s) + after_gradient_s),
            batch=self._batches(index).get(self.costs.names[device]),
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


def recommend(profile: Profile, request: RecommendRequest) -> Recommendation:
    """Predict and rank every admissible cluster. PlanError tells what stands in the way."""
    request.check()
    strategy = with_optimizer(request.strategy, request.optimizer)
    if request.global_batch is not None and request.engine.name == OWN:
        strategy = weighing_samples(strategy)
    steps = profile.steps_planned if request.steps is None else request.steps
    samples = training_samples(profile, request.model, request.training_samples)
    run = RunLength(steps, samples, request.sample_efficiency, request.critical_batch)
    costs = costs_of(
        profile, request.model, request.framework, request.batch, request.rates, request.include, strategy, run,
        request.engine, request.allow_plaintext, request.global_batch, request.clip_norm is not None,
    )  # fmt: skip
    candidates, alone_notes = _with_room_alone(costs, _sharing(costs, _admissible(costs, request)))
    weights, notes = _weights(costs, candidates, request.weights)
    notes += alone_notes
    if request.strategy.through_server:
        candidates, too_small = _with_room_for_servers(costs, candidates)
        notes += too_small
    else:
        candidates = of_peers(candidates, costs.pairs.reachable)
    extra_w = request.base_watts + (_idle_of_left_out(profile, costs) if request.count_idle else 0.0)
    predictions = predict(costs, candidates, steps, request.count_idle, extra_w)
    ranking = rank(predictions, weights)
    return Recommendation(
        metric=metric_name(weights),
        weights=weights,
        steps=steps,
        costs=costs,
        predictions=predictions,
        ranking=ranking,
        notes=(*notes, *costs.notes, *_energy_note(weights, extra_w + request.count_idle)),
        profiling_s=profile.profiling_s(costs.model),
        engine=request.engine.text,
        clip_norm=request.clip_norm,
    )


def _admissible(costs: Costs, request: RecommendRequest) -> Candidates:
    if request.server in costs.left_out:
        reason = costs.left_out[request.server]
        raise PlanError(f"--server {request.server}: {reason}; choose another or profile it again")
    excluded = [name for name in request.exclude if name not in costs.left_out]
    return enumerate_clusters(costs.names, costs.pairs.reachable, request.include, excluded, request.server)


def _sharing(costs: Costs, candidates: Candidates) -> Candidates:
    """The candidates that can compute the global batch, if there is one. PlanError: none can."""
    if costs.shares is None:
        return candidates
    members = candidates.members(len(costs.names))
    possible = costs.shares.possible(members)
    if not possible.any():
        bounds = zip(costs.names, costs.shares.least, costs.shares.most, strict=True)
        each = ", ".join(f"{name} {least} to {most}" for name, least, most in bounds)
        raise PlanError(
            f"--global-batch {costs.shares.size}: no cluster can divide it; by what was profiled and by memory, "
            f"batches may be: {each}; profile another batch size"
        )
    return candidates.at(possible)


def _with_room_alone(costs: Costs, candidates: Candidates) -> tuple[Candidates, list[str]]:
    """The candidates without devices whose memory is too small to train alone, and notes on these.

    PlanError: there are none left.
    """
    short = np.array([name in costs.too_small_alone for name in costs.names])
    out = (candidates.members(len(costs.names)).sum(axis=1) == 1) & short[candidates.hosts]
    names = [costs.names[host] for host in candidates.hosts[out]]
    notes = [f"{name} cannot train alone: {costs.too_small_alone[name]}" for name in names]
    if out.all():
        raise PlanError("; ".join([*notes, "no cluster is left"]))
    return candidates.at(~out), notes


def _with_room_for_servers(costs: Costs, candidates: Candidates) -> tuple[Candidates, list[str]]:
    """The candidates whose host has the main memory for its server, and notes on the others.

    PlanError: there are none left.
    """
    workers = candidates.members(len(costs.names)).sum(axis=1)
    batches = np.full(len(workers), costs.batch)
    if costs.shares is not None:
        shared = costs.shares.batches(candidates.members(len(costs.names)))
        batches = shared[np.arange(len(workers)), candidates.hosts]
    needed = costs.server_room.needed_bytes(workers)
    left = costs.server_room.left_bytes(candidates.hosts, batches)
    fits = (workers == 1) | (needed <= left)
    notes = []
    for host in np.unique(candidates.hosts[~fits]):
        short = np.flatnonzero(~fits & (candidates.hosts == host))
        first = short[np.argmin(workers[short])]
        notes.append(
            f"{costs.names[host]} hosts no server of {workers[first]} or more workers: its arrays take "
            f"{bytes_text(float(needed[first]))} of memory, and a step of batch {batches[first]} leaves "
            f"{bytes_text(float(left[first]))}"
        )
    if not fits.any():
        raise PlanError("; ".join([*notes, "no cluster is left; end other programs there, or take a smaller batch"]))
    return candidates.at(fits), notes


def _weights(
    costs: Costs, candidates: Candidates, asked: Mapping[str, float] | None
) -> tuple[Mapping[str, float], list[str]]:
    """The weights that clusters are ranked by, and notes on them.

    asked: None for EDP, or for time where watts are unknown. PlanError: unknown ones are asked for.
    """
    used = candidates.members(len(costs.names)).any(axis=0)
    unknown = ", ".join(costs.names[i] for i in np.flatnonzero(used & np.isnan(costs.devices.busy_w)))
    if asked is None and unknown:
        return {"time": 1.0}, [
            f"ranked by time, because no watts are known of {unknown}; to rank by power, energy or EDP, "
            "give idle_watts and max_watts in the fleet file and profile again"
        ]
    weights = {"edp": 1.0} if asked is None else asked
    if unknown and exponents(weights)[1]:
        raise PlanError(
            f"no watts are known of {unknown}; give idle_watts and max_watts in the fleet file "
            "and profile again, leave them out with --exclude, or choose --metric time"
        )
    return weights, []


def metric_name(weights: Mapping[str, float]) -> str:
    """``edp``, or ``time=0.3,energy=0.7`` for weights over several metrics."""
    counted = {metric: weight for metric, weight in weights.items() if weight}
    if len(counted) == 1:
        return next(iter(counted))
    return ",".join(f"{metric}={weight:g}" for metric, weight in counted.items())


def make_plan(recommendation: Recommendation, fleet: str, place: int = 1) -> Plan:
    """The plan for the cluster at a place of the ranking. fleet: path of the fleet file."""
    row, workers, costs = recommendation.row(place), recommendation.workers(place), recommendation.costs_at(place)
    return Plan(
        schema=SCHEMA,
        fleet=fleet,
        model=costs.model,
        fingerprint=costs.fingerprint,
        framework="+".join(sorted({worker.framework for worker in workers})),
        metric=recommendation.metric,
        steps=round(math.fsum(worker.steps for worker in workers)),
        batch=row.config.batch,
        server=row.config.server,
        workers=workers,
        prediction=row.prediction,
        interval=row.interval,
        network_bytes=row.network_bytes,
        bottleneck=row.bottleneck,
        shares=row.shares,
        besides_w=row.besides_w,
        energy_uncertainty=row.energy_uncertainty,
        strategy=costs.strategy,
        time_uncertainty=row.time_uncertainty,
        engine=row.engine,
        job=costs.job,
        samples=costs.samples,
        micro_batch=costs.micro_batch,
        precision=costs.precision,
        clip_norm=recommendation.clip_norm,
    )


def _energy_note(weights: Mapping[str, float], counted_besides: float) -> list[str]:
    time, power = exponents(weights)
    if counted_besides or power < time or not power:
        return []
    return [
        "only the members' watts are counted, so that sharing the work among devices cannot save energy; "
        "--count-idle and --base-watts count what else is on the bill"
    ]


def _idle_of_left_out(profile: Profile, costs: Costs) -> float:
    """Idle watts of the devices that are no candidates. PlanError: some device's are unknown."""
    idle = dict(zip(costs.names, costs.devices.idle_w.tolist(), strict=True))
    others = {name: idle_watts(device) for name, device in profile.devices.items() if name not in idle}
    unknown = [name for name, watts in {**idle, **others}.items() if math.isnan(watts)]
    if unknown:
        raise PlanError(
            f"--count-idle: no idle watts are known of {', '.join(unknown)}; give idle_watts in the fleet "
            "file and profile again"
        )
    return math.fsum(others.values())


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
