"""Every kind of sender has a name, and a text that is wrong says what would be right."""

import importlib
import inspect
import pkgutil

import pytest

import backends.strategies
from backends.frameworks.base import Variable
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.momentum_correction import MomentumCorrection
from backends.strategies.compressors.registry import COMPRESSORS, compressor
from backends.strategies.presets import PARTS

VARIABLES = (Variable("kernel", (10, 5), 0, 50), Variable("bias", (5,), 50, 5))


def kinds_there_are():
    """All but the one that puts momentum before another, which nobody chooses by name."""
    for module in pkgutil.iter_modules(backends.strategies.__path__, "backends.strategies."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            # A kind says what it costs itself; Residual leaves that to others.
            if issubclass(kind, Compressor) and not inspect.isabstract(kind) and kind is not MomentumCorrection:
                yield kind


def test_every_kind_is_registered():
    assert set(kinds_there_are()) == set(COMPRESSORS.values())


def test_presets_know_the_same_names():
    assert list(PARTS["sender"]) == list(COMPRESSORS)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_name_alone_is_enough(name):
    made = compressor(name, VARIABLES)
    assert type(made) is COMPRESSORS[name]
    assert made.size == 55


def test_options_take_the_place_of_defaults():
    assert compressor("top-k:share=0.2", VARIABLES).count == 11
    made = compressor("layer-drop:ratio=0.5,every=10,norm=l1", VARIABLES)
    assert (made.ratio, made.every, made.norm) == (0.5, 10, "l1")
    assert compressor("gaia:falling=yes", VARIABLES).falling is True
    assert compressor("gaia:falling=no,s=0.02", VARIABLES).s == 0.02
    assert compressor("ako:blocks=8", VARIABLES).blocks == 8
    assert compressor("max-n:n=5", VARIABLES).n == 5.0


def test_a_wrapper_takes_its_own_options_and_those_of_what_it_wraps():
    made = compressor("adaptive:delta=0.1,of=max-n,n=5", VARIABLES)
    assert made.delta == 0.1
    assert made.of.n == 5.0
    assert compressor("adaptive:share=0.2", VARIABLES).of.count == 11


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("topk", r"unknown sender 'topk'; known: everything, float16, layer-drop, max-n, ako, gaia, top-k, adaptive"),
        ("", "unknown sender ''; known: everything"),
        ("top-k:part=1", "top-k has no option part; known: share"),
        ("everything:share=1", "everything has no option share; known: none"),
        ("adaptive:delte=0.1", "top-k has no option delte; known: of, delta, share"),
        ("adaptive:of=topk", "unknown sender 'topk'"),
        ("adaptive:of=adaptive", "every other kind"),
        ("top-k:share", "'share' is not of the form key=value"),
        ("top-k:share=", "'share=' is not of the form key=value"),
        ("top-k:share=0.1,", "'' is not of the form key=value"),
        ("top-k:share=0.1,share=0.2", "share is given twice"),
        ("top-k:share=much", "top-k: share is a number, not 'much'"),
        ("ako:blocks=1.5", r"ako: blocks is a whole number, not '1\.5'"),
        ("gaia:falling=1", "gaia: falling is yes or no, not '1'"),
        ("top-k:share=0", "share above 0 and at most 1, not 0"),
        ("top-k:share=nan", "share above 0 and at most 1, not nan"),
        ("max-n:n=0.5", r"n from 0\.85 to 100\.0, not 0\.5"),
        ("layer-drop:ratio=1", "ratio from 0 to below 1, not 1"),
        ("layer-drop:norm=l2", "known: mean, l1"),
        ("adaptive:delta=2", "delta from 0 to 1, not 2"),
    ],
)
def test_a_text_that_is_wrong_says_what_is(text, told):
    with pytest.raises(ValueError, match=told):
        compressor(text, VARIABLES)
