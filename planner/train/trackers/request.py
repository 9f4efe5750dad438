"""Trackers that the operator asks for are checked before a device is used, and opened for a run."""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from planner.errors import TrackerError
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.observer import Observer
from planner.train.thinned_events import ThinnedEvents
from planner.train.trackers.figures import RunFigures
from planner.train.trackers.metrics_file import MetricsFile
from planner.train.trackers.tensorboard_file import TensorBoardFile

TENSORBOARD, METRICS_FILE = "--tensorboard", "--metrics-file"
#: node-exporter reads files with this ending only.
ENDING = ".prom"


class TrackerRequest(NamedTuple):
    """The trackers of a run; None for those that nobody asked for.

    tensorboard: a folder, in which each run has one of its own.
    metrics_file: rewritten as the run goes on.
    """

    tensorboard: Path | None = None
    metrics_file: Path | None = None

    def check(self) -> None:
        """Raises TrackerError where a package is missing, or the file would not be read."""
        if self.tensorboard is not None:
            _require("tensorboardX", f"{TENSORBOARD} {self.tensorboard}", "tensorboard")
        if self.metrics_file is not None:
            what = f"{METRICS_FILE} {self.metrics_file}"
            _require("prometheus_client", what, "metrics")
            if self.metrics_file.suffix != ENDING:
                raise TrackerError(f"{what}: node-exporter reads {ENDING} files only; name it so")
            if not self.metrics_file.parent.is_dir():
                raise TrackerError(f"{what}: the folder {self.metrics_file.parent} does not exist; make it first")

    def open(self, plan: Plan, folder: RunFolder) -> tuple[Observer, ...]:
        """Open the trackers of a run. Raises TrackerError where a file cannot be made."""
        run = folder.path.name
        opened: list[Observer] = []
        try:
            if self.tensorboard is not None:
                opened.append(ThinnedEvents(TensorBoardFile(self.tensorboard / run, RunFigures(plan))))
            if self.metrics_file is not None:
                opened.append(MetricsFile(self.metrics_file, run, RunFigures(plan)))
        except OSError as error:
            raise TrackerError(f"cannot write {error.filename}: {error.strerror}; name another place") from error
        return tuple(opened)


def _require(package: str, what: str, extra: str) -> None:
    if find_spec(package) is None:
        raise TrackerError(
            f"{what}: {package}, which writes it, is not installed on this machine; "
            f"remedy: pip install 'edge-cluster-planner[{extra}]'"
        )
