"""Predict and rank the clusters of a profile; one of them becomes plan.json."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from backends.frameworks.optimizer import ADAM, ADAMW, SGD
from backends.strategies.engine import OWN, Engine
from planner import units
from planner.errors import PlanError, RecordError
from planner.json_records import decode
from planner.plan.admissible import admissible
from planner.plan.file import Plan
from planner.plan.rank import exponents, rank
from planner.plan.recommendation import Recommendation
from planner.plan.standing import Part
from planner.plan.texts import with_optimizer
from planner.plan.weighing_samples import weighing_samples
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.interval import RECORDED
from planner.predict.request import RecommendRequest
from planner.predict.run import Bill, predict
from planner.predict.training import prepare
from planner.predict.watts import idle_watts
from planner.profile.file import Profile
from profilers.records.json_values import SCHEMA, json_value

#: Optimizers that update each element by itself.
DIVISIBLE = (SGD, ADAM, ADAMW)
#: Why nothing can be predicted, and what to do.
STRANGE_NUMBERS = "the profile has times, rates or watts that cannot be; run `planner profile --fresh`"


def recommend(profile: Profile, request: RecommendRequest) -> Recommendation:
    """Predict and rank every admissible cluster. PlanError tells what stands in the way."""
    request.check()
    strategy = with_optimizer(request.strategy, request.optimizer)
    if request.settings.engine.is_sharded and strategy.optimizer.name not in DIVISIBLE:
        raise PlanError(
            f"--engine {request.settings.engine.text}: members hold parts of variables, which optimizer "
            f"{strategy.optimizer.name} cannot update; choose --optimizer {', '.join(DIVISIBLE)}"
        )
    if request.global_batch is not None and request.settings.engine.name == OWN:
        strategy = weighing_samples(strategy)
    inputs, training = prepare(profile, request.setting(strategy=strategy))
    candidates, memory_notes = admissible(inputs, training, request)
    weights, notes = _weights(inputs, candidates, request.weights)
    bill = request.bill
    if bill.count_idle:
        bill = bill._replace(extra_w=bill.extra_w + _idle_of_left_out(profile, inputs))
    predictions = predict(inputs, candidates, training.settings.steps, bill)
    ranking = rank([predictions], weights)
    if not 0 < ranking.score[ranking.order[0]] < math.inf:
        raise PlanError(f"no cluster has a {metric_name(weights)} above 0 and finite: {STRANGE_NUMBERS}")
    found = Recommendation(
        metric=metric_name(weights),
        weights=weights,
        parts=(Part(inputs, training, predictions, bill, request.errors),),
        ranking=ranking,
        notes=(*notes, *memory_notes, *training.notes, *_energy_note(weights, bill)),
        details=training.details,
        profiling_s=profile.profiling_s(training.settings.model),
        engine=request.settings.engine.text,
    )
    return replace(found, details=(*_round_note(found), *found.details, *_interval_note(found)))


def _round_note(found: Recommendation) -> list[str]:
    """What a round of the best cluster is, where it makes rounds of local steps."""
    if not found.inputs.strategy.local or len(found.config(1).workers) == 1:
        return []
    steps = found.local_steps(1)
    round_s, computed_s = found.round_s(1)
    made = ", ".join(f"{name} {count}" for name, count in steps.items())
    power_w = found.prediction(1).power_w
    energy = "" if power_w is None else f" and {units.joules(power_w * round_s)}"
    waits = "" if found.inputs.streams is None else ", or waiting for samples,"
    return [
        f"a round of the best cluster takes {units.seconds(round_s)}{energy}; the exchange{waits} is "
        f"{units.seconds(max(0.0, round_s - computed_s))} of it; local steps: {made}"
    ]


def _interval_note(found: Recommendation) -> list[str]:
    """Where intervals come from, for devices that are unlike those of the recorded runs."""
    if found.stand_ins or found.parts[0].errors != RECORDED:
        return []
    return [
        "intervals hold the errors of runs on emulated devices; `planner audit` trains some clusters "
        "and adds the errors that it sees here"
    ]


def make_plan(recommendation: Recommendation, fleet: str, place: int = 1) -> Plan:
    """The plan for the cluster at a place of the ranking. fleet: path of the fleet file.

    Raises PlanError where numbers of the profile are so far off that it could not be read again.
    """
    row, workers = recommendation.row(place), recommendation.workers(place)
    training, standing = recommendation.training_at(place), row.standing
    run = training.settings._replace(
        steps=round(math.fsum(worker.steps for worker in workers)),
        batch=row.config.batch,
        strategy=recommendation.inputs_at(place).strategy,
        engine=Engine.from_text(row.engine),
    )
    made = Plan(
        schema=SCHEMA,
        fleet=fleet,
        run=run,
        fingerprint=training.fingerprint,
        metric=recommendation.metric,
        server=row.config.server,
        workers=workers,
        prediction=row.prediction,
        interval=standing.interval,
        network_bytes=row.network_bytes,
        shares=row.shares,
        besides_w=row.besides_w,
        energy_uncertainty=standing.energy_uncertainty,
        time_uncertainty=standing.time_uncertainty,
        samples=training.samples,
    )
    try:
        decode(Plan, json_value(made))
    except RecordError as error:
        raise PlanError(f"plan: {error}: {STRANGE_NUMBERS}") from None
    return made


def metric_name(weights: Mapping[str, float]) -> str:
    """``edp``, or ``time=0.3,energy=0.7`` for weights over several metrics."""
    counted = {metric: weight for metric, weight in weights.items() if weight}
    if len(counted) == 1:
        return next(iter(counted))
    return ",".join(f"{metric}={weight:g}" for metric, weight in counted.items())


def _weights(
    inputs: Inputs, candidates: Candidates, asked: Mapping[str, float] | None
) -> tuple[Mapping[str, float], list[str]]:
    """The weights that clusters are ranked by, and notes on them.

    asked: None for EDP, or for time where watts are unknown. PlanError: unknown ones are asked for.
    """
    used = candidates.members(len(inputs.names)).any(axis=0)
    unknown = ", ".join(inputs.names[i] for i in np.flatnonzero(used & np.isnan(inputs.watts.busy_w)))
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


def _energy_note(weights: Mapping[str, float], bill: Bill) -> list[str]:
    time, power = exponents(weights)
    if bill.count_idle or bill.extra_w or power < time or not power:
        return []
    return [
        "devices left out count as switched off, which favours one device alone; "
        "--count-idle counts their idle watts, --base-watts others"
    ]


def _idle_of_left_out(profile: Profile, inputs: Inputs) -> float:
    """Idle watts of the devices that are no candidates. PlanError: some device's are unknown."""
    idle = dict(zip(inputs.names, inputs.watts.idle_w.tolist(), strict=True))
    others = {name: idle_watts(device) for name, device in profile.devices.items() if name not in idle}
    unknown = [name for name, watts in {**idle, **others}.items() if math.isnan(watts)]
    if unknown:
        raise PlanError(
            f"--count-idle: no idle watts are known of {', '.join(unknown)}; give idle_watts in the fleet "
            "file and profile again"
        )
    return math.fsum(others.values())
