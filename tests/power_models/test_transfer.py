from pathlib import Path

import numpy as np
import pytest

from power_models.base import Target, Unsuitable
from power_models.model_file import load, save
from power_models.table import Table, read_csv
from power_models.transfer import Columns, Transfer, tried
from tests.power_models.made import limited

NAMES = Columns("power_limit", "average_power", ("network",), ("network",))


def fitted(table: Table, name: str = "average_power", names: Columns = NAMES) -> Transfer:
    target = Target(name, table.numbers(name))
    return Transfer.fit(table, target, names, tried(table, target, names))


@pytest.mark.parametrize(("name", "worst"), [("average_power", 0.03), ("time_per_epoch", 0.05)])
def test_one_reference_run_tells_the_others(name: str, worst: float, tmp_path: Path) -> None:
    table, _ = limited()
    values = table.numbers(name)
    new = table.columns["network"] == "n4"
    known, rows = np.flatnonzero(~new), np.flatnonzero(new)
    model = fitted(table.take(known), name)
    reference = rows[table.numbers("power_limit")[rows] == 250]
    found = model.predict(table.take(reference), table.take(rows))
    assert np.abs(found.values / values[rows] - 1).mean() < worst
    assert ((found.low <= values[rows]) & (values[rows] <= found.high)).mean() >= 0.8
    save(model, tmp_path / "transfer.json")
    again = load(tmp_path / "transfer.json")
    assert isinstance(again, Transfer)
    assert np.array_equal(again.predict(table.take(reference), table.take(rows)).values, found.values)
    assert (again.describe(), again.columns) == (model.describe(), NAMES)
    assert model.describe().endswith("by transfer, 42 rows: from one run of the same network at another power_limit")


def test_what_is_wanted_needs_no_measurement_and_lies_in_the_range_that_was_seen() -> None:
    table, _ = limited()
    model = fitted(table)
    wanted = Table.of({"power_limit": [100, 150, 400]})
    found = model.predict(table.take(np.arange(1)), wanted)
    assert len(found.values) == 3
    assert found.extrapolated == [(), (), ("power_limit",)]


def test_runs_of_one_job_are_references_of_each_other() -> None:
    table, _ = limited()
    reference, wanted = fitted(table).pairs(table.take(np.arange(12)))
    assert len(reference) == 2 * 6 * 5
    assert (reference != wanted).all() and (reference // 6 == wanted // 6).all()
    with pytest.raises(ValueError, match="no two rows agree in network"):
        fitted(table).pairs(table.take(np.arange(0, 48, 6)))


def test_columns_are_known_by_their_names() -> None:
    table, _ = limited()
    assert Columns.found(table, "average_power", ("batch_size",), ("network",)) == Columns(
        "power_limit", "average_power", ("network", "batch_size"), ("network",)
    )
    assert Columns.found(table, "time_per_epoch", (), ("network",)).watts == "average_power"
    with pytest.raises(Unsuitable, match="a column of power limits"):
        Columns.found(table.only(["network", "average_power"]), "average_power", (), ("network",))


def test_settings_above_zero_are_needed() -> None:
    table, _ = limited()
    with pytest.raises(ValueError, match="network: a transfer needs numbers above zero"):
        fitted(table, names=NAMES._replace(settings=("network",)))


def test_references_are_one_or_one_for_each_wanted_run() -> None:
    table, _ = limited()
    with pytest.raises(ValueError, match="2 reference runs for 6 wanted"):
        fitted(table).predict(table.take(np.arange(2)), table.take(np.arange(6)))


def test_runs_that_are_all_of_another_job_teach_nothing() -> None:
    table, _ = limited()
    with pytest.raises(ValueError, match="no two runs are of one job"):
        fitted(table, names=NAMES._replace(job=("network", "power_limit")))


@pytest.mark.parametrize(("name", "goal"), [("average_power", 4.0), ("time_per_epoch", 6.0)])
def test_a_workload_of_a_real_gpu_that_was_run_once_a_batch_size(shared_data: Path, name: str, goal: float) -> None:
    """Held out are ShuffleNet's runs on a P100; references are at the greatest limit."""
    file = read_csv(shared_data / "power" / "zeus_p100.csv")
    table, values = file.table(), file.positive(name)
    new = table.columns["network"] == "shufflenetv2"
    known, unseen = np.flatnonzero(~new), np.flatnonzero(new)
    names = Columns("power_limit", "average_power", ("network", "dataset", "optimizer", "batch_size"), ("network",))
    model = fitted(table.take(known), name, names)
    reference, wanted = (unseen[side] for side in model.pairs(table.take(unseen)))
    top = table.numbers("power_limit")[reference] == 250
    reference, wanted = reference[top], wanted[top]
    found = model.predict(table.take(reference), table.take(wanted))
    assert 100 * np.abs(found.values / values[wanted] - 1).mean() < 1.5 * goal
