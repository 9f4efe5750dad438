"""Clusters of a ranking train for a few seconds each; where one fails, the others go on."""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from backends import models
from backends.data import dataset
from backends.strategies.strategy import Strategy
from planner.agents.pool import AgentPool
from planner.audit.outcome import Outcome
from planner.audit.steady_state import SteadyState, lasting_s
from planner.errors import AuditError, InterruptedRunError, PlannerError
from planner.fleet.device import Fleet
from planner.jobs.reference import find_job
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.plan.recommend import make_plan
from planner.plan.recommendation import Recommendation
from planner.predict.cycle import ALONE, kind_of
from planner.profile.request import ProfileRequest
from planner.train.orders import Options
from planner.train.start import TrainingRun
from planner.train.train import carry_out
from planner.train.training_data import JobData, ShippedImages, TrainingData, load_dataset

#: Small enough that nothing overflows on noise; the time of a step does not depend on it.
LEARNING_RATE = 1e-4
HEARTBEAT_S = 30.0
#: Images to train on, few enough to be handed out at once, and in the evaluation at the end.
IMAGES, TEST_IMAGES = 512, 8


class Audit(NamedTuple):
    """What is audited: the first ``clusters`` of a ranking, each for ``seconds``.

    data: a folder of images; None for noise, or the data of a job.
    """

    ranked: Recommendation
    fleet: Fleet
    clusters: int
    seconds: float
    data: Path | None


def outcomes(audit: Audit) -> Iterator[Outcome]:
    """Train one cluster after the other. Raises InterruptedRunError on Ctrl-C."""
    plans = [make_plan(audit.ranked, str(audit.fleet.path), place) for place in range(1, audit.clusters + 1)]
    data = _data(plans[0], audit.data)
    agents = AgentPool()
    try:
        for place, plan in enumerate(plans, 1):
            predicted = _predicted(place, plan)
            try:
                yield _measured(predicted, plan, audit, data, agents)
            except InterruptedRunError:
                raise
            except PlannerError as error:
                yield predicted._replace(failure=str(error))
                agents.close()
                agents = AgentPool()
    finally:
        agents.close()


def _predicted(place: int, plan: Plan) -> Outcome:
    total = math.fsum(1.0 / worker.cycle_s for worker in plan.workers)
    kind = kind_of(plan.run.strategy, plan.run.engine) if len(plan.workers) > 1 else ALONE
    return Outcome(place, plan.server, plan.names, kind, plan.stand_ins, 1.0 / total, plan.prediction.power_w)


def _measured(predicted: Outcome, plan: Plan, audit: Audit, data: TrainingData, agents: AgentPool) -> Outcome:
    steady = SteadyState(plan)
    options = Options(
        data="", rate=LEARNING_RATE, evaluate_every=plan.run.steps, heartbeat_s=HEARTBEAT_S, keep_weights=False
    )
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun(plan, audit.fleet, data, options, RunFolder(Path(folder)), steady.on_event, agents)
        carry_out(run, lasting_s=lasting_s(plan, audit.seconds))
    return predicted._replace(measured_s=steady.step_s(), measured_w=steady.watts())


def _data(plan: Plan, folder: Path | None) -> TrainingData:
    """Images of a folder, noise without one, or the data of a job, which reads its own.

    Raises AuditError for a model or job that is not the one that was profiled, and for a model of
    the user's whose images are not given; RunError where these cannot be read.
    """
    job = find_job(plan.run.model) if plan.run.job else None
    if job is not None or models.is_user_model(plan.run.model):
        present = ProfileRequest((plan.run.model,), job=job).fingerprint(plan.run.model)
        if present != plan.fingerprint:
            raise AuditError(f"{plan.run.model} has changed since it was profiled; profile it again")
    if job is not None:
        return JobData(job)
    images = _noise(plan.run.model) if folder is None else _spread(load_dataset(str(folder)))
    test = images.test_images[:TEST_IMAGES], images.test_labels[:TEST_IMAGES]
    return ShippedImages(images._replace(test_images=test[0], test_labels=test[1]))


def _spread(whole: dataset.Dataset) -> dataset.Dataset:
    """Some of its images, evenly spread."""
    count = len(whole.train_labels)
    chosen = np.linspace(0, count - 1, min(IMAGES, count)).round().astype(int)
    return whole._replace(train_images=whole.train_images[chosen], train_labels=whole.train_labels[chosen])


def _noise(model: str) -> dataset.Dataset:
    if models.is_user_model(model):
        raise AuditError(f"{model}: the shape of its images is not known here; name a folder of them with --data")
    described = models.model(model)
    return dataset.synthetic(described.input_shape, described.classes, IMAGES, 0)


def steady_batches(strategy: Strategy) -> Strategy:
    """A strategy whose batches stay as they begin: a short run sees only the first of them."""
    return strategy.with_part("batching", "fixed") if strategy.batching == "dynamic" else strategy
