"""A sample travels as its arrays in numpy's .npy format, one after the other.

An image is the array of its pixels and that of its label. Anybody can write one with two calls of
``numpy.save``.
"""

import abc
import io
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from backends.data.loader import SampleSet
from backends.frameworks.base import elements


class SampleCodec(abc.ABC):
    """Between the bytes of samples and the batches of a job."""

    @abc.abstractmethod
    def check(self, payload: bytes) -> None:
        """Raises ValueError where it is no sample of the job."""

    def all_sound(self, payloads: Sequence[bytes]) -> bool:
        """Whether these were found to be samples of the job all at once; else ``check`` each."""
        return False

    @abc.abstractmethod
    def batch(self, payloads: Sequence[bytes]) -> Any:
        """The batch of samples that were checked."""


class ArrayType(NamedTuple):
    """One of the arrays of a sample."""

    dtype: str
    shape: Tuple[int, ...]


class ArrayCodec(SampleCodec):
    """Samples that are a tuple of arrays, of which a batch is the rows.

    arrays: of one sample.
    classes: limit of the last array, where that is a label; None for any values.
    """

    def __init__(self, arrays: Sequence[ArrayType], classes: Optional[int] = None) -> None:
        self._arrays = tuple(arrays)
        self._classes = classes
        self._heads = tuple(_head(each) for each in arrays)
        self._sizes = tuple(np.dtype(each.dtype).itemsize * elements(each.shape) for each in arrays)

    @classmethod
    def of(cls, samples: SampleSet, classes: Optional[int] = None) -> "ArrayCodec":
        """For samples like those of a set. Raises ValueError where they are no arrays."""
        first = samples.batch(slice(0, 1))
        if not isinstance(first, (tuple, list)):
            raise ValueError(NO_ARRAYS)
        try:
            arrays = [np.asarray(each) for each in first]
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(NO_ARRAYS) from None
        if any(each.dtype.kind not in "biuf" or not each.ndim for each in arrays):
            raise ValueError(NO_ARRAYS)
        return cls([ArrayType(each.dtype.str, each.shape[1:]) for each in arrays], classes)

    @property
    def sample_bytes(self) -> int:
        """Of every sample."""
        return sum(map(len, self._heads)) + sum(self._sizes)

    def require_rows(self, arrays: Sequence[np.ndarray]) -> None:
        """Raises ValueError where these are no (count, ...) arrays of such samples."""
        found, expected = [array.shape[1:] for array in arrays], [kind.shape for kind in self._arrays]
        if found != expected:
            raise ValueError("a batch has samples of shapes %s, and the first sample has %s" % (found, expected))

    def encode(self, sample: Sequence[np.ndarray]) -> bytes:
        """The bytes of one sample."""
        rows = zip(self._heads, self._arrays, sample)
        return b"".join(head + np.ascontiguousarray(row, kind.dtype).tobytes() for head, kind, row in rows)

    def check(self, payload: bytes) -> None:
        rows = self._rows(payload)
        for row in rows:
            if row.dtype.kind == "f" and not np.all(np.isfinite(row)):
                raise ValueError("it has numbers that are not finite")
        if self._classes is not None and not 0 <= int(rows[-1]) < self._classes:
            raise ValueError("its label is %d, of %d classes from 0 on" % (int(rows[-1]), self._classes))

    def all_sound(self, payloads: Sequence[bytes]) -> bool:
        parts = self._parts(payloads)
        if parts is None:
            return False
        for kind, part in zip(self._arrays, parts):
            if np.dtype(kind.dtype).kind == "f" and not np.all(np.isfinite(_column(kind, part))):
                return False
        if self._classes is None:
            return True
        labels = _column(self._arrays[-1], parts[-1])
        return bool(np.all((labels >= 0) & (labels < self._classes)))

    def batch(self, payloads: Sequence[bytes]) -> Tuple[np.ndarray, ...]:
        parts = self._parts(payloads)
        if parts is not None:
            return tuple(_column(kind, part) for kind, part in zip(self._arrays, parts))
        rows = [self._rows(payload) for payload in payloads]
        return tuple(np.stack(column) for column in zip(*rows))

    def _parts(self, payloads: Sequence[bytes]) -> Optional[List[np.ndarray]]:
        """(n, bytes) of each array of n samples; None where one has other heads than expected.

        All are read at once: each call of numpy costs more than a small sample.
        """
        if set(map(len, payloads)) != {self.sample_bytes}:
            return None
        whole = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
        found, start = [], 0
        for head, size in zip(self._heads, self._sizes):
            data = start + len(head)
            if np.any(whole[:, start:data] != np.frombuffer(head, np.uint8)):
                return None
            start = data + size
            found.append(whole[:, data:start])
        return found

    def _rows(self, payload: bytes) -> List[np.ndarray]:
        """The arrays of one sample: quickly where their heads are as expected."""
        found, start = [], 0
        for kind, head, size in zip(self._arrays, self._heads, self._sizes):
            data = start + len(head)
            if payload[start:data] != head or len(payload) < data + size:
                return self._converted(payload)
            found.append(np.frombuffer(payload, kind.dtype, elements(kind.shape), data).reshape(kind.shape))
            start = data + size
        return found if start == len(payload) else self._converted(payload)

    def _converted(self, payload: bytes) -> List[np.ndarray]:
        """As ``_rows``, where another version of numpy wrote them, or another type of integer."""
        stream, found = io.BytesIO(payload), []
        for kind in self._arrays:
            try:
                row = np.lib.format.read_array(stream, allow_pickle=False)
            except Exception as error:  # noqa: BLE001 - the parser raises whatever damage makes it
                reason = "it is not of %d arrays as numpy.save writes them: %s" % (len(self._arrays), error)
                raise ValueError(reason) from None
            if row.shape != kind.shape or not _fits(row, kind.dtype):
                raise ValueError(
                    "it has an array %s %s, expected %s %s" % (row.dtype, row.shape, np.dtype(kind.dtype), kind.shape)
                )
            found.append(row.astype(kind.dtype, copy=False))
        if stream.read(1):
            raise ValueError("it has more than %d arrays" % len(self._arrays))
        return found


