"""A layout counts the elements of a model's arrays."""

from backends.frameworks.layout import layout_of
from tests.backends.fakes import CLASSES, PIXELS, Softmax


def test_a_layout_counts_trained_elements_and_others() -> None:
    layout = layout_of(Softmax())
    assert (layout.parameters, layout.state) == ((PIXELS + 1) * CLASSES, 2)
