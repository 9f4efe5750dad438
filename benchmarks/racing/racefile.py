"""A race file (TOML) names the environments and the strategies of a race."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import RecordError
from planner.json_records import decode


class Environment(NamedTuple):
    """A fleet and who races there.

    spec: of a lab, whose schedule is played ``speed`` times as fast during each run; profiled: the
    spec that is profiled in its place, of the same processors; its own if empty; seconds: of a run
    there, and seeds: how many runs each strategy makes there, in place of the race's; 0 for these;
    alone_in: where a device as fast as the fastest one here was raced alone, which needs no link;
    stream_rates: of ScaDLES's sets, at which samples arrive there while devices train.
    """

    label: str
    spec: str
    strategies: tuple[str, ...]
    profiled: str = ""
    speed: float = 1.0
    seconds: float = 0.0
    seeds: int = 0
    alone_in: str = ""
    stream_rates: str = ""


class Race(NamedTuple):
    """One race. All paths are relative to its ``file``.

    seconds: of training, of every run; evaluate_s: between two evaluations, on ``test_images`` of
    the test set; rates: learning rates, all of which every strategy tries in the environment
    ``tune_in`` with seed 0; ends_at_target: whether runs of the planner and of DDP end when they
    reach the target, so that ``seconds`` is the most that they take; schedule: of the learning
    rate. One that falls ends with the run, which then makes as many steps as are predicted for its
    seconds; rate_of: learning rates of strategies for which the best is known, which try no others.
    """

    file: str
    model: str
    data: str
    batch: int
    seconds: float
    evaluate_s: float
    test_images: int
    target: float
    seeds: int
    rates: tuple[float, ...]
    tune_in: str
    environments: tuple[Environment, ...]
    ends_at_target: bool = False
    schedule: str = "constant"
    rate_of: dict[str, float] = {}

    @property
    def name(self) -> str:
        """That of its file."""
        return Path(self.file).stem

    def path(self, name: str) -> Path:
        """Of a file that is named in the race file."""
        return (Path(self.file).parent / name).resolve()

    @property
    def model_name(self) -> str:
        """As the program takes it: a name, or file and function."""
        file, colon, function = self.model.partition(":")
        return f"{self.path(file)}:{function}" if colon else self.model

    def seconds_in(self, label: str) -> float:
        """Seconds of a run in an environment. Raises RecordError as ``environment``."""
        return self.environment(label).seconds or self.seconds

    def environment(self, label: str) -> Environment:
        """Raises RecordError where there is none of that label."""
        for each in self.environments:
            if each.label == label:
                return each
        raise RecordError(f'race "{self.name}": no environment "{label}"; add it, or name another')


def load(path: Path) -> Race:
    """Read a race file. Raises RecordError naming what does not fit."""
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        race = decode(Race, {**table, "file": str(path)})
    except (OSError, tomllib.TOMLDecodeError, RecordError) as error:
        raise RecordError(f"{path}: {error}; see benchmarks/racing/*.toml") from error
    for label in (race.tune_in, *(each.alone_in for each in race.environments if each.alone_in)):
        race.environment(label)
    return race
