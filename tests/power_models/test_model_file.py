"""Model files are read back; others are refused in one line."""

import json
from pathlib import Path

import numpy as np
import pytest

from power_models.base import PowerModel, Range
from power_models.model_file import load, save
from power_models.registry import MODELS
from tests.power_models.made import added, counters


def fitted(name: str) -> PowerModel:
    return PowerModel.fit(MODELS[name], *(added() if name == "linear" else counters()), 0.1)


def test_a_model_file_is_json_and_says_what_it_holds(tmp_path: Path) -> None:
    model = fitted("linear")
    save(model, tmp_path / "model.json")
    data = json.loads((tmp_path / "model.json").read_text())
    assert (data["kind"], data["schema"], data["model"]) == ("power model", 1, "linear")
    assert data["unit"] == "W"
    assert data["ranges"][3] == {"name": "program", "least": None, "greatest": None, "categories": ["a", "b", "c"]}
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "cut off"),
        (lambda text: "[]", "no power model"),
        (lambda text: text.replace('"schema": 1', '"schema": 9'), "a model of schema 9, this program reads 1"),
        (lambda text: text.replace('"linear"', '"unknown"'), "damaged"),
        (lambda text: text.replace('"weights"', '"height"'), "damaged"),
        (lambda text: text.replace('"ranges": [{', '"ranges": ["x", {'), "damaged"),
        (lambda text: text.replace('"intercept": ', '"intercept": "x", "was": '), "damaged"),
        (lambda text: text.replace('"weights": [', '"weights": [1.0, '), "damaged"),
        (lambda text: text.replace('"width": 0.1', '"width": -0.1'), "width -0.1 or rows"),
        (lambda text: text.replace('"rows": ', '"rows": -'), "is too small"),
        (lambda text: text.replace('"least": ', '"least": 1e9, "was": ', 1), "ranges from 1e+09 to"),
        (lambda text: text.replace('"width": 0.1', '"width": NaN'), "NaN is no number"),
        (lambda text: text.replace('"about": {', '"about": {"mape": 1e999'), "1e999 is no number"),
        (lambda text: "[" * 100_000, "no power model"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, change: object, said: str) -> None:
    path = tmp_path / "model.json"
    save(fitted("linear"), path)
    assert callable(change)
    path.write_text(change(path.read_text()))
    with pytest.raises(ValueError, match="model.json") as refused:
        load(path)
    assert said in str(refused.value)


@pytest.mark.parametrize("change", [{"idle_w": 1e9}, {"idle_w": -1.0}, {"max_w": 0.5}, {"loads": {"u_cpu": 0.0}}])
def test_a_nameplate_that_contradicts_itself_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "model.json"
    save(fitted("nameplate"), path)
    data = json.loads(path.read_text())
    data["fitted"].update(change)
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"model\.json: a damaged power model: .* do not fit; fit it again"):
        load(path)


def test_a_tree_that_runs_in_circles_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save(fitted("trees"), path)
    data = json.loads(path.read_text())
    data["fitted"]["forest"]["left"][0] = 0
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="a tree with a circle"):
        load(path)


def test_constants_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    model = fitted("linear")
    constants = (Range("nodes", 1.0, 1.0, ()), Range("system", np.nan, np.nan, ("dgx",)))
    save(PowerModel(**{**vars(model), "constants": constants}), path)
    assert [each.text for each in load(path).constants] == ["1", "dgx"]
