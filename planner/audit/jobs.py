"""Which runs an audit consists of."""

import itertools
import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from backends import models
from backends.data import dataset
from planner.audit.settings import EVERY, Settings
from planner.audit.steady import SHARE_THAT_COUNTS, WARM_STEPS
from planner.errors import AuditError
from planner.plan.file import Plan
from planner.plan.rank import one_metric
from planner.plan.recommend import Recommendation, make_plan, recommend
from planner.plan.request import RecommendRequest
from planner.predict.clusters import ClusterConfig
from planner.profile.file import Profile

#: Steps of every worker that counts, besides those that warm it up.
FEWEST_STEPS = 5
#: Seconds at both ends of a run that its steady state leaves out.
ENDS_S = 2.5
#: How much longer than the others the run is that measures the extrapolation's own error.
LONG = 3.0
#: Nothing but the time of steps counts, so the evaluation at the end is as small as can be.
IMAGES, TEST_IMAGES = 512, 8


class AuditRun(NamedTuple):
    """A run to be made; it ends after ``seconds``, long before the plan's last step."""

    model: str
    config: ClusterConfig
    repetition: int
    plan: Plan
    seconds: float

    @property
    def name(self) -> str:
        """For people."""
        workers = " ".join(self.config.workers)
        return f"{self.model}, {workers}, server {self.config.server}, repetition {self.repetition + 1}"


def jobs_of(settings: Settings, profile: Profile) -> Iterator[AuditRun]:
    """All runs, a repetition after the other, of a model those of all configurations together: what is compared is
    to run in the same minutes. Models and configurations come in a seeded order, so that what drifts favours none."""
    configured: list[list[tuple[Recommendation, int]]] = []
    for model in settings.models:
        ranked = recommended(settings, profile, model)
        admissible = places(ranked, settings.servers)
        if settings.sample is not None and settings.sample < len(admissible):
            admissible = random.Random(f"{settings.seed}-{model}").sample(admissible, settings.sample)
        configured.append([(ranked, place) for place in admissible])
    for repetition in range(settings.repetitions):
        draw = random.Random(f"{settings.seed}-{repetition}")
        by_model = [draw.sample(each, len(each)) for each in draw.sample(configured, len(configured))]
        for ranked, place in itertools.chain.from_iterable(by_model):
            plan = make_plan(ranked, settings.fleet, place)
            yield AuditRun(
                ranked.costs.model, ranked.row(place).config, repetition, plan, lasting_s(plan, settings.seconds)
            )


def long_job(jobs: list[AuditRun], seconds: float) -> AuditRun:
    """The largest cluster of the first model, for longer than in its short run."""
    first = [job for job in jobs if job.model == jobs[0].model]
    largest = max(first, key=lambda job: len(job.config.workers))
    return largest._replace(seconds=lasting_s(largest.plan, LONG * seconds))


def recommended(settings: Settings, profile: Profile, model: str) -> Recommendation:
    """All configurations of a model. Raises PlanError where the profile does not hold it."""
    request = RecommendRequest(one_metric("time"), model, settings.framework, settings.steps, settings.batch)
    return recommend(profile, request)


def places(ranked: Recommendation, servers: str) -> list[int]:
    """The audited places of the ranking: all, or of each set of workers that with the server on the fastest."""
    every = range(1, len(ranked) + 1)
    if servers == EVERY:
        return list(every)
    return [place for place in every if (config := ranked.row(place).config).server == fastest(ranked, config)]


def fastest(ranked: Recommendation, config: ClusterConfig) -> str:
    """The member with the highest throughput, whose CPU hosts the server (Gu et al., section III)."""
    gradient_s = dict(zip(ranked.costs.names, ranked.costs.devices.gradient_s.tolist(), strict=True))
    return min(config.workers, key=lambda name: gradient_s[name])


def lasting_s(plan: Plan, seconds: float) -> float:
    """How long a run with so many seconds of steady state lasts, as it is predicted; longer where a worker that counts
    would make too few steps."""
    total = math.fsum(1.0 / worker.cycle_s for worker in plan.workers)
    slowest_s = max(each.cycle_s for each in plan.workers if 1.0 / each.cycle_s >= SHARE_THAT_COUNTS * total)
    begun_s = max(worker.build_s for worker in plan.workers) + WARM_STEPS * slowest_s
    return begun_s + ENDS_S + max(seconds, FEWEST_STEPS * slowest_s)


def noise(settings: Settings, model: str) -> dataset.Dataset:
    """Images of noise, of the shape that the model was profiled with. Raises AuditError where that is unknown."""
    shape, classes = settings.input_shape, settings.classes
    if not models.is_user_model(model):
        description = models.model(model, shape, classes)
        shape, classes = description.input_shape, description.classes
    if shape is None or classes is None:
        raise AuditError(f"{model}: what images it takes is not known here; name a directory of them with --data")
    images = dataset.synthetic(shape, classes, IMAGES, settings.seed)
    return images._replace(test_images=images.test_images[:TEST_IMAGES], test_labels=images.test_labels[:TEST_IMAGES])
