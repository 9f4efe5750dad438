"""An audit folder holds the settings of an audit, its profile, and a run folder for every run."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from backends import models
from planner.audit.planned_runs import planned_runs
from planner.audit.scoring.measured import Extrapolation, MeasuredAudit, MeasuredRun
from planner.audit.settings import Settings, audited_strategy
from planner.audit.steady_state import extrapolation, steady_state
from planner.errors import MAKE_ROOM, AuditError, RecordError
from planner.json_records import load, save
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.plan.request import parse_engine
from planner.predict.clusters import ClusterConfig
from planner.profile.file import Profile, load_profile

REMEDY = "name the folder of an audit, or another with --out"


class AuditFolder:
    """The folder of one audit: audit.json, profile.json, runs/ and extrapolation/."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._profile = path / "profile.json"
        self._settings = path / "audit.json"

    @property
    def begun(self) -> bool:
        return self._settings.exists()

    def profile(self) -> Profile:
        """The profile whose predictions are audited. Raises RecordError."""
        return load_profile(self._profile)

    def begin(self, requested: Settings, profile: Profile) -> None:
        """Begin or extend an audit. Raises AuditError where the folder holds a different one."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AuditError(f"cannot make audit folder {self.path}: {error.strerror}; {MAKE_ROOM}") from error
        if self.begun:
            save(requested.added_to(self.settings()), self._settings)
        else:
            save(profile, self._profile)
            save(requested, self._settings)

    def settings(self) -> Settings:
        return load(Settings, self._settings, REMEDY)

    def run(self, model: str, config: ClusterConfig, repetition: int) -> RunFolder:
        members = "+".join([config.server, *(name for name in config.workers if name != config.server)])
        return RunFolder(self.path / "runs" / _label(model) / members / str(repetition))

    @property
    def long_run(self) -> RunFolder:
        return RunFolder(self.path / "extrapolation")

    def load(self) -> MeasuredAudit:
        """All measurements made so far. Raises RecordError where a file does not fit."""
        settings, profile = self.settings(), self.profile()
        done = sorted(self.path.glob("runs/*/*/*/result.json"))
        runs = tuple(steady_state(RunFolder(path.parent), _repetition(path.parent)) for path in done)
        # By number, for audits that an older version began: it drew other samples.
        planned = Counter((run.model, run.repetition) for run in planned_runs(settings, profile))
        planned.subtract((run.model, run.repetition) for run in runs)
        return MeasuredAudit(
            label=settings.label,
            profile=profile,
            framework=settings.framework,
            steps=settings.steps,
            batch=settings.batch,
            measured=runs,
            extrapolations=tuple(self._extrapolations(runs)),
            missing=tuple(planned.elements()),
            seed=settings.seed,
            engine=parse_engine(settings.engine),
            strategy=audited_strategy(settings.strategy),
        )

    def _extrapolations(self, runs: Iterable[MeasuredRun]) -> Iterator[Extrapolation]:
        """The long run compared with the first short one of its configuration, if both exist."""
        if self.long_run.result.exists():
            plan = load(Plan, self.long_run.plan, REMEDY)
            for run in runs:
                if (run.model, run.server, set(run.workers)) == (plan.model, plan.server, set(plan.names)):
                    yield extrapolation(self.long_run, run)
                    return


def _label(model: str) -> str:
    if not models.is_user_model(model):
        return model
    return f"{RunFolder.label(model)}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def _repetition(folder: Path) -> int:
    try:
        return int(folder.name)
    except ValueError:
        raise RecordError(f"{folder}: not a repetition's number; {REMEDY}") from None
