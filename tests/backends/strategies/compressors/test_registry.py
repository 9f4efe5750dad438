"""Every kind of sender has a name, and a text that is wrong says what would be right."""

import importlib
import inspect
import pkgutil

import pytest

from backends.frameworks.layout import Variable
from backends.strategies import compressors
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.momentum_correction import MomentumCorrection
from backends.strategies.compressors.registry import COMPRESSORS, CompressorSpec

VARIABLES = (Variable("kernel", (10, 5), 0, 50), Variable("bias", (5,), 50, 5))


def kinds_there_are():
    """All but the one that puts momentum before another, which nobody chooses by name."""
    for module in pkgutil.iter_modules(compressors.__path__, compressors.__name__ + "."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            # A kind says what it costs itself; Residual leaves that to others.
            if issubclass(kind, Compressor) and not inspect.isabstract(kind) and kind is not MomentumCorrection:
                yield kind


def test_every_kind_is_registered():
    assert set(kinds_there_are()) == set(COMPRESSORS.values())


def test_options_take_the_place_of_defaults():
    assert CompressorSpec.from_text("top-k:share=0.2").build(VARIABLES).count == 11
    made = CompressorSpec.from_text("layer-drop:ratio=0.5,every=10,norm=l1").build(VARIABLES)
    assert (made.ratio, made.every, made.norm) == (0.5, 10, "l1")
    assert CompressorSpec.from_text("gaia:falling=yes").build(VARIABLES).falling is True
    assert CompressorSpec.from_text("gaia:falling=no,s=0.02").build(VARIABLES).s == 0.02
    assert CompressorSpec.from_text("ako:blocks=8").build(VARIABLES).blocks == 8
    assert CompressorSpec.from_text("max-n:n=5").build(VARIABLES).n == 5.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("topk", r"unknown compressor 'topk'; did you mean top-k\? known: dense, float16, layer-drop, max-n"),
        ("top-k:part=1", "top-k has no option part; known: share"),
        ("adaptive:delte=0.1", "top-k has no option delte; known: of, delta, rule, share"),
        ("adaptive:of=topk", "unknown compressor 'topk'"),
        ("adaptive:of=adaptive", "every other kind"),
        ("top-k:share", "'share' is not of the form key=value"),
        ("top-k:share=0.1,", "'' is not of the form key=value"),
        ("top-k:share=0.1,share=0.2", "share is given twice"),
        ("top-k:share=much", "top-k: share is a number, not 'much'"),
        ("ako:blocks=1.5", r"ako: blocks is a whole number, not '1\.5'"),
        ("gaia:falling=1", "gaia: falling is yes or no, not '1'"),
        ("top-k:share=0", "share above 0 and at most 1, not 0"),
        ("max-n:n=0.5", r"n from 0\.85 to 100\.0, not 0\.5"),
        ("layer-drop:ratio=1", "ratio from 0 to below 1, not 1"),
        ("max-n:n=101", r"n from 0\.85 to 100\.0, not 101"),
        ("layer-drop:ratio=-0.1", "ratio from 0 to below 1"),
        ("layer-drop:every=0", "every 1 step or more"),
        ("layer-drop:norm=l2", "known: mean, l1"),
        ("gaia:s=0", "s between 0 and 1"),
        ("ako:blocks=0", "1 block or more"),
        ("dgc:warmup=-1", "warmup of at least 0"),
        ("ef21:share=1.1", "above 0 and at most 1"),
        ("power-sgd:rank=0", "rank of at least 1"),
        ("sparse-loco:share=0.6", "at most 0.5"),
        ("sparse-loco:decay=1.1", "decay from 0 to 1"),
        ("adaptive:rule=residual", "adaptive has no rule 'residual'; known: accumulated, gradient"),
        ("adaptive:delta=2", "delta from 0 to 1, not 2"),
    ],
)
def test_a_text_that_is_wrong_says_what_is(text, told):
    with pytest.raises(ValueError, match=told):
        CompressorSpec.from_text(text).build(VARIABLES)
