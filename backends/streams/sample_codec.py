"""A sample travels as its arrays in numpy's .npy format, one after the other.

An image is the array of its pixels and that of its label. Anybody can write one with two calls of
``numpy.save``.
"""

import abc
import io
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from backends.data.loader import SampleSet
from backends.frameworks.layout import elements


class SampleCodec(abc.ABC):
    """Between the bytes of samples and the batches of a job."""

    @abc.abstractmethod
    def checked(self, payload: bytes) -> bytes:
        """The same sample in the form of the job's own. Raises ValueError where it is none."""

    def all_sound(self, payloads: Sequence[bytes]) -> bool:
        """Whether all were found to be samples in that form, all at once; else ``checked`` each."""
        return False

    @abc.abstractmethod
    def batch(self, payloads: Sequence[bytes]) -> Any:
        """The batch of samples that were checked, at least one."""


class ArrayType(NamedTuple):
    """One of the arrays of a sample."""

    dtype: str
    shape: Tuple[int, ...]


#: Fields of the n-th array of a sample.
HEAD, NUMBERS = "head %d", "numbers %d"
#: Heads are compared by words.
WORD = np.dtype(np.uint64)


class ArrayCodec(SampleCodec):
    """Samples that are a tuple of arrays, of which a batch is the rows.

    arrays: of one sample.
    classes: limit of the last array, where that is a label; None for any values.
    """

    def __init__(self, arrays: Sequence[ArrayType], classes: Optional[int] = None) -> None:
        self._arrays = tuple(arrays)
        self._classes = classes
        self._heads = tuple(_head(each) for each in arrays)
        self._layout = _layout(self._arrays, self._heads)

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
        return self._layout.itemsize

    def require_rows(self, arrays: Sequence[np.ndarray]) -> None:
        """Raises ValueError where these are no (count, ...) arrays of such samples."""
        found, expected = [array.shape[1:] for array in arrays], [kind.shape for kind in self._arrays]
        if found != expected:
            raise ValueError("a batch has samples of shapes %s, and the first sample has %s" % (found, expected))

    def encode(self, sample: Sequence[np.ndarray]) -> bytes:
        """The bytes of one sample."""
        rows = zip(self._heads, self._arrays, sample)
        return b"".join(head + np.ascontiguousarray(row, kind.dtype).tobytes() for head, kind, row in rows)

    def checked(self, payload: bytes) -> bytes:
        if self.all_sound([payload]):
            return payload
        rows = self._rows(payload)
        for row in rows:
            if row.dtype.kind == "f" and not np.all(np.isfinite(row)):
                raise ValueError("it has numbers that are not finite")
        if self._classes is not None and not 0 <= int(rows[-1]) < self._classes:
            raise ValueError("its label is %d, of %d classes from 0 on" % (int(rows[-1]), self._classes))
        return self.encode(rows)

    def all_sound(self, payloads: Sequence[bytes]) -> bool:
        # All are read at once: each call of numpy costs more than a small sample.
        if set(map(len, payloads)) != {self.sample_bytes}:
            return False
        rows = self._together(payloads)
        for place, head in enumerate(self._heads):
            if not np.all(rows[HEAD % place] == np.frombuffer(head, WORD)):
                return False
            numbers = rows[NUMBERS % place]
            if numbers.dtype.kind == "f" and not np.all(np.isfinite(numbers)):
                return False
        if self._classes is None:
            return True
        labels = rows[NUMBERS % (len(self._arrays) - 1)]
        return bool(np.all((labels >= 0) & (labels < self._classes)))

    def batch(self, payloads: Sequence[bytes]) -> Tuple[np.ndarray, ...]:
        rows = self._together(payloads)
        return tuple(rows[NUMBERS % place].copy() for place in range(len(self._arrays)))

    def _together(self, payloads: Sequence[bytes]) -> np.ndarray:
        """(n,) samples of the job's form, with fields for the head and the numbers of arrays."""
        return np.frombuffer(b"".join(payloads), self._layout)

    def _rows(self, payload: bytes) -> List[np.ndarray]:
        """The arrays of one sample, as any version of numpy writes them, or of another integer."""
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


def _layout(arrays: Sequence[ArrayType], heads: Sequence[bytes]) -> np.dtype:
    """The bytes of a sample as a structure. Heads are whole words: numpy pads them to 16 bytes."""
    fields: List[Any] = []
    for place, (kind, head) in enumerate(zip(arrays, heads)):
        fields += [(HEAD % place, WORD, (len(head) // WORD.itemsize,)), (NUMBERS % place, kind.dtype, kind.shape)]
    return np.dtype(fields)


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

    def checked(self, payload: bytes) -> bytes:
        if len(payload) != 8 or not 0 <= self._positions([payload])[0] < len(self._samples):
            raise ValueError("it is no position in the job's samples")
        return payload

    def batch(self, payloads: Sequence[bytes]) -> Any:
        return self._samples.batch(self._positions(payloads))

    @staticmethod
    def _positions(payloads: Sequence[bytes]) -> np.ndarray:
        return np.frombuffer(b"".join(payloads), "<i8").astype(np.int64)
