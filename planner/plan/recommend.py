"""Predict and rank the clusters of a profile; one of them becomes plan.json."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from backends.strategies.engine import OWN, Engine
from backends.training.run_settings import RunSettings
from planner import units
from planner.errors import PlanError, RecordError
from planner.json_records import decode
from planner.plan.admissible import admissible
from planner.plan.file import Plan
from planner.plan.rank import exponents, rank
from planner.plan.recommendation import Recommendation
from planner.plan.request import RecommendRequest, training_samples, with_optimizer
from planner.plan.shared_batch import weighing_samples
from planner.predict.batch_size import RunLength
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs, costs_of
from planner.predict.device_costs import idle_watts
from planner.predict.predict import predict
from planner.profile.file import Profile
from profilers.records.json_values import SCHEMA, json_value

#: Of devices that no audit tells of.
UNCALIBRATED = "± tells how much measurements varied; runs may differ by more, which `planner audit` measures"
#: Why nothing can be predicted, and what to do.
STRANGE_NUMBERS = "the profile has times, rates or watts that cannot be; run `planner profile --fresh`"


def recommend(profile: Profile, request: RecommendRequest) -> Recommendation:
    """Predict and rank every admissible cluster. PlanError tells what stands in the way."""
    request.check()
    strategy = with_optimizer(request.strategy, request.optimizer)
    if request.global_batch is not None and request.engine.name == OWN:
        strategy = weighing_samples(strategy)
    steps = profile.steps_planned if request.steps is None else request.steps
    samples = training_samples(profile, request.model, request.training_samples)
    run = RunLength(
        steps, samples, request.sample_efficiency, request.critical_batch, request.rounds_efficiency,
        rates_seed=request.rates_seed,
    )  # fmt: skip
    costs = costs_of(
        profile, request.model, request.framework, request.batch, request.rates, request.include, strategy, run,
        request.engine, request.allow_plaintext, request.global_batch, request.clip_norm is not None,
        request.stream,
    )  # fmt: skip
    if request.calibration is not None:
        costs = request.calibration.applied_to(costs)
    candidates, memory_notes = admissible(costs, request)
    weights, notes = _weights(costs, candidates, request.weights)
    extra_w = request.base_watts + (_idle_of_left_out(profile, costs) if request.count_idle else 0.0)
    predictions = predict(costs, candidates, steps, request.count_idle, extra_w)
    ranking = rank(predictions, weights)
    if not math.isfinite(ranking.at(1).score):
        raise PlanError(f"no cluster has a finite {metric_name(weights)}: {STRANGE_NUMBERS}")
    found = Recommendation(
        metric=metric_name(weights),
        weights=weights,
        steps=steps,
        costs=costs,
        predictions=predictions,
        ranking=ranking,
        notes=(
            *notes,
            *memory_notes,
            *costs.notes,
            *_energy_note(weights, extra_w + request.count_idle),
            *_calibration_note(costs, request),
        ),
        details=costs.details,
        profiling_s=profile.profiling_s(costs.model),
        engine=request.engine.text,
        clip_norm=request.clip_norm,
    )
    return replace(found, details=(*_round_note(found), *found.details))


def _round_note(found: Recommendation) -> list[str]:
    """What a round of the best cluster is, where it makes rounds of local steps."""
    row = found.row(1)
    if not found.costs.strategy.local or len(row.config.workers) == 1:
        return []
    steps = found.local_steps(1)
    round_s, computed_s = found.round_s(1)
    made = ", ".join(f"{name} {count}" for name, count in steps.items())
    power_w = row.prediction.power_w
    energy = "" if power_w is None else f" and {units.joules(power_w * round_s)}"
    waits = "" if found.costs.streams is None else ", or waiting for samples,"
    return [
        f"a round of the best cluster takes {units.seconds(round_s)}{energy}; the exchange{waits} is "
        f"{units.seconds(max(0.0, round_s - computed_s))} of it; local steps: {made}"
    ]


def _calibration_note(costs: Costs, request: RecommendRequest) -> list[str]:
    if request.calibration is None or request.calibration.fits(costs):
        return []
    return [UNCALIBRATED]


def make_plan(recommendation: Recommendation, fleet: str, place: int = 1) -> Plan:
    """The plan for the cluster at a place of the ranking. fleet: path of the fleet file.

    Raises PlanError where numbers of the profile are so far off that it could not be read again.
    """
    row, workers, costs = recommendation.row(place), recommendation.workers(place), recommendation.costs_at(place)
    run = RunSettings(
        model=costs.model,
        job=costs.job,
        steps=round(math.fsum(worker.steps for worker in workers)),
        batch=row.config.batch,
        strategy=costs.strategy,
        engine=Engine.from_text(row.engine),
        clip_norm=recommendation.clip_norm,
        micro_batch=costs.micro_batch,
        precision=costs.precision,
        stream=None if costs.streams is None else costs.streams.spec,
        rates_seed=costs.rates_seed,
    )
    made = Plan(
        schema=SCHEMA,
        fleet=fleet,
        run=run,
        fingerprint=costs.fingerprint,
        metric=recommendation.metric,
        server=row.config.server,
        workers=workers,
        prediction=row.prediction,
        interval=row.interval,
        network_bytes=row.network_bytes,
        shares=row.shares,
        besides_w=row.besides_w,
        energy_uncertainty=row.energy_uncertainty,
        time_uncertainty=row.time_uncertainty,
        samples=costs.samples,
    )
    try:
        decode(Plan, json_value(made)).check()
    except (RecordError, ValueError) as error:
        raise PlanError(f"plan: {error}: {STRANGE_NUMBERS}") from None
    return made


def metric_name(weights: Mapping[str, float]) -> str:
    """``edp``, or ``time=0.3,energy=0.7`` for weights over several metrics."""
    counted = {metric: weight for metric, weight in weights.items() if weight}
    if len(counted) == 1:
        return next(iter(counted))
    return ",".join(f"{metric}={weight:g}" for metric, weight in counted.items())


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
            f"ranked by time, because no watts are known of {unknown}; to rank by energy, give idle_watts and "
            "max_watts in the fleet file and profile again"
        ]
    weights = {"edp": 1.0} if asked is None else asked
    if unknown and exponents(weights)[1]:
        raise PlanError(
            f"no watts are known of {unknown}; give idle_watts and max_watts in the fleet file "
            "and profile again, leave them out with --exclude, or choose --metric time"
        )
    return weights, []


def _energy_note(weights: Mapping[str, float], counted_besides: float) -> list[str]:
    time, power = exponents(weights)
    if counted_besides or power < time or not power:
        return []
    return [
        "devices left out count as switched off, which favours one device alone; "
        "--count-idle counts their idle watts, --base-watts others"
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
