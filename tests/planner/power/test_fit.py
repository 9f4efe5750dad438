"""A fit and an evaluation of measurements by others, and of tables where little can be learned."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.power.fit import Evaluation, Fit, compared, evaluated
from power_models.linear import Mean
from power_models.model_file import load, save
from power_models.table import CsvFile, read_csv


def written(path: Path, columns: Mapping[str, Any]) -> CsvFile:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return read_csv(path)


def fit(file: CsvFile, target: str, by: tuple[str, ...] = (), kinds: tuple[str, ...] = ()) -> Fit:
    return compared(file, target, (), by, kinds, 3, Path("model.json"), lambda *_: None)


def reread(found: Fit, folder: Path, other: CsvFile) -> Evaluation:
    """A fit, saved, read and tested on other data."""
    save(found.model, folder / "model.json")
    return evaluated(load(folder / "model.json"), other)


def nodes(count: int, rows: int = 30) -> dict[str, Any]:
    """Watts of a cluster of equal nodes, 100 to 200 W each by their load."""
    load_share = np.random.default_rng(0).uniform(0.1, 1.0, rows)
    watts = count * (100 + 100 * load_share)
    return {"nodes": [count] * rows, "system": ["dgx"] * rows, "busy": load_share, "watts": watts}


def test_another_number_of_nodes_than_fitted_on_is_extrapolation(tmp_path: Path) -> None:
    found = fit(written(tmp_path / "one.csv", nodes(1)), "watts", kinds=("linear",))
    assert found.choice.left_out["nodes"] == "always the same"
    assert found.to_json()["constants"] == {"nodes": "1", "system": "dgx"}
    seen = reread(found, tmp_path, written(tmp_path / "eight.csv", nodes(8)))
    assert (seen.coverage, len(seen.outside)) == (0, 30)
    assert all(names == ("nodes",) for names in seen.outside.values())
    assert seen.to_json()["fitted_on"] == {"nodes": "1"}


def test_where_nothing_beats_the_mean_the_mean_is_chosen(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    noise = {"x": random.standard_normal(60), "y": random.standard_normal(60), "watts": random.uniform(90, 110, 60)}
    found = fit(written(tmp_path / "noise.csv", noise), "watts")
    assert (found.beats_mean, found.model.name) == (False, Mean.name)
    assert fit(written(tmp_path / "law.csv", nodes(1)), "watts").beats_mean is True
    assert fit(written(tmp_path / "law.csv", nodes(1)), "watts", kinds=("linear",)).beats_mean is None


def test_coverage_is_given_for_the_worst_and_the_best_fold(tmp_path: Path) -> None:
    columns = {**nodes(1, 90), "app": np.repeat(["a", "b", "c"], 30)}
    columns["watts"] = columns["watts"] * np.repeat([1.0, 1.0, 1.5], 30)
    (score,) = fit(written(tmp_path / "apps.csv", columns), "watts", ("app",), ("linear",)).scores
    assert score.coverage_least < score.coverage < score.coverage_greatest
    assert score.coverage_least == 0, "the intervals of two like programs do not hold the third"


@pytest.mark.parametrize("name", ["zeus_v100.csv", "zeus_p100.csv"])
def test_a_limit_that_was_never_set_on_a_real_gpu(shared_data: Path, name: str) -> None:
    file = read_csv(shared_data / "power" / name)
    found = fit(file, "average_power", ("power_limit",), ("mean", "trees"))
    assert found.choice.features == ("dataset", "network", "batch_size", "optimizer", "power_limit")
    mean, trees = found.scores
    assert trees.mape < 10 < mean.mape
