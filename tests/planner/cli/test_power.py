"""`planner power …` as the operator meets it."""

import functools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from power_models.evaluate import ModelScores
from tests.planner.cli.commands import Planner
from tests.power_models.made import counters
from tests.running import Ran

FEWEST = ("--model", "linear")


def data(ran: Ran) -> dict[str, Any]:
    """What a command has told as JSON."""
    assert ran.code == 0, ran.err
    return dict(json.loads(ran.out))


@pytest.fixture
def power(planner: Planner) -> Planner:
    """Runs `planner power …` in an empty folder."""
    return functools.partial(planner, "power")


def write(path: str, **changes: object) -> None:
    """60 rows of counters and watts, some columns replaced."""
    table, target = counters()
    write_csv(path, {**table.columns, "average_power": target.values, "time": 1 / target.values, **changes})


def write_csv(path: str, columns: Mapping[str, Any]) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    Path(path).write_text("\n".join(lines) + "\n")


def test_fit_compares_all_kinds_and_saves_the_best(power: Planner) -> None:
    write("data.csv")
    found = data(power("fit", "data.csv", "--target", "average_power", "--folds", "3", "--json"))
    rows = {each["name"]: each for each in found["models"]}
    assert set(rows) == {"mean", "nameplate", "linear", "physical", "trees", "gp"}
    assert found["chosen"] == min(rows, key=lambda name: rows[name]["mape"])
    assert set(rows["linear"]) == set(ModelScores._fields)
    assert found["features"] == ["core_frequency", "busy", "program"]
    assert found["left_out"]["time"] == "seems to be an outcome of the run"
    saved = json.loads(Path(found["saved"]).read_text())
    assert (saved["model"], saved["rows"]) == (found["chosen"], 60)
    assert saved["about"]["scores"]["mape"] == rows[found["chosen"]]["mape"]


def test_fit_for_people(power: Planner) -> None:
    write("data.csv")
    shown = power("fit", "data.csv", "--target", "average_power", "--group", "program", *FEWEST, "-o", "here.json")
    assert shown.code == 0
    assert "average_power, 60 rows, 3 folds by program" in shown.out
    assert "linear (chosen)" in shown.out
    assert "left out: program (its texts hardly occur in more than one group)" in shown.out
    assert "wrote here.json" in shown.out


def test_named_features_are_used_as_they_are(power: Planner) -> None:
    write("data.csv")
    arguments = ("--target", "average_power", "--features", "busy, time", *FEWEST, "--json")
    assert data(power("fit", "data.csv", *arguments))["features"] == ["busy", "time"]


def test_evaluate_holds_a_model_against_other_rows(power: Planner) -> None:
    write("data.csv")
    power("fit", "data.csv", "--target", "average_power", "--model", "physical")
    table, _ = counters()
    write("other.csv", core_frequency=np.where(np.arange(60) < 2, 5000.0, np.asarray(table.columns["core_frequency"])))
    found = data(power("evaluate", "power-model.json", "other.csv", "--json"))
    assert (found["rows"], found["unit"]) == (60, "W")
    assert found["extrapolated"] == [{"line": line, "features": ["core_frequency"]} for line in (2, 3)]
    assert 0 < found["mape"] < 100
    shown = power("evaluate", "power-model.json", "other.csv")
    assert "line 2: outside of what was fitted: core_frequency" in shown.out


def test_other_values_than_the_constant_ones_are_warned_of(power: Planner) -> None:
    write("data.csv")
    power("fit", "data.csv", "--target", "average_power", *FEWEST)
    write("other.csv", nothing=np.ones(60))
    shown = power("evaluate", "power-model.json", "other.csv").out
    assert "extrapolated: nothing in 60 lines, fitted on 0 only" in shown


def test_models_are_listed_and_described(power: Planner) -> None:
    from power_models.registry import MODELS

    assert [each["name"] for each in data(power("models", "--json"))["models"]] == [*MODELS]
    assert "the paper's Eq. 1" in power("models").out
    write("data.csv")
    power("fit", "data.csv", "--target", "average_power", *FEWEST)
    assert "average_power [W] by linear, 60 rows" in power("models", "power-model.json").out
    (saved,) = data(power("models", "power-model.json", "--json"))["saved"]
    assert saved["features"] == ["core_frequency", "busy", "program"]


