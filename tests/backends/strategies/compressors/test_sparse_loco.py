"""SparseLoCo: the largest of each chunk at two bits, and what decays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.strategies import quantized
from backends.strategies.compressors.sparse_loco import SparseLoCo
from backends.strategies.message import whole
from tests.backends.strategies.vectors import one_variable


def made(size, **options):
    return SparseLoCo(one_variable(size), **options)


def test_of_each_chunk_the_largest_are_sent_at_two_levels_with_their_signs():
    values = np.full(2 * quantized.CHUNK, 0.01, np.float32)
    values[[5, 7, 9, quantized.CHUNK + 1]] = [-4.0, 6.0, 1.0, -2.0]
    sent = whole(made(values.size, share=3 / quantized.CHUNK).compress(values))
    assert sent[[5, 7, 9]].tolist() == [-5.0, 5.0, 1.0]  # 4 and 6 share the upper level
    assert sent[quantized.CHUNK + 1] == -2.0
    assert np.count_nonzero(sent) == 6


@given(st.integers(1, 3 * quantized.CHUNK), st.floats(0.001, 0.5), st.integers(0, 1000))
def test_what_is_decoded_was_among_the_largest(size: int, share: float, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=size).astype(np.float32)
    arrays = quantized.encode(values, share)
    indices, sent = quantized.decode(arrays, size)
    assert indices.size == quantized.counts_of(size, share).sum()
    assert [array.shape[0] for array in arrays] == [*quantized.lengths(arrays[0].size, indices.size)]
    np.testing.assert_array_equal(np.sign(sent), np.sign(values[indices]))
    for chunk in range(quantized.chunks_of(size)):
        part = np.abs(values[chunk * quantized.CHUNK : (chunk + 1) * quantized.CHUNK])
        here = indices[indices // quantized.CHUNK == chunk] % quantized.CHUNK
        assert part[here].min() >= np.delete(part, here).max(initial=0.0)


def test_what_is_kept_decays():
    values = np.zeros(100, np.float32)
    values[3], values[4] = 10.0, 1.0
    compressor = made(100, share=0.01, decay=0.5)
    compressor.compress(values)
    assert compressor.residual()[4] == 1.0
    compressor.compress(np.zeros(100, np.float32))
    assert compressor.residual()[4] == 0.0  # half of it was the largest, and sent exactly


@pytest.mark.parametrize("spoil", ["counts", "order", "beyond", "codes"])
def test_arrays_that_do_not_fit_are_refused(spoil):
    counts, offsets, packed, levels = quantized.encode(np.arange(100, dtype=np.float32), 0.05)
    if spoil == "counts":
        counts[0] += 1
    elif spoil == "order":
        offsets = offsets[::-1].copy()
    elif spoil == "beyond":
        offsets[-1] = 100
    else:
        packed = packed[:-1]
    with pytest.raises(ValueError, match="quantized message"):
        quantized.decode((counts, offsets, packed, levels), 100)
