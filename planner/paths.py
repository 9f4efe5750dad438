"""Paths that planner reads and writes are named here."""

import time
from pathlib import Path

from planner.errors import MAKE_ROOM, RecordError

FLEET = "fleet.toml"
PROFILE = "profile.json"
PLAN = "plan.json"
SAMPLE_EFFICIENCY = "sample_efficiency.json"
AUDIT = "audit.json"


def newest_profile(folder: Path) -> Path:
    """Return the newest profile*.json of a folder. Raises RecordError where there is none."""
    found = sorted(filter(Path.is_file, folder.glob("profile*.json")), key=lambda path: path.stat().st_mtime)
    if not found:
        raise RecordError(f"no profile*.json in {folder.resolve()}; run `planner profile` first or name one")
    return found[-1]


class RunFolder:
    """The folder of one training run, and the files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan = path / PLAN
        self.options = path / "options.json"
        self.events = path / "events.jsonl"
        self.checkpoint = path / "checkpoint.npz"
        self.unfinished_checkpoint = path / "checkpoint.part"  # while one is fetched
        self.result = path / "result.json"
        self.partition = path / "partition.json"
        self.log = path / "remote.log"

    @classmethod
    def create(cls, parent: Path, model: str) -> "RunFolder":
        """Make a new folder, named after the time and the model. Raises RecordError."""
        stem = f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{cls.label(model)}"
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            path = parent / (stem + suffix)
            try:
                path.mkdir(mode=0o700, parents=True)  # weights and pictures are nobody else's
                return cls(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise RecordError(f"cannot make run folder {path}: {error.strerror}; {MAKE_ROOM}") from error
        raise RecordError(f"cannot make a new run folder in {parent}: too many of this second")

    def require_checkpoint(self, doing: str, remedy: str, remedy_without: str) -> None:
        """Raises RecordError where the folder is none of a run, or has no checkpoint.

        doing: what cannot be done then. remedy_without: for a run that wrote none.
        """
        if not self.path.is_dir():
            problem = "is no directory" if self.path.exists() else "does not exist"
            raise RecordError(f"cannot {doing} {self.path}: the folder {problem}; {remedy}")
        if not self.checkpoint.exists():
            raise RecordError(
                f"cannot {doing} {self.path}: it has no {self.checkpoint.name}, the run wrote none; {remedy_without}"
            )

    @staticmethod
    def label(model: str) -> str:
        """A model's name, or the stem of its file."""
        return Path(model.partition(":")[0]).stem
