import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from power_models.ratio import USUAL_SHARE, Predicted, pairs

RANDOM = np.random.default_rng(0)
LOGS = RANDOM.standard_normal(200)


def predicted(structured_error: float, plain_error: float) -> Predicted:
    """Both predictors err by independent noise."""
    first, second = (LOGS + error * RANDOM.standard_normal(200) for error in (structured_error, plain_error))
    return Predicted(first, second, np.zeros((200, 1)))


def test_the_predictor_that_errs_less_gets_the_greater_share() -> None:
    assert predicted(0.3, 0.03).best_share(LOGS) > 0.8
    assert predicted(0.03, 0.3).best_share(LOGS) < 0.2
    assert predicted(0.1, 0.1).best_share(LOGS) == pytest.approx(0.5, abs=0.1)


def test_predictors_that_agree_keep_the_usual_share() -> None:
    same = Predicted(LOGS + 0.1, LOGS + 0.1, np.zeros((200, 1)))
    assert same.best_share(LOGS) == pytest.approx(USUAL_SHARE)
    assert Predicted(LOGS, LOGS, np.zeros((200, 1))).best_share(LOGS) == USUAL_SHARE


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_mean_errs_at_most_as_the_worse_predictor(first: float, second: float, share: float) -> None:
    found = predicted(first, second)
    worse = np.maximum(np.abs(found.structured - LOGS), np.abs(found.plain - LOGS))
    assert (np.abs(found.mixed(share) - LOGS) <= worse + 1e-12).all()
    assert 0 <= found.best_share(LOGS) <= 1


def test_pairs_are_of_one_job_both_ways() -> None:
    first, second = pairs(np.array([0, 0, 1, 1, 1]))
    assert len(first) == 2 + 6
    assert (0, 1) in set(zip(first.tolist(), second.tolist(), strict=True))
    assert (2, 0) not in set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs(np.zeros(200, dtype=np.intp), most=100)[0]) == 100
