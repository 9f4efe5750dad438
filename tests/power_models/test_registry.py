"""What every kind of model in the registry must do."""

from pathlib import Path

import numpy as np
import pytest

from power_models import trees
from power_models.base import BEYOND, PowerModel, Target, Unsuitable
from power_models.linear import Linear
from power_models.model_file import load, save
from power_models.physical import Physical
from power_models.registry import MODELS
from power_models.table import Table
from power_models.trees import Trees
from tests.power_models.made import added, counters

#: Kinds that are straight lines in every counter.
STRAIGHT = ("nameplate", "linear")


def example(name: str) -> tuple[Table, Target]:
    """What a kind is made for."""
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
    number, word = "core_frequency", "program"
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
    from sklearn.linear_model import LinearRegression

    table, target = counters()
    plain = np.column_stack([table.numbers("core_frequency"), table.numbers("busy")])
    expected = LinearRegression().fit(plain, target.values).predict(plain)
    found = Linear.fit(table.only(["core_frequency", "busy"]), target).predict(table).values
    assert found == pytest.approx(expected)


def test_extra_trees_predict_as_scikit_learn() -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    table, target = counters()
    model = Trees.fit(table, target)
    seen = model.encoder.matrix(table)
    other = model.encoder.matrix(counters(200, seed=5)[0])
    expected = ExtraTreesRegressor(**trees.OPTIONS).fit(seen, target.logs).predict(other)
    assert np.allclose(model.forest.mean(other), expected, rtol=1e-12)


# -- laws that some of them know -------------------------------------------------------------------


def test_the_physical_model_finds_its_law_and_extrapolates() -> None:
    table, target = counters(200)
    slow = table.numbers("core_frequency") < 600
    model = Physical.fit(table.take(np.flatnonzero(slow)), Target(target.name, target.values[slow]))
    fast = np.flatnonzero(~slow)
    errors = np.abs(model.predict(table.take(fast)).values / target.values[fast] - 1)
    assert errors.mean() < 0.06


def test_models_say_what_they_need() -> None:
    table, target = counters()
    with pytest.raises(Unsuitable, match="no column of clocks"):
        Physical.fit(table.only(["busy"]), target)
    with pytest.raises(Unsuitable, match="is no power"):
        Physical.fit(table, Target("time_s", target.values))
