"""PowerSGD: a product of thin matrices is sent, and the rest is kept."""

import numpy as np
import pytest

from backends.frameworks.layout import consecutive
from backends.strategies import low_rank
from backends.strategies.compressors.power_sgd import PowerSGD
from backends.strategies.message import whole

VARIABLES = consecutive([("kernel", (60, 50)), ("bias", (40,)), ("conv", (20, 3, 3, 4))])
SIZE = 60 * 50 + 40 + 720


def test_a_matrix_of_that_rank_is_sent_whole_once_its_columns_are_known():
    random = np.random.default_rng(0)
    matrix = random.normal(size=(60, 2)) @ random.normal(size=(2, 50))
    made = PowerSGD(VARIABLES[:1], rank=2)
    sent = whole(made.compress(matrix.astype(np.float32).ravel()))
    np.testing.assert_allclose(sent, matrix.ravel(), atol=1e-4)
    assert np.abs(made.residual()).max() < 1e-4


def test_one_dimension_is_sent_as_it_is():
    given_values = np.arange(SIZE, dtype=np.float32)
    sent = whole(PowerSGD(VARIABLES).compress(given_values))
    np.testing.assert_array_equal(sent[3000:3040], given_values[3000:3040])


def test_the_next_message_begins_where_the_last_one_ended():
    values = np.random.default_rng(0).normal(size=3000).astype(np.float32)
    made = PowerSGD(VARIABLES[:1], rank=1)
    errors = []
    for _ in range(30):
        made.accumulator[:] = 0
        made.compress(values)
        errors.append(float(np.linalg.norm(made.residual())))
    best = np.sqrt((np.linalg.svd(values.reshape(60, 50))[1][1:] ** 2).sum())
    assert errors[-1] < errors[0]
    assert errors[-1] == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((64, 32, 3, 3), (64, 288)), ((3, 3, 32, 64), (288, 64)), ((7,), (7, 1)), ((), (1, 1)), ((9, 1), (9, 1))],
)
def test_a_variable_is_split_nearest_to_a_square(shape, expected):
    assert low_rank.matrix_shape(shape) == expected


@pytest.mark.parametrize(
    ("table", "count"),
    [([[0, 60, 50, 1]], 109), ([[0, 60, 50, 51]], 51 * 110), ([[0, 2, 2, 0], [3, 2, 2, 0]], 8), ([[2999, 2, 2, 0]], 4)],
)
def test_a_table_that_does_not_fit_is_refused(table, count):
    with pytest.raises(ValueError, match="matrices"):
        low_rank.decode(np.array(table, np.uint32), np.zeros(count, np.float32), 3000)
