"""Runs every configuration of a fleet for a short while, and what is missing only, so that an audit can be resumed."""

import math
import random
import shutil
from collections.abc import Callable, Iterator
from typing import NamedTuple

from backends import data, models
from planner.audit.folder import AuditFolder
from planner.audit.settings import EVERY, Settings
from planner.audit.steady import WARM_STEPS, steady
from planner.clusters import ClusterConfig
from planner.crew import Crew
from planner.errors import AuditError, InterruptedRunError, PlannerError, RecordError
from planner.fleet import Fleet
from planner.journal import OnEvent
from planner.launch import Launch
from planner.plan import Recommendation, make_plan, recommend
from planner.planfile import Plan
from planner.profilefile import Profile
from planner.rank import one_metric
from planner.run import carry_out
from planner.runs import RunFolder
from planner.training import Options

#: Steps of every worker that count, besides those that warm it up; one that makes a smaller share of all need not.
FEWEST_STEPS = 5
SHARE_THAT_COUNTS = 0.02
#: Seconds at both ends of a run that its steady state leaves out.
ENDS_S = 4.0
#: A rate at which nothing is learnt from noise and nothing overflows; a step takes as long at any.
RATE = 1e-4
#: Nothing but the time of steps counts, so the evaluation at the end is as small as can be.
IMAGES, TEST_IMAGES = 512, 8
HEARTBEAT_S = 30.0
#: How much longer than the others the run is that measures the extrapolation's own error.
LONG = 3.0

#: Called before each run: what it is, how many are done, how many there are.
OnRun = Callable[[str, int, int], None]


class Job(NamedTuple):
    """A run to be made: its plan, and its folder."""

    name: str
    plan: Plan
    folder: RunFolder


class Runner:
    """Makes the runs of an audit that are not in its folder yet."""

    def __init__(self, fleet: Fleet, folder: AuditFolder, on_run: OnRun, on_event: OnEvent) -> None:
        self._fleet = fleet
        self._folder = folder
        self._settings = folder.settings()
        self._profile = folder.profile()
        self._on_run = on_run
        self._on_event = on_event
        self._crew = Crew()

    def run(self) -> dict[str, str]:
        """Make every run; the reasons of those that failed, by run. Raises InterruptedRunError on Ctrl-C."""
        jobs = [*jobs_of(self._settings, self._profile, self._folder), *self._long_run()]
        failures = {}
        try:
            for done, job in enumerate(jobs):
                self._on_run(job.name, done, len(jobs))
                if job.folder.result.exists():
                    continue
                try:
                    self._make(job)
                except InterruptedRunError as error:
                    raise InterruptedRunError(f"stopped in {job.name}; the same command goes on there") from error
                except PlannerError as error:
                    failures[job.name] = str(error)
                    self._crew.close()
                    self._crew = Crew()
        finally:
            self._crew.close()
        return failures

    def _make(self, job: Job) -> None:
        """One run, in an empty folder: what an earlier one left there before its end is no use."""
        shutil.rmtree(job.folder.path, ignore_errors=True)
        job.folder.path.mkdir(parents=True)
        options = Options(
            data="", rate=RATE, seed=self._settings.seed, evaluate_every=job.plan.steps,
            heartbeat_s=HEARTBEAT_S, keep_weights=False,
        )  # fmt: skip
        dataset = noise(self._settings, job.plan.model)
        carry_out(Launch(job.plan, self._fleet, dataset, options, job.folder, self._on_event, self._crew))
        try:
            steady(job.folder, self._profile, 0)
        except RecordError:
            job.folder.result.unlink()  # no result yet: the next attempt makes the run again
            raise

    def _long_run(self) -> list[Job]:
        """The largest cluster of the first model, for longer."""
        ranked = recommended(self._settings, self._profile, self._settings.models[0])
        place = max(range(1, len(ranked) + 1), key=lambda place: len(ranked.row(place).config.workers))
        plan = short(make_plan(ranked, self._settings.fleet, place), LONG * self._settings.seconds)
        return [Job("the long run that tests the extrapolation", plan, self._folder.long_run)]


def jobs_of(settings: Settings, profile: Profile, folder: AuditFolder) -> Iterator[Job]:
    """All runs, a repetition after the other, each in a seeded order: what drifts does not favour one configuration."""
    configured: list[tuple[Recommendation, int]] = []
    for model in settings.models:
        ranked = recommended(settings, profile, model)
        admissible = places(ranked, settings.servers)
        if settings.sample is not None and settings.sample < len(admissible):
            admissible = random.Random(f"{settings.seed}-{model}").sample(admissible, settings.sample)
        configured += [(ranked, place) for place in admissible]
    for repetition in range(settings.repetitions):
        order = list(configured)
        random.Random(f"{settings.seed}-{repetition}").shuffle(order)
        for ranked, place in order:
            row = ranked.row(place)
            config, model = row.config, ranked.costs.model
            plan = short(make_plan(ranked, settings.fleet, place), settings.seconds)
            name = f"{model}, {' '.join(config.workers)}, server {config.server}, repetition {repetition + 1}"
            yield Job(name, plan, folder.run(model, config, repetition))


def recommended(settings: Settings, profile: Profile, model: str) -> Recommendation:
    """All configurations of a model. Raises PlanError where the profile does not hold it."""
    return recommend(profile, one_metric("time"), model, settings.framework, settings.steps, settings.batch)


def places(ranked: Recommendation, servers: str) -> list[int]:
    """The audited places of the ranking: all, or of each set of workers that with the server on the fastest."""
    every = range(1, len(ranked) + 1)
    if servers == EVERY:
        return list(every)
    return [place for place in every if (config := ranked.row(place).config).server == fastest(ranked, config)]


def fastest(ranked: Recommendation, config: ClusterConfig) -> str:
    """The member with the highest throughput, whose CPU hosts the server (Gu et al., section III)."""
    gradient_s = dict(zip(ranked.costs.names, ranked.costs.gradient_s.tolist(), strict=True))
    return min(config.workers, key=lambda name: gradient_s[name])


def short(plan: Plan, seconds: float) -> Plan:
    """The plan for a run of about so many seconds of steady state, as it is predicted; longer where a worker that
    counts would make too few steps."""
    total = math.fsum(1.0 / worker.cycle_s for worker in plan.workers)
    slowest_s = max(each.cycle_s for each in plan.workers if 1.0 / each.cycle_s >= SHARE_THAT_COUNTS * total)
    begun_s = max(worker.build_s for worker in plan.workers) + WARM_STEPS * slowest_s
    ended_s = begun_s + ENDS_S + max(seconds, FEWEST_STEPS * slowest_s)
    return plan.for_steps(math.ceil(math.fsum((ended_s - each.build_s) / each.cycle_s for each in plan.workers)))


def noise(settings: Settings, model: str) -> data.Dataset:
    """Images of noise, of the shape that the model was profiled with. Raises AuditError where that is unknown."""
    shape, classes = settings.input_shape, settings.classes
    if not models.is_user_model(model):
        description = models.model(model, shape, classes)
        shape, classes = description.input_shape, description.classes
    if shape is None or classes is None:
        raise AuditError(f"{model}: what images it takes is not known here; name a directory of them with --data")
    images = data.synthetic(shape, classes, IMAGES, settings.seed)
    return images._replace(test_images=images.test_images[:TEST_IMAGES], test_labels=images.test_labels[:TEST_IMAGES])
