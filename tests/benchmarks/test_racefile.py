"""What is raced where, as a file says."""

from pathlib import Path

import pytest

from backends import models
from benchmarks.lab.spec import load_spec
from benchmarks.racing.racefile import load
from planner.plan.texts import parse_strategy

#: As reference_systems.py names them; it imports what only runs of races have.
REFERENCES = ("torch-ddp", "torch-ddp-powersgd", "torch-post-local-sgd", "tensorflow-ps")
RACES = sorted((Path(__file__).parents[2] / "benchmarks" / "racing").glob("*.toml"))


@pytest.mark.parametrize("path", RACES, ids=lambda path: path.stem)
def test_every_race_that_comes_along_can_be_run(path: Path) -> None:
    race = load(path)
    if race.data.startswith("/") and not Path(race.data).is_dir():
        pytest.skip(f"{race.data} is not on this machine; the race file names its package")
    assert race.path(race.data).is_dir()
    assert models.is_user_model(race.model) or race.model in models.MODELS
    for environment in race.environments:
        spec = load_spec(race.path(environment.spec))
        profiled = load_spec(race.path(environment.profiled or environment.spec))
        assert [(each.name, each.cpus) for each in spec.devices] == [
            (each.name, each.cpus) for each in profiled.devices
        ]
        assert not spec.schedule or spec.schedule[-1].at_s / environment.speed < race.seconds
        for strategy in environment.strategies:
            if strategy != "alone" and strategy not in REFERENCES:
                parse_strategy(strategy)
