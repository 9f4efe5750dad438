"""Readers load image sets as they are published: IDX (MNIST, Fashion-MNIST), CIFAR-10, arrays.

Readers take paths and return arrays; all raise ValueError that names the file and what is wrong
with it. Images are uint8 (count, height, width, channels), labels int64 (count,); arrays of .npz
and .npy files are as they were saved.
"""

import struct
import zlib
from typing import BinaryIO, Tuple

import numpy as np

from backends.data import pickled_arrays
from backends.data.archives import open_npz, require_modest
from profilers.regular_file import open_regular

Pairs = Tuple[np.ndarray, np.ndarray]

#: One record of CIFAR-10's binary version: a label, then 32x32 red, green and blue.
CIFAR_RECORD_BYTES = 1 + 3 * 32 * 32

IDX_IMAGES, IDX_LABELS = 0x803, 0x801

#: So much of an array, which can be larger than memory, is checked at a time.
CHECKED_BYTES = 1 << 26


def read_idx(path: str, magic: int) -> np.ndarray:
    """An IDX file of unsigned bytes, gzipped if its name ends in .gz.

    magic: IDX_IMAGES or IDX_LABELS
    """
    with open_regular(path) as source:
        content = source.read()
    header = 4 * (1 + magic % 256)
    if path.endswith(".gz"):
        content = _gunzipped(path, content, header)
    if len(content) < header:
        raise ValueError("%s is truncated: expected a header of %d bytes, found %d" % (path, header, len(content)))
    found, *shape = struct.unpack(">%dI" % (header // 4), content[:header])
    if found != magic:
        raise ValueError("%s is not the IDX file expected: it starts with 0x%08x, not 0x%08x" % (path, found, magic))
    expected = header + int(np.prod(shape, dtype=np.int64))
    if len(content) != expected:
        raise ValueError(
            "%s is truncated or damaged: expected %d bytes%s, found %d"
            % (path, expected, " uncompressed" if path.endswith(".gz") else "", len(content))
        )
    values = np.frombuffer(content, np.uint8, offset=header).reshape(shape)
    return values[..., None].copy() if magic == IDX_IMAGES else values.astype(np.int64)


def _gunzipped(path: str, content: bytes, header: int) -> bytes:
    """As much as can be had, and at most a byte more than the header declares."""
    try:
        begin = _unpacked(content, header)
        declared = int(
            np.prod(struct.unpack(">%dI" % (len(begin) // 4), begin[: len(begin) // 4 * 4])[1:], dtype=object)
        )
        require_modest(len(content), declared)
        return _unpacked(content, header + declared + 1)
    except (zlib.error, ValueError) as error:
        raise ValueError("%s is no gzip file or damaged: %s" % (path, error)) from None


def _unpacked(content: bytes, most: int) -> bytes:
    """So many bytes of all members of a gzip file, one after the other, with zeros between them."""
    found = b""
    while content and len(found) < most:
        unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
        found += unpacking.decompress(content, most - len(found))
        content = unpacking.unused_data.lstrip(b"\0")
    return found


def read_cifar_binary(path: str) -> Pairs:
    """A batch of CIFAR-10's binary version."""
    content = np.fromfile(path, np.uint8)
    whole = len(content) // CIFAR_RECORD_BYTES
    if not whole or len(content) % CIFAR_RECORD_BYTES:
        raise ValueError(
            "%s is truncated: expected %d bytes an image (30730000 in CIFAR-10's own), found %d"
            % (path, CIFAR_RECORD_BYTES, len(content))
        )
    records = content.reshape(whole, CIFAR_RECORD_BYTES)
    return _planes(records[:, 1:]), _cifar_labels(path, records[:, 0])


def read_cifar_python(path: str) -> Pairs:
    """A batch of CIFAR-10's Python version."""
    with open_regular(path) as source:
        try:
            batch = pickled_arrays.load(source)
        except EOFError:
            raise ValueError("%s is truncated: its pickle ends after %d bytes" % (path, source.tell())) from None
        except Exception as error:  # noqa: BLE001 - a damaged pickle raises whatever it likes
            reason = str(error) or type(error).__name__
            raise ValueError("%s is truncated or no CIFAR-10 batch: %s" % (path, reason)) from None
    data, labels = (batch.get("data"), batch.get("labels")) if isinstance(batch, dict) else (None, None)
    rows = data.rows(CIFAR_RECORD_BYTES - 1) if isinstance(data, pickled_arrays.PickledArray) else None
    if rows is None:
        raise ValueError("%s is no CIFAR-10 batch: it holds no uint8 'data' of 3072 columns" % path)
    if not isinstance(labels, list) or len(labels) != len(rows):
        raise ValueError("%s is no CIFAR-10 batch: it holds no 'labels' for its %d images" % (path, len(rows)))
    return _planes(rows), _cifar_labels(path, np.array(labels))


def _planes(rows: np.ndarray) -> np.ndarray:
    """(count, 3072) red, green and blue planes -> (count, 32, 32, 3)."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _cifar_labels(path: str, labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
        raise ValueError("%s is damaged: labels must be 0 to 9" % path)
    return labels.astype(np.int64)


def read_npz(source: BinaryIO, shown: str, names: Tuple[str, ...]) -> Tuple[np.ndarray, ...]:
    """The named arrays of an npz archive, without pickled objects; errors call it ``shown``."""
    try:
        with open_npz(source) as archive:
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise ValueError("lacks %s, holds %s" % (", ".join(missing), ", ".join(archive.files)))
            return tuple(archive[name] for name in names)
    except Exception as error:  # noqa: BLE001 - zipfile, zlib and numpy raise whatever damage makes them
        raise ValueError("%s: %s" % (shown, str(error) or type(error).__name__)) from None


def map_npy(path: str) -> np.ndarray:
    """The array of an .npy file, which stays on the disk until parts of it are read."""
    try:
        mapped: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise ValueError("%s: %s" % (path, str(error) or type(error).__name__)) from None
    if not isinstance(mapped, np.ndarray):
        raise ValueError("%s is no .npy file" % path)
    return mapped


def require_finite(shown: str, array: np.ndarray) -> None:
    """Raises ValueError where floats of images are NaN or beyond float32.

    Errors call the array ``shown``.
    """
    if array.dtype.kind != "f" or array.ndim < 2:  # labels are judged by their type
        return
    rows = max(1, CHECKED_BYTES // max(1, array[:1].nbytes))
    for start in range(0, len(array), rows):
        with np.errstate(over="ignore"):
            part = array[start : start + rows].astype(np.float32)
        bad = np.argwhere(~np.isfinite(part))
        if len(bad):
            raise ValueError(
                "%s holds %g at image %d, which is no finite float32; replace such values"
                % (shown, array[start : start + rows][tuple(bad[0])], start + bad[0][0])
            )
