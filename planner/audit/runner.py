"""The runner makes every run of an audit that its folder lacks, so that an audit can be resumed."""

import shutil
from collections.abc import Callable

from backends import models
from planner.agents.pool import AgentPool
from planner.audit.folder import AuditFolder
from planner.audit.planned_runs import PlannedRun, audit_images, long_run, planned_runs
from planner.audit.settings import Settings
from planner.audit.steady_state import read_log, steady_state
from planner.errors import AuditError, InterruptedRunError, PlannerError, RecordError
from planner.fleet.device import Fleet
from planner.jobs.reference import find_job
from planner.paths import RunFolder
from planner.profile.request import ProfileRequest
from planner.train.launch import Launch
from planner.train.orders import Options
from planner.train.train import carry_out
from planner.train.training_data import JobData, ShippedImages, TrainingData

#: Learning rate, small enough to avoid overflow on noise; step times do not depend on it.
LEARNING_RATE = 1e-4
HEARTBEAT_S = 30.0
#: A run in which the machine's speed changed by more than this share is made again, once.
DISTURBED = 0.2

#: Progress callback before each run: its name, number of runs done, number of all runs.
OnRun = Callable[[str, int, int], None]


def make_missing_runs(fleet: Fleet, audit: AuditFolder, on_run: OnRun) -> dict[str, str]:
    """Make every run that an audit lacks, with one pool of agents.

    Returns the reasons of failed ones, by name. Raises InterruptedRunError on Ctrl-C.
    """
    settings = audit.settings()
    planned = list(planned_runs(settings, audit.profile()))
    runs = {run.name: (run, audit.run(run.model, run.config, run.repetition)) for run in planned}
    runs["the long run that tests the extrapolation"] = (long_run(planned, settings.seconds), audit.long_run)
    failures = {}
    agents = AgentPool()
    try:
        for done, (name, (run, folder)) in enumerate(runs.items()):
            on_run(name, done, len(runs))
            if folder.result.exists():
                continue
            try:
                counts = folder.path != audit.long_run.path
                _make(run, folder, fleet, settings, agents)
                if _disturbance(folder, counts) > DISTURBED:
                    on_run(f"{name} again, for the machine was disturbed", done, len(runs))
                    _make(run, folder, fleet, settings, agents)
                    _disturbance(folder, counts)
            except InterruptedRunError as error:
                raise InterruptedRunError(f"stopped in {name}; the same command resumes there") from error
            except PlannerError as error:
                failures[name] = str(error)
                agents.close()
                agents = AgentPool()
    finally:
        agents.close()
    return failures


def _make(run: PlannedRun, folder: RunFolder, fleet: Fleet, settings: Settings, agents: AgentPool) -> None:
    """Make one run in an emptied folder; an unfinished run in it is discarded."""
    shutil.rmtree(folder.path, ignore_errors=True)
    folder.path.mkdir(parents=True)
    options = Options(
        data="", rate=LEARNING_RATE, seed=settings.seed, evaluate_every=run.plan.steps,
        heartbeat_s=HEARTBEAT_S, keep_weights=False,
    )  # fmt: skip
    carry_out(
        Launch(run.plan, fleet, _data(run, settings), options, folder, lambda *_: None, agents), lasting_s=run.seconds
    )


def _data(run: PlannedRun, settings: Settings) -> TrainingData:
    """Images of the audit's data set, noise without one, or the data of a job, which reads its own.

    Raises AuditError for a model or job that is not the one that was profiled.
    """
    job = find_job(run.model) if run.plan.job else None
    if job is not None or models.is_user_model(run.model):
        present = ProfileRequest((run.model,), job=job).fingerprint(run.model)
        if present != run.plan.fingerprint:
            raise AuditError(
                f"{run.model} has changed since it was profiled; profile it again, and begin another audit"
            )
    return ShippedImages(audit_images(settings, run.model)) if job is None else JobData(job, run.plan.samples)


def _disturbance(folder: RunFolder, counts: bool) -> float:
    """``MeasuredRun.disturbance`` of a finished run; 0 for one whose steady state does not count.

    Removes the result, so that the run is made again, and raises RecordError where it has too few
    readings. counts: whether its steady state does.
    """
    try:
        if counts:
            return steady_state(folder, 0).disturbance
        read_log(folder)
        return 0.0
    except RecordError:
        folder.result.unlink()
        raise
