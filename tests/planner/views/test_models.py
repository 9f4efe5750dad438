"""The known models on screen."""

import pytest

from planner.views import models
from tests.planner.screens import WIDTHS, shown

WIDE = pytest.mark.parametrize("width", WIDTHS)


@WIDE
def test_models_are_shown(width: int) -> None:
    assert "28,711,754" in shown(models.render(), width)
