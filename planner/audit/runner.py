"""The runner makes every run of an audit that its folder lacks, so that an audit can be resumed."""

import shutil
from collections.abc import Callable

from planner.agents.pool import AgentPool
from planner.audit.folder import AuditFolder
from planner.audit.planned_runs import PlannedRun, long_run, noise_images, planned_runs
from planner.audit.steady_state import read_log, steady_state
from planner.errors import InterruptedRunError, PlannerError, RecordError
from planner.fleet.device import Fleet
from planner.paths import RunFolder
from planner.train.launch import Launch
from planner.train.orders import Options
from planner.train.train import carry_out

#: Learning rate, small enough to avoid overflow on noise; step times do not depend on it.
LEARNING_RATE = 1e-4
HEARTBEAT_S = 30.0

#: Progress callback before each run: its name, number of runs done, number of all runs.
OnRun = Callable[[str, int, int], None]


class Runner:
    """Makes the missing runs of an audit, with one pool of agents."""

    def __init__(self, fleet: Fleet, folder: AuditFolder, on_run: OnRun) -> None:
        self._fleet = fleet
        self._folder = folder
        self._settings = folder.settings()
        self._profile = folder.profile()
        self._on_run = on_run
        self._agents = AgentPool()

    def run(self) -> dict[str, str]:
        """Make every missing run; return the reasons of failed ones, by name.

        Raises InterruptedRunError on Ctrl-C.
        """
        planned = list(planned_runs(self._settings, self._profile))
        runs = {run.name: (run, self._folder.run(run.model, run.config, run.repetition)) for run in planned}
        longer = long_run(planned, self._settings.seconds)
        runs["the long run that tests the extrapolation"] = (longer, self._folder.long_run)
        failures = {}
        try:
            for done, (name, (run, folder)) in enumerate(runs.items()):
                self._on_run(name, done, len(runs))
                if folder.result.exists():
                    continue
                try:
                    self._make(run, folder)
                except InterruptedRunError as error:
                    raise InterruptedRunError(f"stopped in {name}; the same command resumes there") from error
                except PlannerError as error:
                    failures[name] = str(error)
                    self._agents.close()
                    self._agents = AgentPool()
        finally:
            self._agents.close()
        return failures

    def _make(self, run: PlannedRun, folder: RunFolder) -> None:
        """Make one run in an emptied folder; an unfinished run in it is discarded."""
        shutil.rmtree(folder.path, ignore_errors=True)
        folder.path.mkdir(parents=True)
        options = Options(
            data="", rate=LEARNING_RATE, seed=self._settings.seed, evaluate_every=run.plan.steps,
            heartbeat_s=HEARTBEAT_S, keep_weights=False,
        )  # fmt: skip
        dataset = noise_images(self._settings, run.model)
        launch = Launch(run.plan, self._fleet, dataset, options, folder, lambda *_: None, self._agents)
        carry_out(launch, lasting_s=run.seconds)
        try:
            if folder.path == self._folder.long_run.path:
                read_log(folder)
            else:
                steady_state(folder, self._profile, 0)
        except RecordError:
            folder.result.unlink()  # so that the next attempt makes the run again
            raise