# -- wrong input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent.csv", "--target", "x"), "absent.csv: No such file"),
        (("data.csv", "--target", "watts"), "data.csv: there is no column watts; there are core_frequency, busy"),
        (("data.csv", "--target", "program"), "data.csv: line 2: program is a; give a number above zero"),
        (("data.csv", "--target", "nothing"), "data.csv: line 2: nothing is 0.0; give a number above zero"),
        (("data.csv", "--target", "average_power", "--features", "bussy"), "there is no column bussy; there are"),
        (("data.csv", "--target", "average_power", "--group", "run"), "there is no column run; there are"),
        (("data.csv", "--target", "average_power", "--group", "nothing"), "1 groups cannot be divided into 2 folds"),
        (("data.csv", "--target", "average_power", "--group", "program", "--folds", "4"), "3 groups cannot be divided"),
        (("data.csv", "--target", "average_power", "--model", "magic"), "known are auto, mean, nameplate, linear"),
        (("data.csv", "--target", "average_power", "--features", "average_power"), "is the target itself"),
        (("data.csv", "--target", "average_power", "--features", "nothing"), "no column changes"),
        (("data.csv", "--target", "average_power", "--features", "busy", "--model", "physical"), "no column of clocks"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(power: Planner, arguments: tuple[str, ...], said: str) -> None:
    write("data.csv")
    assert said in power("fit", *arguments).problem()
    assert [path.name for path in Path().iterdir()] == ["data.csv"]


def test_a_file_that_was_cut_off(power: Planner) -> None:
    write("data.csv")
    Path("data.csv").write_text(Path("data.csv").read_text()[:-60])
    assert "is the file cut off?" in power("fit", "data.csv", "--target", "average_power").problem()


def test_a_model_that_is_none(power: Planner) -> None:
    write("data.csv")
    assert "no power model" in power("evaluate", "data.csv", "data.csv").problem()
    assert "none.json: No such file" in power("models", "none.json").problem()


def test_a_model_and_data_without_its_features(power: Planner) -> None:
    write("data.csv")
    power("fit", "data.csv", "--target", "average_power", *FEWEST)
    Path("other.csv").write_text("busy,average_power\n1,2\n")
    problem = power("evaluate", "power-model.json", "other.csv").problem()
    assert "there is no column core_frequency, program" in problem


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """One device, this machine, in whose tree there is nothing to read."""
    tree = tmp_path / "tree"
    tree.mkdir()
    path = tmp_path / "fleet.toml"
    environment = f'{{ PLANNER_SYSFS_ROOT = "{tree}", XDG_CACHE_HOME = "{tmp_path / "cache"}" }}'
    path.write_text(f'[devices.here]\naddress = "local"\nenvironment = {environment}\n')
    return path


def test_a_command_is_measured_and_says_from_where_its_watts_come(power: Planner, fleet: Path) -> None:
    found = power("measure", "here", "--json", "--", sys.executable, "-c", "print('hello')")
    assert found.err == "hello\n"
    measured = data(found)
    assert measured["command"] == [sys.executable, "-c", "print('hello')"]
    assert measured["duration_s"] > 0
    assert (measured["energy_j"], measured["provenance"]["kind"]) == (None, "unavailable")


def test_the_code_of_the_command_is_that_of_measure(power: Planner, fleet: Path) -> None:
    assert power("measure", "here", "--", "sh", "-c", "exit 7").code == 7
    assert power("measure", "here", "--", "sh", "-c", "kill -9 $$").code == 137


def test_an_unknown_device_or_model_is_named(power: Planner, fleet: Path) -> None:
    assert 'no device "there"' in power("measure", "there", "--", "true").problem()
    (fleet.parent / "bad.json").write_text("{}")
    assert "bad.json: no power model" in power("measure", "here", "--model", "bad.json", "--", "true").problem()
