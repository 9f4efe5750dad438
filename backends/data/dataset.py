"""A data set of images is read, cut into shards and packed for a device."""

import functools
import io
import os
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from backends.data import formats
from backends.data.formats import Pairs
from backends.models.layers import Shape
from profilers.regular_file import open_regular

IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
CIFAR_BATCHES = tuple("data_batch_%d" % number for number in range(1, 6)) + ("test_batch",)
#: Numbers of channels of images: grey, grey or colour with transparency, colour.
CHANNELS = (1, 2, 3, 4)
#: More classes than any set of images has.
MOST_CLASSES = 1 << 20
NUMPY_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


class Dataset(NamedTuple):
    """images: bytes or floats (count, height, width, channels); labels: int64, 0 to classes - 1.

    Models are given bytes scaled to -1 to 1, floats as they are, as float32.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: int

    @property
    def input_shape(self) -> Shape:
        """(height, width, channels) of an image."""
        return tuple(self.train_images.shape[1:])

    @property
    def image_dtype(self) -> str:
        """uint8 or float32, as devices get the images."""
        return str(as_shipped(self.train_images[:1]).dtype)


def load(directory: str) -> Dataset:
    """Read the image set in a directory.

    It holds IDX files (MNIST, Fashion-MNIST), gzipped or not, CIFAR-10 in its binary or Python
    version, or x_train, y_train, x_test, y_test as .npy files or in one .npz.
    .npy files stay on the disk: only what is asked for is read. Raises ValueError otherwise.
    """
    if not os.path.isdir(directory):
        raise ValueError("no directory %s; give the one that holds the images" % os.path.abspath(directory))
    for names, endings, read in (
        (IDX_FILES, ("", ".gz"), _read_idx),
        (CIFAR_BATCHES, (".bin",), functools.partial(_read_cifar, formats.read_cifar_binary)),
        (CIFAR_BATCHES, ("",), functools.partial(_read_cifar, formats.read_cifar_python)),
        (NUMPY_ARRAYS, (".npy",), _read_npy),
    ):
        paths = [_first_present(directory, name, endings) for name in names]
        if any(paths):
            missing = [name + endings[-1] for name, path in zip(names, paths) if path is None]
            if missing:
                raise ValueError("%s lacks %s" % (os.path.abspath(directory), ", ".join(missing)))
            return of_arrays(directory, read([path for path in paths if path]))
    archives = [name for name in os.listdir(directory) if name.endswith(".npz")]
    if len(archives) != 1:
        idx, cifar = ", ".join(IDX_FILES), ", ".join(name + ".bin" for name in CIFAR_BATCHES)
        raise ValueError(
            "no image set in %s: expected %s (or with .gz), or %s (or without .bin), or one .npz or %s, "
            "or pictures in train/CLASS and test/CLASS (docs/data.md)"
            % (os.path.abspath(directory), idx, cifar, ", ".join(name + ".npy" for name in NUMPY_ARRAYS))
        )
    path = os.path.join(directory, archives[0])
    with open_regular(path) as source:
        arrays = formats.read_npz(source, path, NUMPY_ARRAYS)
    for name, array in zip(NUMPY_ARRAYS, arrays):
        formats.require_finite("%s of %s" % (name, path), array)
    return of_arrays(directory, arrays)


def _first_present(directory: str, name: str, endings: Tuple[str, ...]) -> Optional[str]:
    candidates = (os.path.join(directory, name + ending) for ending in endings)
    return next((path for path in candidates if os.path.isfile(path)), None)


def _read_idx(paths: List[str]) -> Tuple[np.ndarray, ...]:
    kinds = (formats.IDX_IMAGES, formats.IDX_LABELS) * 2
    return tuple(formats.read_idx(path, kind) for path, kind in zip(paths, kinds))


def _read_cifar(read_batch: Callable[[str], Pairs], paths: List[str]) -> Tuple[np.ndarray, ...]:
    batches = [read_batch(path) for path in paths]
    images, labels = zip(*batches[:-1])
    return (np.concatenate(images), np.concatenate(labels)) + batches[-1]


def _read_npy(paths: List[str]) -> Tuple[np.ndarray, ...]:
    arrays = tuple(formats.map_npy(path) for path in paths)
    for path, array in zip(paths, arrays):
        formats.require_finite(path, array)
    return arrays


def of_arrays(directory: str, arrays: Tuple[np.ndarray, ...]) -> Dataset:
    """Training images and labels, test images and labels, as read from ``directory``.

    Raises ValueError where they do not fit together.
    """
    _check_pairs(directory, "training", arrays[0], arrays[1])
    _check_pairs(directory, "test", arrays[2], arrays[3])
    images = [array[..., None] if array.ndim == 3 else array for array in arrays[::2]]
    labels = [array.reshape(-1).astype(np.int64) for array in arrays[1::2]]
    if images[0].dtype.kind != images[1].dtype.kind:
        raise ValueError(
            "%s: training images are %s, test images %s; give both as bytes or both as floats"
            % (directory, images[0].dtype, images[1].dtype)
        )
    if images[0].shape[1:] != images[1].shape[1:]:
        raise ValueError(
            "%s: training images are %s, test images %s" % (directory, images[0].shape[1:], images[1].shape[1:])
        )
    return Dataset(images[0], labels[0], images[1], labels[1], int(max(labels[0].max(), labels[1].max())) + 1)


def _check_pairs(directory: str, part: str, images: np.ndarray, labels: np.ndarray) -> None:
    if (images.dtype != np.uint8 and images.dtype.kind != "f") or images.ndim not in (3, 4):
        raise ValueError(
            "%s: %s images must be uint8 or float32 (count, height, width[, channels]), are %s %s; "
            "train others by --job (docs/data.md)" % (directory, part, images.dtype, images.shape)
        )
    if not images.size:
        raise ValueError("%s: %s images %s hold no pixels" % (directory, part, images.shape))
    if images.ndim == 4 and images.shape[1] in CHANNELS and images.shape[3] not in CHANNELS:
        raise ValueError(
            "%s: %s images %s seem to have their channels first; transpose them to (count, height, width, "
            "channels), or train others by --job (docs/data.md)" % (directory, part, images.shape)
        )
    if labels.dtype.kind not in "iu" or labels.size != len(images) or not labels.size or labels.min() < 0:
        raise ValueError(
            "%s: %d %s images need as many labels from 0 up, there are %s %s"
            % (directory, len(images), part, labels.dtype, labels.shape)
        )
    if labels.max() >= MOST_CLASSES:
        raise ValueError(
            "%s: the %s label %d is too large; number the classes from 0" % (directory, part, labels.max())
        )


def synthetic(input_shape: Shape, classes: int, count: int, seed: int) -> Dataset:
    """Random images for timing steps: ``count`` training images and as many test images."""
    random = np.random.RandomState(seed)
    images = [random.randint(0, 256, (count,) + tuple(input_shape), np.uint8) for _ in range(2)]
    labels = [random.randint(0, classes, count).astype(np.int64) for _ in range(2)]
    return Dataset(images[0], labels[0], images[1], labels[1], classes)


def shards(count: int, weights: Sequence[float], seed: int) -> List[np.ndarray]:
    """Indices 0 to count - 1 dealt at random to disjoint shards in proportion to weights.

    Each size is within one of its share. No shard is empty where count allows.
    Raises ValueError unless all weights are positive and finite.
    """
    share = np.array(weights, np.float64)
    if not len(share) or not np.all(np.isfinite(share)) or share.min() <= 0:
        raise ValueError("shards need positive weights, got %s" % (list(weights),))
    sizes = apportion(count, share * (count / share.sum()))
    return np.split(np.random.RandomState(seed).permutation(count), np.cumsum(sizes)[:-1])


def apportion(count: int, share: np.ndarray) -> np.ndarray:
    """Whole parts that sum to ``count``, (n,) int64, of shares that do, by largest remainder.

    No part is 0 where count allows.
    """
    sizes = largest_remainders(count, share)
    while sizes.min() == 0 and count >= sizes.size:
        sizes[sizes.argmax()] -= 1
        sizes[sizes.argmin()] += 1
    return sizes


def largest_remainders(count: int, share: np.ndarray) -> np.ndarray:
    """As ``apportion``; a part may be 0."""
    sizes: np.ndarray = np.floor(share).astype(np.int64)
    # The stable sort resolves ties by position, on every machine alike.
    sizes[np.argsort(sizes - share, kind="mergesort")[: count - int(sizes.sum())]] += 1
    return sizes


def pack(images: np.ndarray, labels: np.ndarray) -> bytes:
    """A shard as one npz, uncompressed: on a fast link compressing takes longer than it saves."""
    stream = io.BytesIO()
    np.savez(stream, images=as_shipped(images), labels=labels)
    return stream.getvalue()


def as_shipped(images: np.ndarray) -> np.ndarray:
    """Bytes as they are, floats of any width as float32."""
    return images.astype(np.float32, copy=False) if images.dtype.kind == "f" else images


def unpack(content: bytes) -> Pairs:
    """(images, labels) of ``pack``. Raises ValueError if the bytes are not such an archive."""
    images, labels = formats.read_npz(io.BytesIO(content), "the shard received", ("images", "labels"))
    return images, labels
