"""Planned runs list all runs of an audit: each configuration, and one long run."""

import itertools
import math
import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from backends import models
from backends.data import dataset
from planner.audit.settings import EVERY, Settings, audited_strategy
from planner.audit.steady_state import SHARE_THAT_COUNTS, WARM_STEPS
from planner.errors import AuditError
from planner.plan.file import Plan
from planner.plan.rank import one_metric
from planner.plan.recommend import make_plan, recommend
from planner.plan.recommendation import Recommendation
from planner.plan.request import RecommendRequest, parse_engine
from planner.predict.clusters import ClusterConfig
from planner.profile.file import Profile
from planner.train.training_data import load_dataset

#: Exchanges of every counted worker after its warm-up: steps, or rounds of local steps.
FEWEST_STEPS, FEWEST_ROUNDS = 5, 3
#: Seconds at both ends of a run that are outside its steady state.
ENDS_S = 2.5
#: Factor by which the run that measures the error of extrapolation is longer than the others.
LONG_RUN_FACTOR = 3.0
#: Images to train on, few enough to be handed out at once; and in the evaluation at the end, as few
#: as possible, because only the time of steps counts.
IMAGES, TEST_IMAGES = 512, 8


class PlannedRun(NamedTuple):
    """A run to make; it is stopped after ``seconds``, long before the last step of its plan."""

    model: str
    config: ClusterConfig
    repetition: int
    plan: Plan
    seconds: float

    @property
    def name(self) -> str:
        workers = " ".join(self.config.workers)
        return f"{self.model}, {workers}, server {self.config.server}, repetition {self.repetition + 1}"


def planned_runs(settings: Settings, profile: Profile) -> Iterator[PlannedRun]:
    """All runs, one repetition after the other.

    All configurations of a model run one after the other, because they are compared with each other
    and the machine's speed drifts. Models and configurations are in random (seeded) order, so that
    drift favours none.
    """
    configured: list[list[tuple[Recommendation, int]]] = []
    for model in settings.models:
        ranked = ranking(settings, profile, model)
        admissible = audited_ranks(ranked, settings.servers)
        if settings.sample is not None and settings.sample < len(admissible):
            # In an order that does not depend on what is predicted.
            admissible.sort(key=lambda rank: ranked.row(rank).config)
            admissible = random.Random(f"{settings.seed}-{model}").sample(admissible, settings.sample)
        configured.append([(ranked, rank) for rank in admissible])
    for repetition in range(settings.repetitions):
        draw = random.Random(f"{settings.seed}-{repetition}")
        by_model = [draw.sample(each, len(each)) for each in draw.sample(configured, len(configured))]
        for ranked, rank in itertools.chain.from_iterable(by_model):
            plan = make_plan(ranked, settings.fleet, rank)
            seconds = run_duration_s(plan, settings.seconds)
            yield PlannedRun(ranked.costs.model, ranked.row(rank).config, repetition, plan, seconds)


def long_run(runs: list[PlannedRun], seconds: float) -> PlannedRun:
    """The largest cluster of the first model, in a longer run."""
    first = [run for run in runs if run.model == runs[0].model]
    largest = max(first, key=lambda run: len(run.config.workers))
    return largest._replace(seconds=run_duration_s(largest.plan, LONG_RUN_FACTOR * seconds))


def ranking(settings: Settings, profile: Profile, model: str) -> Recommendation:
    """The ranked configurations of a model. Raises PlanError where the profile lacks it."""
    request = RecommendRequest(
        one_metric("time"), model, settings.framework, settings.steps, settings.batch, allow_plaintext=True,
        strategy=audited_strategy(settings.strategy), rates_seed=settings.seed,
    )  # fmt: skip
    return recommend(profile, request.by(parse_engine(settings.engine)))


def audited_ranks(ranked: Recommendation, servers: str) -> list[int]:
    """Ranks from 1 of all configurations, or of those with the server on their fastest member.

    That is the member with the highest throughput (Gu et al., section III). Members that exchange
    among themselves have no server, and are one configuration.
    """
    every = range(1, len(ranked) + 1)
    if servers == EVERY or not ranked.costs.strategy.through_server:
        return list(every)
    gradient_s = dict(zip(ranked.costs.names, ranked.costs.devices.gradient_s.tolist(), strict=True))
    configs = {rank: ranked.row(rank).config for rank in every}
    return [
        rank for rank, config in configs.items() if config.server == min(config.workers, key=gradient_s.__getitem__)
    ]


def run_duration_s(plan: Plan, seconds: float) -> float:
    """Predicted duration of a run with ``seconds`` of steady state, longer for slow workers.

    Workers report whole rounds of local steps only, the first of them after their warm-up.
    """
    total = math.fsum(1.0 / worker.cycle_s for worker in plan.workers)
    slowest_s = max(each.cycle_s for each in plan.workers if 1.0 / each.cycle_s >= SHARE_THAT_COUNTS * total)
    warm_s = max(worker.build_s for worker in plan.workers) + WARM_STEPS * slowest_s
    local = plan.run_strategy.local
    warm_s += local.after / total
    round_s = local.seconds or (local.every or 1) * slowest_s
    steady_s = (1 + FEWEST_ROUNDS) * round_s if local else FEWEST_STEPS * slowest_s
    return warm_s + ENDS_S + max(seconds, steady_s)


def audit_images(settings: Settings, model: str) -> dataset.Dataset:
    """Images evenly spread over the audit's data set, else noise in the model's profiled shape.

    Raises AuditError where that shape is unknown, RunError where the data set cannot be read.
    """
    images = _noise(settings, model) if settings.data is None else _spread(load_dataset(settings.data))
    return images._replace(test_images=images.test_images[:TEST_IMAGES], test_labels=images.test_labels[:TEST_IMAGES])


def _spread(whole: dataset.Dataset) -> dataset.Dataset:
    count = len(whole.train_labels)
    chosen = np.linspace(0, count - 1, min(IMAGES, count)).round().astype(int)
    return whole._replace(train_images=whole.train_images[chosen], train_labels=whole.train_labels[chosen])


def _noise(settings: Settings, model: str) -> dataset.Dataset:
    shape, classes = settings.input_shape, settings.classes
    if not models.is_user_model(model):
        description = models.model(model, shape, classes)
        shape, classes = description.input_shape, description.classes
    if shape is None or classes is None:
        raise AuditError(f"{model}: the shape of its images is not known here; name a folder of them with --data")
    return dataset.synthetic(shape, classes, IMAGES, settings.seed)
