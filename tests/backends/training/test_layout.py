"""A layout comes back from JSON, and anything else is refused."""

import json

import pytest

from backends.training.layout import Layout, layout_of
from tests.backends.fakes import CLASSES, PIXELS, Softmax


def test_a_layout_comes_back_from_json() -> None:
    layout = layout_of(Softmax())
    assert Layout.decode(json.loads(json.dumps(layout.encode()))) == layout


def test_a_layout_counts_trained_elements_and_others() -> None:
    layout = layout_of(Softmax())
    assert (layout.parameters, layout.state) == ((PIXELS + 1) * CLASSES, 2)


@pytest.mark.parametrize("value", [None, 7, [[["w", 3, 0, 1]], []], [[], [], []]], ids=str)
def test_what_is_no_layout_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not the layout of a model"):
        Layout.decode(value)
