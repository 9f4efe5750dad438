"""Runs every configuration of a fleet for a short while, and what is missing only, so that an audit can be resumed."""

import shutil
from collections.abc import Callable

from planner.agents.pool import AgentPool
from planner.audit.folder import AuditFolder
from planner.audit.jobs import AuditRun, jobs_of, long_job, noise
from planner.audit.steady import read, steady
from planner.errors import InterruptedRunError, PlannerError, RecordError
from planner.fleet.device import Fleet
from planner.paths import RunFolder
from planner.train.launch import Launch
from planner.train.orders import Options
from planner.train.train import carry_out

#: A rate at which nothing is learnt from noise and nothing overflows; a step takes as long at any.
RATE = 1e-4
HEARTBEAT_S = 30.0

#: Called before each run: what it is, how many are done, how many there are.
OnRun = Callable[[str, int, int], None]


class Runner:
    """Makes the runs of an audit that are not in its folder yet."""

    def __init__(self, fleet: Fleet, folder: AuditFolder, on_run: OnRun) -> None:
        self._fleet = fleet
        self._folder = folder
        self._settings = folder.settings()
        self._profile = folder.profile()
        self._on_run = on_run
        self._crew = AgentPool()

    def run(self) -> dict[str, str]:
        """Make every run; the reasons of those that failed, by run. Raises InterruptedRunError on Ctrl-C."""
        jobs = list(jobs_of(self._settings, self._profile))
        runs = {job.name: (job, self._folder.run(job.model, job.config, job.repetition)) for job in jobs}
        longer = long_job(jobs, self._settings.seconds)
        runs["the long run that tests the extrapolation"] = (longer, self._folder.long_run)
        failures = {}
        try:
            for done, (name, (job, folder)) in enumerate(runs.items()):
                self._on_run(name, done, len(runs))
                if folder.result.exists():
                    continue
                try:
                    self._make(job, folder)
                except InterruptedRunError as error:
                    raise InterruptedRunError(f"stopped in {name}; the same command goes on there") from error
                except PlannerError as error:
                    failures[name] = str(error)
                    self._crew.close()
                    self._crew = AgentPool()
        finally:
            self._crew.close()
        return failures

    def _make(self, job: AuditRun, folder: RunFolder) -> None:
        """One run, in an empty folder: what an earlier one left there before its end is no use."""
        shutil.rmtree(folder.path, ignore_errors=True)
        folder.path.mkdir(parents=True)
        options = Options(
            data="", rate=RATE, seed=self._settings.seed, evaluate_every=job.plan.steps,
            heartbeat_s=HEARTBEAT_S, keep_weights=False,
        )  # fmt: skip
        dataset = noise(self._settings, job.model)
        launch = Launch(job.plan, self._fleet, dataset, options, folder, lambda *_: None, self._crew)
        carry_out(launch, lasting_s=job.seconds)
        try:
            if folder.path == self._folder.long_run.path:
                read(folder)
            else:
                steady(folder, self._profile, 0)
        except RecordError:
            folder.result.unlink()  # no result yet: the next attempt makes the run again
            raise
