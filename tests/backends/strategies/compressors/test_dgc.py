"""Deep gradient compression: a warm-up from a quarter, and momentum that begins anew."""

import numpy as np

from backends.frameworks.layout import consecutive
from backends.strategies.compressors.dgc import DeepGradientCompression
from backends.strategies.compressors.momentum_correction import MomentumCorrection
from backends.strategies.compressors.registry import CompressorSpec

VARIABLES = consecutive([("any", (1000,))])
VALUES = np.arange(1, 1001, dtype=np.float32)


def counts(made, messages):
    return [made.compress(VALUES).arrays[0].size for _ in range(messages)]


def test_the_share_falls_exponentially_from_a_quarter():
    # 0.25, then a factor of (0.01 / 0.25) ^ (1/2) each: 0.05, 0.01
    assert counts(DeepGradientCompression(VARIABLES, share=0.01, warmup=2), 4) == [250, 50, 10, 10]
    assert counts(DeepGradientCompression(VARIABLES, share=0.01), 2) == [10, 10]


def test_the_momentum_of_what_was_sent_begins_anew():
    made = MomentumCorrection(DeepGradientCompression(VARIABLES, share=0.01), 0.5)
    made.compress(VALUES)
    assert not made.own[990:].any()
    np.testing.assert_array_equal(made.own[:990], VALUES[:990])
    plain = CompressorSpec.from_text("top-k:share=0.01").build(VARIABLES, momentum=0.5)
    plain.compress(VALUES)
    assert plain.own.all()
