"""What every kind of model in the registry must do."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression

from power_models import trees
from power_models.base import BEYOND, PowerModel, Target, Unsuitable
from power_models.gp import FittedProcess, Hyperparameters
from power_models.linear import Linear, NonNegative
from power_models.modelfile import load, save
from power_models.physical import Physical
from power_models.registry import MODELS
from power_models.saturation import Saturation
from power_models.table import Table
from power_models.trees import Trees
from tests.power_models.made import added, counters, limited

#: Kinds that are straight lines in every counter.
STRAIGHT = ("nameplate", "linear", "ridge", "nonnegative")


def example(name: str) -> tuple[Table, Target]:
    """What a kind is made for."""
    if name == "saturation":
        table, target = limited()
        return table.only(["network", "power_limit"]), target
    if name == "nameplate":
        return added(clock_w=0.0)
    if name == "mean":
        table, target = counters()
        return table, Target(target.name, np.linspace(99, 101, table.rows))
    return added() if name in STRAIGHT else counters()


def fitted(name: str, width: float = 0.1) -> tuple[PowerModel, Table, Target]:
    table, target = example(name)
    return PowerModel.fit(MODELS[name], table, target, width), table, target


@pytest.mark.parametrize("name", MODELS)
def test_it_follows_what_it_was_fitted_on(name: str) -> None:
    model, table, target = fitted(name)
    errors = np.abs(model.predict(table).values / target.values - 1)
    assert errors.mean() < (0.005 if name in STRAIGHT else 0.08)
    assert MODELS[name].name == name
    assert name in model.describe() and "average_power [W]" in model.describe()


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded_it_predicts_the_same(name: str, tmp_path: Path) -> None:
    model, table, _ = fitted(name)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    before, after = model.predict(table), again.predict(table)
    for one, other in zip(before[:3], after[:3], strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=0)
    assert before.extrapolated == after.extrapolated
    assert (again.features, again.target, again.rows, again.width) == (model.features, "average_power", model.rows, 0.1)
    assert again.describe() == model.describe()


@pytest.mark.parametrize("name", MODELS)
def test_what_lies_outside_is_flagged_and_stays_near_what_was_seen(name: str) -> None:
    model, table, target = fitted(name)
    changed = dict(table.take(np.arange(2)).columns)
    number, word = ("power_limit", "network") if name == "saturation" else ("core_frequency", "program")
    changed[number] = np.array([1e6, np.nan])
    changed[word] = np.array([str(table.columns[word][0]), "never seen"])
    found = model.predict(Table(changed))
    assert found.extrapolated == [(number,), tuple(n for n in model.features if n in (number, word))]
    assert np.isfinite(found.values).all()
    assert (found.values <= BEYOND * target.values.max()).all()
    assert (found.values >= target.values.min() / BEYOND).all()
    assert (found.low < found.values).all() and (found.values < found.high).all()


def test_a_feature_that_is_missing_is_named() -> None:
    model, table, _ = fitted("trees")
    with pytest.raises(ValueError, match="there is no column busy; there are core_frequency"):
        model.predict(table.only(["core_frequency", "nothing", "program"]))


# -- against scikit-learn --------------------------------------------------------------------------


def test_linear_is_ordinary_least_squares() -> None:
    table, target = counters()
    plain = np.column_stack([table.numbers("core_frequency"), table.numbers("busy")])
    expected = LinearRegression().fit(plain, target.values).predict(plain)
    found = Linear.fit(table.only(["core_frequency", "busy"]), target).predict(table).values
    assert found == pytest.approx(expected)


def test_a_time_is_fitted_as_its_logarithm() -> None:
    table = Table.of({"x": [1.0, 2, 3]})
    times = Target("time_s", np.exp(np.array([1.0, 2, 3])))
    assert Linear.fit(table, times).predict(table).values == pytest.approx(times.values)


def test_extra_trees_predict_as_scikit_learn() -> None:
    table, target = counters()
    model = Trees.fit(table, target)
    seen = model.encoder.matrix(table)
    other = model.encoder.matrix(counters(200, seed=5)[0])
    expected = ExtraTreesRegressor(**trees.OPTIONS).fit(seen, target.logs).predict(other)
    assert np.allclose(model.forest.leaves(other).mean(axis=0), expected, rtol=1e-12)


def test_the_kernel_of_a_gaussian_process_is_that_of_its_formula() -> None:
    hyper = Hyperparameters(signal=2.0, linear=0.5, noise=0.01, lengths=np.array([0.5, 3.0]))
    a, b = np.array([[0.3, -1.0]]), np.array([[1.0, 0.5]])
    smooth = 2 * np.exp(-(((a - b) / hyper.lengths) ** 2).sum() / 2)
    assert hyper.kernel()(a, b)[0, 0] == pytest.approx(smooth + 0.5 * (1 + (a @ b.T)[0, 0] / 2))
    assert hyper.kernel()(a)[0, 0] == pytest.approx(2 + 0.5 * (1 + (a @ a.T)[0, 0] / 2) + 0.01)


def test_a_gaussian_process_finds_the_noise_and_the_columns_that_matter() -> None:
    random = np.random.default_rng(0)
    inputs = random.standard_normal((120, 3))
    outputs = 5 + np.sin(2 * inputs[:, 0]) + 0.05 * random.standard_normal(120)
    found = FittedProcess.fit(inputs, outputs, np.array([0, 1, 1]))
    assert found.stdev * np.sqrt(found.hyper.noise) == pytest.approx(0.05, rel=0.3)
    assert found.hyper.lengths[1] == found.hyper.lengths[2] > 3 * found.hyper.lengths[0]
    far = found.predict(np.full((1, 3), 50.0))
    assert far.stdev[0] > 3 * found.predict(inputs).stdev.max()


# -- laws that some of them know -------------------------------------------------------------------


def test_the_physical_model_finds_its_law_and_extrapolates() -> None:
    table, target = counters(200)
    slow = table.numbers("core_frequency") < 600
    model = Physical.fit(table.take(np.flatnonzero(slow)), Target(target.name, target.values[slow]))
    fast = np.flatnonzero(~slow)
    errors = np.abs(model.predict(table.take(fast)).values / target.values[fast] - 1)
    assert errors.mean() < 0.06


def test_no_weight_is_negative() -> None:
    table, target = counters()
    assert (NonNegative.fit(table, target).weights >= 0).all()
    assert (Physical.fit(table, target).weights >= 0).all()


def test_the_saturation_model_predicts_a_limit_that_was_never_set() -> None:
    table, target = limited(noise=0.005)
    for left_out in (100.0, 150.0, 250.0):
        seen = table.numbers("power_limit") != left_out
        names = ("network", "power_limit")
        part = table.only(names)
        model = Saturation.fit(part.take(np.flatnonzero(seen)), Target(target.name, target.values[seen]))
        unseen = np.flatnonzero(~seen)
        errors = np.abs(model.predict(part.take(unseen)).values / target.values[unseen] - 1)
        assert errors.mean() < 0.03


def test_models_say_what_they_need() -> None:
    table, target = counters()
    with pytest.raises(Unsuitable, match="no column of power limits"):
        Saturation.fit(table, target)
    runs, watts = limited()
    with pytest.raises(Unsuitable, match="nothing but the power limit changes"):
        Saturation.fit(runs.only(["power_limit", "batch_size"]), watts)
    with pytest.raises(Unsuitable, match="no column of clocks"):
        Physical.fit(table.only(["busy"]), target)
    with pytest.raises(Unsuitable, match="is no power"):
        NonNegative.fit(table, Target("time_s", target.values))


# -- files -----------------------------------------------------------------------------------------


def test_a_model_file_is_json_and_says_what_it_holds(tmp_path: Path) -> None:
    model, _, _ = fitted("linear")
    save(model, tmp_path / "model.json")
    data = json.loads((tmp_path / "model.json").read_text())
    assert (data["kind"], data["schema"], data["model"]) == ("power model", 1, "linear")
    assert data["target"]["unit"] == "W"
    assert data["features"][3] == {"name": "program", "categories": ["a", "b", "c"]}
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "cut off"),
        (lambda text: "[]", "no power model"),
        (lambda text: text.replace('"schema": 1', '"schema": 9'), "a model of schema 9, this program reads 1"),
        (lambda text: text.replace('"linear"', '"unknown"'), "damaged"),
        (lambda text: text.replace('"weights"', '"height"'), "damaged"),
        (lambda text: text.replace('"features": [{', '"features": ["x", {'), "damaged"),
        (lambda text: text.replace('"intercept": ', '"intercept": "x", "was": '), "damaged"),
        (lambda text: text.replace('"weights": [', '"weights": [1.0, '), "damaged"),
        (lambda text: text.replace('"width": 0.1', '"width": NaN'), "NaN is no number"),
        (lambda text: text.replace('"about": {', '"about": {"mape": 1e999'), "1e999 is no number"),
        (lambda text: "[" * 100_000, "no power model"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, change: object, said: str) -> None:
    path = tmp_path / "model.json"
    save(fitted("linear")[0], path)
    assert callable(change)
    path.write_text(change(path.read_text()))
    with pytest.raises(ValueError, match="model.json") as refused:
        load(path)
    assert said in str(refused.value)


def test_a_tree_that_runs_in_circles_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save(fitted("trees")[0], path)
    data = json.loads(path.read_text())
    data["fitted"]["forest"]["left"][0] = 0
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="a tree with a circle"):
        load(path)


def test_what_is_no_number_is_not_saved(tmp_path: Path) -> None:
    table, target = counters()
    model = PowerModel.fit(Linear, table, target, about={"scores": {"rmse": float("inf")}})
    with pytest.raises(ValueError, match="not JSON compliant"):
        save(model, tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []
