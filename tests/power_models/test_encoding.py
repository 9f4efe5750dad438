import json

import numpy as np
import pytest

from power_models.encoding import Encoder, per_cycle
from power_models.table import Table

TABLE = Table.of(
    {
        "span": [1, 10, 100, 1000],
        "zeros": [0, 0.001, 5, 7],
        "plain": [5, 6, 7, 8],
        "again": [5, 6, 7, 8],
        "fixed": [3, 3, 3, 3],
        "kind": ["a", "b", "a", "c"],
    }
)


def test_columns_are_standardised_and_categories_are_zero_or_one() -> None:
    encoder = Encoder.fit(TABLE, logs=True)
    assert encoder.names == ("span", "zeros", "plain", "kind = a", "kind = b", "kind = c")
    matrix = encoder.matrix(TABLE)
    assert matrix[:, :3].mean(axis=0) == pytest.approx(0)
    assert matrix[:, :3].std(axis=0) == pytest.approx(1)
    assert matrix[:, 3].tolist() == [1, 0, 1, 0]


def test_what_spans_orders_of_magnitude_becomes_its_logarithm() -> None:
    steps = np.diff(Encoder.fit(TABLE, logs=True).matrix(TABLE)[:, 0])
    assert steps == pytest.approx(steps[0])
    linear = np.diff(Encoder.fit(TABLE, logs=False).matrix(TABLE)[:, 0])
    assert linear[2] == pytest.approx(100 * linear[0])


def test_missing_numbers_are_the_median_and_unseen_categories_nothing() -> None:
    encoder = Encoder.fit(TABLE, logs=True)
    other = Table.of({"span": [""], "zeros": [-1], "plain": [6.5], "again": [0], "fixed": [0], "kind": ["new"]})
    row = encoder.matrix(other)[0]
    assert np.isfinite(row).all()
    assert row[2] == pytest.approx(0)
    assert row[3:].tolist() == [0, 0, 0]


def test_an_encoder_survives_json() -> None:
    encoder = Encoder.fit(TABLE, logs=True)
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert np.array_equal(again.matrix(TABLE), encoder.matrix(TABLE))


def test_counts_become_counts_a_cycle() -> None:
    counts = {"inst_executed": [100, 200], "executed_ipc": [2, 1], "gld_transactions": [50, 20]}
    table = Table.of({**counts, "occupancy": [1, 1], "inst_set": ["sm60", "sm70"]})
    made = per_cycle(table)
    assert made.numbers("gld_transactions").tolist() == [1, 0.1]
    assert made.numbers("occupancy").tolist() == [1, 1]
    assert list(made.columns["inst_set"]) == ["sm60", "sm70"], "words are no counts"
    assert per_cycle(table.only(["gld_transactions"])).numbers("gld_transactions").tolist() == [50, 20]
