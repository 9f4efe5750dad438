"""What is raced where, as a file says."""

from pathlib import Path

import pytest

from backends import models
from benchmarks.lab.spec import load_spec
from benchmarks.racing.racefile import load
from planner.errors import RecordError
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


def test_paths_are_relative_to_the_race_file(tmp_path: Path) -> None:
    race = load(RACES[0])._replace(file=str(tmp_path / "race.toml"), model="net.py:net")
    assert race.model_name == f"{tmp_path.resolve()}/net.py:net"
    assert race._replace(model="cipher").model_name == "cipher"


@pytest.mark.parametrize(
    ("key", "text"),
    [("tune_in = ", 'tune_in = "nowhere" # '), ("strategies = ", 'alone_in = "nowhere"\nstrategies = ')],
)
def test_an_environment_that_is_named_must_be_one_of_the_race(tmp_path: Path, key: str, text: str) -> None:
    (tmp_path / "wrong.toml").write_text(RACES[0].read_text().replace(key, text))
    with pytest.raises(RecordError, match='no environment "nowhere"'):
        load(tmp_path / "wrong.toml")


def test_a_key_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text('model = "cipher"\n')
    with pytest.raises(RecordError, match="missing 'data'"):
        load(tmp_path / "short.toml")
