"""The largest elements of each chunk of a vector, their magnitudes rounded to two levels: 2 bits.

Offsets within a chunk of 4,096 take two bytes, so that an element takes 2.25 bytes in place of 8.
Source: SparseLoCo (Sarfi et al., 2025), whose chunks are as large.
"""

from typing import Tuple

import numpy as np

#: Elements of a chunk, but for the last.
CHUNK = 4096
#: Elements whose codes share a byte.
_IN_BYTE = 4
#: The arrays of a message: counts (c,) uint16; offsets (n,) uint16, ascending in each chunk; codes
#: (n / 4,) uint8; levels (c, 2) float32, the lower magnitude first.
Quantized = Tuple[np.ndarray, ...]


def chunks_of(size: int) -> int:
    """Chunks of a vector of so many elements."""
    return -(-size // CHUNK)


def counts_of(size: int, share: float) -> np.ndarray:
    """(c,) elements that are sent of each chunk, at least one."""
    sizes = np.minimum(CHUNK, size - CHUNK * np.arange(chunks_of(size)))
    return np.maximum(1, np.round(share * sizes)).astype(np.uint16)


def encode(values: np.ndarray, share: float) -> Quantized:
    """The largest ``share`` of each chunk of (size,) float32."""
    counts = counts_of(values.size, share)
    whole = values.size // CHUNK
    parts = []
    if whole:
        parts.append(_largest(values[: whole * CHUNK].reshape(whole, CHUNK), int(counts[0])))
    if whole < counts.size:
        parts.append(_largest(values[whole * CHUNK :].reshape(1, -1), int(counts[-1])))
    offsets = np.concatenate([part[0].ravel() for part in parts])
    codes = np.concatenate([part[1].ravel() for part in parts])
    padded = np.zeros(-(-codes.size // _IN_BYTE) * _IN_BYTE, np.uint8)
    padded[: codes.size] = codes
    packed = (padded.reshape(-1, _IN_BYTE) << np.arange(0, 8, 2, dtype=np.uint8)).sum(axis=1).astype(np.uint8)
    return counts, offsets.astype(np.uint16), packed, np.concatenate([part[2] for part in parts])


def _largest(chunks: np.ndarray, count: int) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets and codes, (c, count) each, and levels, of (c, elements)."""
    magnitudes = np.abs(chunks)
    offsets = np.argpartition(magnitudes, chunks.shape[1] - count, axis=1)[:, chunks.shape[1] - count :]
    offsets.sort(axis=1)
    chosen = np.take_along_axis(magnitudes, offsets, axis=1)
    high = chosen > chosen.mean(axis=1, keepdims=True)
    levels = np.stack([_mean(chosen, ~high), _mean(chosen, high)], axis=1)
    codes = (np.take_along_axis(chunks, offsets, axis=1) < 0).astype(np.uint8) | (high.astype(np.uint8) << 1)
    return offsets, codes, levels.astype(np.float32)


def _mean(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    count = where.sum(axis=1)
    return np.asarray((values * where).sum(axis=1) / np.maximum(1, count))


def decode(arrays: Quantized, size: int) -> Tuple[np.ndarray, np.ndarray]:
    """Ascending indices (n,) and float32 values (n,). Raises ValueError where arrays do not fit."""
    counts, offsets, packed, levels = arrays
    total = int(counts.sum(dtype=np.int64))
    fit = counts.size == levels.shape[0] == chunks_of(size) and total == offsets.size
    if not fit or packed.size != -(-total // _IN_BYTE):
        raise ValueError("a quantized message does not fit its vector")
    chunk = np.repeat(np.arange(counts.size), counts)
    indices = chunk * CHUNK + offsets
    if total and (int(offsets.max()) >= CHUNK or int(indices[-1]) >= size or not np.all(indices[1:] > indices[:-1])):
        raise ValueError("a quantized message's offsets are not ascending, or beyond its vector")
    codes = ((packed[:, None] >> np.arange(0, 8, 2, dtype=np.uint8)) & 3).ravel()[:total]
    values = levels[chunk, codes >> 1]
    return indices, np.where(codes & 1, -values, values)


def lengths(chunks: int, elements: int) -> Tuple[int, int, int, int]:
    """Rows of the arrays of ``encode``."""
    return chunks, elements, -(-elements // _IN_BYTE), chunks


def empty(chunks: int, elements: int, packed: int, levels: int) -> Quantized:
    """Arrays of so many rows to receive into."""
    return (
        np.empty(chunks, np.uint16),
        np.empty(elements, np.uint16),
        np.empty(packed, np.uint8),
        np.empty((levels, 2), np.float32),
    )
