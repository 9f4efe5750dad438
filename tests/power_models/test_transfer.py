import json

import numpy as np
import pytest

from power_models.base import Target
from power_models.transfer import Columns, Transfer, pairs
from tests.power_models.made import limited

NAMES = Columns("power_limit", "average_power")


@pytest.mark.parametrize("name", ["average_power", "time_per_epoch"])
def test_one_reference_run_tells_the_others(name: str) -> None:
    table, _ = limited()
    values = table.numbers(name)
    new = table.columns["network"] == "n4"
    known, rows = np.flatnonzero(~new), np.flatnonzero(new)
    model = Transfer.fit(table.take(known), Target(name, values[known]), ["network"], ["network"], NAMES)
    reference = rows[table.numbers("power_limit")[rows] == 250]
    found = model.predict(table.take(reference), table.take(rows))
    assert np.abs(found.values / values[rows] - 1).mean() < 0.03
    assert ((found.low <= values[rows]) & (values[rows] <= found.high)).mean() >= 0.8
    again = Transfer.from_json(json.loads(json.dumps(model.to_json())))
    assert np.array_equal(again.predict(table.take(reference), table.take(rows)).values, found.values)


def test_what_is_wanted_needs_no_measurement() -> None:
    table, target = limited()
    model = Transfer.fit(table, target, ["network"], ["network"], NAMES)
    wanted = table.take(np.arange(6)).only(["power_limit"])
    assert len(model.predict(table.take(np.arange(1)), wanted).values) == 6


def test_pairs_are_of_one_job_both_ways() -> None:
    first, second = pairs(np.array([0, 0, 1, 1, 1]))
    assert len(first) == 2 + 6
    assert (0, 1) in set(zip(first.tolist(), second.tolist(), strict=True))
    assert (2, 0) not in set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs(np.zeros(200, dtype=np.intp), most=100)[0]) == 100


def test_settings_above_zero_are_needed() -> None:
    table, target = limited()
    with pytest.raises(ValueError, match="network: a transfer needs numbers above zero"):
        Transfer.fit(table, target, ["network"], ["network"], Columns("power_limit", "average_power", ("network",)))


def test_references_are_one_or_one_for_each_wanted_run() -> None:
    table, target = limited()
    model = Transfer.fit(table, target, ["network"], ["network"], NAMES)
    with pytest.raises(ValueError, match="2 reference runs for 6 wanted"):
        model.predict(table.take(np.arange(2)), table.take(np.arange(6)))


def test_runs_that_are_all_of_another_job_teach_nothing() -> None:
    table, target = limited()
    with pytest.raises(ValueError, match="no two runs are of one job"):
        Transfer.fit(table, target, ["network", "power_limit"], ["network"], NAMES)
