"""Frameworks by their names, and the layout of a model's arrays."""

import pytest

from backends.frameworks import base
from tests.backends.fakes import CLASSES, PIXELS, Softmax


def test_an_unknown_framework_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="unknown framework 'troch'; known: tensorflow, torch"):
        base.framework("troch")


def test_a_layout_counts_trained_elements_and_others() -> None:
    layout = base.layout_of(Softmax())
    assert (layout.parameters, layout.state) == ((PIXELS + 1) * CLASSES, 2)
