import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from power_models.base import Target
from power_models.evaluate import HeldOut, cross_validate, final, folds, width
from power_models.table import Table
from tests.power_models.made import counters

groups = st.lists(st.integers(0, 12), min_size=4, max_size=80).map(lambda g: np.unique(g, return_inverse=True)[1])


@given(groups.filter(lambda g: g.max() >= 1))
def test_a_group_is_in_one_fold_and_every_row_in_one(group: np.ndarray) -> None:
    held = folds(group)
    assert sorted(np.concatenate(held).tolist()) == list(range(len(group)))
    seen = [set(group[rows].tolist()) for rows in held]
    assert sum(len(each) for each in seen) == len(set().union(*seen))
    assert all(len(rows) for rows in held)


def test_too_few_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="3 groups cannot be divided into 5 folds"):
        folds(np.array([0, 1, 2, 2]), 5)
    with pytest.raises(ValueError, match="1 groups cannot be divided into 2 folds"):
        folds(np.zeros(9, dtype=np.intp))


def test_errors_of_known_misses() -> None:
    actual, predicted = np.array([10.0, 20, 30, 40]), np.array([11.0, 22, 30, 40])
    found = HeldOut("x", actual, predicted, np.ones(4), np.array([0, 0, 1, 1])).scores()
    assert found.mape == pytest.approx(5)
    assert found.mape_stdev == pytest.approx(np.std([10, 0], ddof=1))
    assert found.rmse == pytest.approx(np.sqrt(5 / 4))


def test_the_interval_holds_nine_points_in_ten() -> None:
    random = np.random.default_rng(0)
    actual = np.exp(random.normal(3, 1, 2000))
    predicted = actual * np.exp(random.normal(0, 0.1, 2000))
    found = HeldOut("x", actual, predicted, np.ones(2000), np.arange(2000) % 10)
    assert found.scores().coverage == pytest.approx(0.9, abs=0.02)
    assert width(found.misses) == pytest.approx(0.1645, abs=0.01)
    assert width(np.array([1.0, 2.0])) == 2.0


def test_a_held_out_group_is_never_fitted_on() -> None:
    """Watts that only the group's name tells cannot be predicted from it."""
    random = np.random.default_rng(0)
    program = np.repeat([f"p{i}" for i in range(20)], 10)
    watts = np.repeat(random.uniform(20, 200, 20), 10)
    table = Table({"program": program, "x": random.standard_normal(200)})
    target = Target("watts", watts)
    kinds = ("linear", "trees")
    grouped = cross_validate(table, target, folds(table.keys(["program"])), kinds)
    mixed = cross_validate(table, target, folds(np.arange(200)), kinds)
    for kind in kinds:
        assert mixed.held_out[kind].scores().mape < 12
        assert grouped.held_out[kind].scores().mape > 40


def test_the_best_kind_is_fitted_on_all_rows() -> None:
    table, target = counters(90)
    seen: list[str] = []
    held = folds(np.arange(90), 3)
    found = cross_validate(table, target, held, (), lambda what, where, share: seen.append(where))
    assert seen == ["1 of 3", "2 of 3", "3 of 3"]
    assert not found.unsuitable
    best = found.best()
    model = final(table, target, found.held_out[best], {"folds": 3})
    assert (model.regressor.name, model.rows, model.about["folds"]) == (best, 90, 3)
    assert found.held_out[best].scores().mape == min(each.scores().mape for each in found.held_out.values())


def test_a_kind_whose_weights_are_not_found_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*args: object, **options: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", endless)
    table, target = counters()
    found = cross_validate(table, target, folds(np.arange(60), 2), ("linear", "nameplate", "physical"))
    assert set(found.held_out) == {"linear"}
    assert found.unsuitable["physical"] == "its non-negative least squares do not converge"
