"""An audit on disk: what was asked for, the profile that it judges, and a run folder for every run."""

from pathlib import Path

from planner.audit.measured import Audit
from planner.audit.settings import Settings
from planner.audit.steady import extrapolation, steady
from planner.clusters import ClusterConfig
from planner.decode import load, save
from planner.errors import AuditError, RecordError
from planner.profilefile import Profile, load_profile
from planner.runs import RunFolder

REMEDY = "name the folder of an audit, or another with --out"


class AuditFolder:
    """The folder of one audit: audit.json, profile.json, runs/ and extrapolation/."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._profile = path / "profile.json"
        self._settings = path / "audit.json"

    def profile(self, otherwise: Path | None = None) -> Profile:
        """The profile that the audit here judges, or another where none was begun. Raises RecordError."""
        return load_profile(self._profile if otherwise is None or self._settings.exists() else otherwise)

    def begin(self, wanted: Settings, profile: Profile) -> None:
        """Begin here, or go on with what was begun. Raises AuditError where that was something else."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AuditError(f"cannot make audit folder {self.path}: {error.strerror}") from error
        if self._settings.exists():
            save(wanted.added_to(self.settings()), self._settings)
        else:
            save(profile, self._profile)
            save(wanted, self._settings)

    def settings(self) -> Settings:
        """What was asked for. Raises RecordError where this is no audit."""
        return load(Settings, self._settings, REMEDY)

    def run(self, model: str, config: ClusterConfig, repetition: int) -> RunFolder:
        """Where the run of one configuration goes."""
        others = (name for name in config.workers if name != config.server)
        return RunFolder(
            self.path / "runs" / RunFolder.label(model) / "+".join([config.server, *others]) / str(repetition)
        )

    @property
    def long_run(self) -> RunFolder:
        """Where the run goes that measures the extrapolation's own error."""
        return RunFolder(self.path / "extrapolation")

    def load(self) -> Audit:
        """All that was measured so far. Raises RecordError where something does not fit."""
        settings, profile = self.settings(), self.profile()
        done = sorted(self.path.glob("runs/*/*/*/result.json"))
        runs = tuple(steady(RunFolder(path.parent), profile, _repetition(path.parent)) for path in done)
        long = (extrapolation(self.long_run),) if self.long_run.result.exists() else ()
        return Audit(settings.label, profile, settings.steps, settings.batch, runs, long)


def _repetition(folder: Path) -> int:
    try:
        return int(folder.name)
    except ValueError:
        raise RecordError(f"{folder}: not a repetition's number; {REMEDY}") from None