NO_ARRAYS = (
    "the job's samples are not tuples of arrays of numbers, and only those can come from elsewhere; "
    "replay its own with --stream replay"
)


def _column(kind: ArrayType, part: np.ndarray) -> np.ndarray:
    """(n, ...) the arrays of n samples, (n, bytes)."""
    return part.copy().view(kind.dtype).reshape((len(part),) + tuple(kind.shape))


def _head(kind: ArrayType) -> bytes:
    """What ``numpy.save`` writes before the numbers of an array."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.zeros(kind.shape, kind.dtype), allow_pickle=False)
    size = np.dtype(kind.dtype).itemsize * elements(kind.shape)
    return stream.getvalue()[: len(stream.getvalue()) - size]


def _fits(row: np.ndarray, dtype: str) -> bool:
    """Whether an array can be converted without another meaning: bytes of images stay bytes."""
    wanted = np.dtype(dtype)
    if wanted.kind in "iu" and row.dtype.kind in "iu" and wanted.itemsize > 1:
        return True
    return row.dtype == wanted or (wanted.kind == "f" and row.dtype.kind == "f")


class PositionCodec(SampleCodec):
    """Samples that a job has on the device, of which only the position is delivered."""

    def __init__(self, samples: SampleSet) -> None:
        self._samples = samples

    @staticmethod
    def encode(position: int) -> bytes:
        """The bytes that stand for a sample."""
        return np.array([position], "<i8").tobytes()

    def check(self, payload: bytes) -> None:
        if len(payload) != 8 or not 0 <= self._positions([payload])[0] < len(self._samples):
            raise ValueError("it is no position in the job's samples")

    def batch(self, payloads: Sequence[bytes]) -> Any:
        return self._samples.batch(self._positions(payloads))

    @staticmethod
    def _positions(payloads: Sequence[bytes]) -> np.ndarray:
        return np.frombuffer(b"".join(payloads), "<i8").astype(np.int64)
