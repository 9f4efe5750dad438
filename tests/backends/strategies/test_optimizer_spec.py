"""The text of an optimizer is parsed into its settings, or refused with what would do."""

import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.strategies.optimizer_spec import OptimizerSpec


def test_options_that_are_not_given_are_the_usual_ones():
    assert OptimizerSpec.from_text("adam").settings(None, 0.9, None) == OptimizerSettings(
        0.001, 0.0, 0.0, "adam", 0.9, 0.999, 1e-8
    )
    assert OptimizerSpec.from_text("adamw").settings(None, 0.9, None) == OptimizerSettings(0.001, 0.0, 0.01, "adamw")
    assert OptimizerSpec.from_text("sgd").settings(None, 0.8, None) == OptimizerSettings(0.01, 0.8, 0.0)
    assert OptimizerSpec.from_text("lars").settings(2.0, 0.8, 0.1) == OptimizerSettings(2.0, 0.8, 0.1, "lars")


def test_options_that_are_given_count():
    found = OptimizerSpec.from_text("adamw:beta2=0.95,epsilon=1e-6,beta1=0.8").settings(0.1, 0.0, 0.0)
    assert found == OptimizerSettings(0.1, 0.0, 0.0, "adamw", 0.8, 0.95, 1e-6)


@pytest.mark.parametrize("text", ["sgd", "adam", "adamw:beta1=0.8,epsilon=1e-06"])
def test_its_text_is_read_again(text):
    found = OptimizerSpec.from_text(text)
    assert found.as_text() == text
    assert OptimizerSpec.from_text(found.as_text()) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adams", "unknown optimizer 'adams'; did you mean adam"),
        ("adam:beta=0.9", "optimizer adam has no option beta; known: beta1, beta2, epsilon"),
        ("sgd:momentum=0.9", "optimizer sgd has no option momentum; known: none"),
        ("adam:beta1=1", "beta1 is a number from 0 to below 1, not '1'"),
        ("adam:beta2=-0.1", "beta2 is a number from 0 to below 1, not '-0.1'"),
        ("adam:beta2=nan", "beta2 is a number from 0 to below 1, not 'nan'"),
        ("adamw:epsilon=0", "epsilon is a finite number above 0, not '0'"),
        ("adamw:epsilon=inf", "epsilon is a finite number above 0, not 'inf'"),
        ("adam:beta1=high", "beta1 is a number, not 'high'"),
    ],
)
def test_a_mistake_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        OptimizerSpec.from_text(text)
