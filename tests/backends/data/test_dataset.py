"""Image sets: reading them, cutting them, drawing from them."""

import contextlib
import gzip
import io
import pickle
import pickletools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

from backends.data import dataset as data
from backends.data import formats
from backends.data.loader import ArraySamples, BatchLoader
from tests.mutations import MUTATIONS, damaged

RANDOM = np.random.RandomState(0)


def idx(values):
    values = np.asarray(values, np.uint8)
    return struct.pack(f">{1 + values.ndim}I", 0x800 + values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def grey():
    """Five training and three test images of 4x3."""
    return [RANDOM.randint(0, 256, (5, 4, 3)), [0, 1, 2, 1, 0], RANDOM.randint(0, 256, (3, 4, 3)), [3, 0, 1]]


@pytest.fixture
def mnist(tmp_path, grey):
    for name, values in zip(data.IDX_FILES, grey, strict=True):
        (tmp_path / name).write_bytes(idx(values))
    return tmp_path


@pytest.fixture
def colour():
    """Twelve images in six batches of two, with labels."""
    return RANDOM.randint(0, 256, (12, 32, 32, 3)).astype(np.uint8), RANDOM.randint(0, 10, 12)


def cifar_rows(images):
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def as_python_2(batch):
    """The pickle as Python 2 wrote it: byte strings for text and data, numpy's core at its old
    place.
    """
    content = bytearray(pickle.dumps(batch, protocol=3))
    strings = {"SHORT_BINBYTES": b"U", "BINBYTES": b"T", "BINUNICODE": b"T"}
    for opcode, _, position in pickletools.genops(bytes(content)):
        if opcode.name in strings:
            content[position : position + 1] = strings[opcode.name]
    content[1] = 2
    return bytes(content).replace(b"numpy._core", b"numpy.core")


def write_cifar(folder, colour, python):
    images, labels = colour
    for index, name in enumerate(data.CIFAR_BATCHES):
        part = slice(2 * index, 2 * index + 2)
        rows = cifar_rows(images[part])
        if python:
            batch = {"data": rows, "labels": labels[part].tolist(), "batch_label": name, "filenames": ["a", "b"]}
            (folder / name).write_bytes(as_python_2(batch))
        else:
            (folder / f"{name}.bin").write_bytes(np.column_stack([labels[part].astype(np.uint8), rows]).tobytes())


def same(dataset, train_images, train_labels, test_images, test_labels):
    assert dataset.train_images.dtype == np.uint8 and dataset.train_labels.dtype == np.int64
    for got, expected in zip(dataset[:4], (train_images, train_labels, test_images, test_labels), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("compressed", [False, True])
def test_idx_files_are_read_plain_and_gzipped(mnist, grey, compressed):
    if compressed:
        for name in data.IDX_FILES:
            (mnist / f"{name}.gz").write_bytes(gzip.compress((mnist / name).read_bytes()))
            (mnist / name).unlink()
    dataset = data.load(str(mnist))
    same(dataset, grey[0][..., None], grey[1], grey[2][..., None], grey[3])
    assert dataset.classes == 4 and dataset.input_shape == (4, 3, 1)


@pytest.mark.parametrize("python", [False, True])
def test_both_versions_of_cifar10_are_read(tmp_path, colour, python):
    write_cifar(tmp_path, colour, python)
    images, labels = colour
    same(data.load(str(tmp_path)), images[:10], labels[:10], images[10:], labels[10:])


def test_an_npz_is_read(tmp_path, grey):
    arrays = dict(zip(data.NUMPY_ARRAYS, (np.asarray(array, np.uint8) for array in grey), strict=True))
    np.savez(tmp_path / "set.npz", **arrays)
    same(data.load(str(tmp_path)), grey[0][..., None], grey[1], grey[2][..., None], grey[3])


def test_the_example_is_a_balanced_excerpt(request):
    dataset = data.load(str(request.config.rootpath / "examples" / "fashion-mnist"))
    assert dataset.train_images.shape == (3000, 28, 28, 1) and dataset.test_images.shape == (1000, 28, 28, 1)
    assert set(np.bincount(dataset.train_labels)) == {300} and set(np.bincount(dataset.test_labels)) == {100}


def test_what_is_not_there_is_named(tmp_path, mnist):
    with pytest.raises(ValueError, match="no directory .*nowhere"):
        data.load(str(tmp_path / "nowhere"))
    (mnist / data.IDX_FILES[3]).unlink()
    with pytest.raises(ValueError, match=r"lacks t10k-labels-idx1-ubyte\.gz$"):
        data.load(str(mnist))


def test_an_empty_directory_names_the_files_expected(tmp_path):
    with pytest.raises(ValueError, match="train-images-idx3-ubyte.*data_batch_1.bin.*npz"):
        data.load(str(tmp_path))


@pytest.mark.parametrize(
    "kept, complaint",
    [
        (75, "train-images-idx3-ubyte is truncated or damaged: expected 76 bytes, found 75"),
        (7, "expected a header of 16 bytes, found 7"),
    ],
)
def test_a_truncated_idx_file_says_what_it_should_have_been(mnist, kept, complaint):
    file = mnist / data.IDX_FILES[0]
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=complaint):
        data.load(str(mnist))


def test_a_truncated_gzip_file_says_how_much_of_it_there_is(mnist):
    file = mnist / data.IDX_FILES[0]
    content = RANDOM.randint(0, 256, 6000).astype(np.uint8).reshape(5, 40, 30)
    (mnist / f"{file.name}.gz").write_bytes(gzip.compress(idx(content))[:-500])
    file.unlink()
    with pytest.raises(
        ValueError, match=r"\.gz is truncated or damaged: expected 6016 bytes uncompressed, found 5\d\d\d"
    ):
        data.load(str(mnist))


def test_what_only_looks_like_gzip_or_idx_is_refused(mnist):
    with pytest.raises(ValueError, match="starts with 0x00000803, not 0x00000801"):
        formats.read_idx(str(mnist / data.IDX_FILES[0]), formats.IDX_LABELS)
    (mnist / "x.gz").write_bytes(b"no gzip at all")
    with pytest.raises(ValueError, match="x.gz is no gzip file or damaged"):
        formats.read_idx(str(mnist / "x.gz"), formats.IDX_IMAGES)


def test_a_truncated_binary_batch_is_refused(tmp_path, colour):
    write_cifar(tmp_path, colour, python=False)
    file = tmp_path / "data_batch_2.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="data_batch_2.bin is truncated: expected 3073 bytes an image.*found 6145"):
        data.load(str(tmp_path))


@pytest.mark.parametrize("kept", [10, 300, 6000])
def test_a_truncated_pickled_batch_is_refused(tmp_path, colour, kept):
    write_cifar(tmp_path, colour, python=True)
    file = tmp_path / "data_batch_2"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="data_batch_2 is truncated"):
        data.load(str(tmp_path))


@pytest.fixture(scope="module")
def pickled():
    rows = RANDOM.randint(0, 256, (1, 3072)).astype(np.uint8)
    return as_python_2({"batch_label": "one", "labels": [7], "data": rows, "filenames": ["a"]})


@MUTATIONS
@given(some.data())
def test_a_damaged_pickled_batch_is_refused_or_read(tmp_path_factory, pickled, drawn):
    pixels = pickled.rindex(b"U") if b"U" in pickled else 0
    near = drawn.draw(damaged(pickled[:200]))
    path = tmp_path_factory.getbasetemp() / "damaged_batch"
    path.write_bytes(drawn.draw(some.sampled_from([near, near + pickled[200:], pickled[:pixels] + near])))
    with contextlib.suppress(ValueError):
        images, labels = formats.read_cifar_python(str(path))
        assert len(images) == len(labels)


def test_a_number_of_a_damaged_pickle_takes_no_memory(tmp_path):
    (tmp_path / "batch").write_bytes(b"Nr\xff\xff\xff\x7f.")
    with pytest.raises(ValueError, match="batch is no CIFAR-10 batch"):
        formats.read_cifar_python(str(tmp_path / "batch"))


def test_a_pickle_that_wants_to_run_something_is_not_obeyed(tmp_path, colour):
    class Malice:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    write_cifar(tmp_path, colour, python=True)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({"data": Malice()}, protocol=2))
    with pytest.raises(ValueError, match="data_batch_1 .*it wants .*open, which data have no use for"):
        data.load(str(tmp_path))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        {"data": 3},
        {"data": np.zeros((1, 3072), np.uint8), "labels": [1, 2]},
        {"data": np.zeros((1, 3072), np.uint8), "labels": [10]},
    ],
)
def test_a_pickle_of_something_else_is_refused(tmp_path, batch):
    (tmp_path / "batch").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(ValueError, match="batch is "):
        formats.read_cifar_python(str(tmp_path / "batch"))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"x_train": np.zeros((5, 4, 3), int)}, "training images must be uint8 or float32 .* are int64"),
        ({"x_train": np.zeros((5, 4, 3))}, "training images are float64, test images uint8; give both as bytes or"),
        ({"x_train": np.zeros((5, 3, 9, 9), np.uint8)}, r"images \(5, 3, 9, 9\) seem to have their channels first"),
        ({"x_train": np.zeros((5, 1, 9, 9), np.uint8)}, r"images \(5, 1, 9, 9\) seem to have their channels first"),
        ({"x_train": np.zeros((5, 0, 9), np.uint8)}, r"images \(5, 0, 9\) hold no pixels"),
        ({"y_train": np.full(5, 2**63 + 5, np.uint64)}, "training label 9223372036854775813 is too large; number"),
        ({"y_train": np.zeros(5)}, "as many labels from 0 up, there are float64"),
        ({"y_test": np.zeros(2, np.uint8)}, "3 test images need as many labels"),
        ({"x_test": np.zeros((3, 5, 3), np.uint8)}, r"training images are \(4, 3, 1\), test images \(5, 3, 1\)"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, grey, change, complaint):
    arrays = dict(zip(data.NUMPY_ARRAYS, (np.asarray(array, np.uint8) for array in grey), strict=True))
    np.savez(tmp_path / "set.npz", **dict(arrays, **change))
    with pytest.raises(ValueError, match=complaint):
        data.load(str(tmp_path))


def test_an_npz_without_the_arrays_or_truncated_is_refused(tmp_path):
    np.savez(tmp_path / "set.npz", x_train=np.zeros(3))
    with pytest.raises(ValueError, match="set.npz: lacks y_train, x_test, y_test, holds x_train"):
        data.load(str(tmp_path))
    content = (tmp_path / "set.npz").read_bytes()
    (tmp_path / "set.npz").write_bytes(content[:-40])
    with pytest.raises(ValueError, match="set.npz: it is no npz archive, or truncated"):
        data.load(str(tmp_path))


@given(some.integers(0, 300), some.lists(some.floats(0.01, 100), min_size=1, max_size=8), some.integers(0, 2**31))
def test_shards_are_disjoint_complete_and_proportional(count, weights, seed):
    parts = data.shards(count, weights, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(count)) and len(parts) == len(weights)
    sizes = [len(part) for part in parts]
    if count >= len(weights):
        assert min(sizes) >= 1
    slack = 1 if min(weight * count / sum(weights) for weight in weights) >= 1 else len(weights)
    assert all(
        abs(size - count * weight / sum(weights)) < slack + 1e-6 for size, weight in zip(sizes, weights, strict=True)
    )
    assert all((a == b).all() for a, b in zip(parts, data.shards(count, weights, seed), strict=True))


@pytest.mark.parametrize("weights", [[], [1, 0], [1, -1], [1, float("nan")], [float("inf")]])
def test_shards_refuse_weights_that_mean_nothing(weights):
    with pytest.raises(ValueError, match="positive weights"):
        data.shards(10, weights, 0)


@given(some.integers(1, 20), some.integers(1, 50), some.integers(0, 5))
def test_batches_draw_every_image_once_an_epoch_and_resume_anywhere(count, batch, skipped):
    images, labels = np.arange(count, dtype=np.uint8).reshape(-1, 1, 1, 1), np.arange(count)
    batches = BatchLoader(ArraySamples(images, labels), batch, 7)
    drawn = [next(batches) for _ in range(-(-3 * count // batch))]
    assert all(len(y) == batch and (x.ravel() == y).all() for x, y in drawn)
    stream = np.concatenate([y for _, y in drawn])
    for epoch in range(3):
        assert sorted(stream[epoch * count : (epoch + 1) * count].tolist()) == list(range(count))
    resumed = BatchLoader(ArraySamples(images, labels), batch, 7)
    resumed.order.position = skipped * batch
    for _ in range(skipped, len(drawn)):
        expected = drawn[resumed.order.position // batch][1]
        np.testing.assert_array_equal(next(resumed)[1], expected)


def test_a_shard_survives_the_way_to_a_device():
    dataset = data.synthetic((4, 4, 1), 3, 20, 0)
    content = data.pack(dataset.train_images, dataset.train_labels)
    images, labels = data.unpack(content)
    np.testing.assert_array_equal(images, dataset.train_images)
    np.testing.assert_array_equal(labels, dataset.train_labels)
    for broken in (b"", content[:-30], b"\x80\x02]."):
        with pytest.raises(ValueError, match="the shard received: it is no npz archive, or truncated"):
            data.unpack(broken)


def test_a_shard_that_holds_objects_is_refused():
    stream = io.BytesIO()
    np.savez(stream, images=np.array([{}], object), labels=np.zeros(1))
    with pytest.raises(ValueError, match="the shard received: Object arrays cannot be loaded"):
        data.unpack(stream.getvalue())


def test_npy_files_stay_on_the_disk(tmp_path):
    for name, values in zip(
        data.NUMPY_ARRAYS, (np.zeros((5, 4, 3)), np.arange(5), np.ones((2, 4, 3)), np.arange(2)), strict=True
    ):
        np.save(tmp_path / f"{name}.npy", values.astype(np.uint8))
    found = data.load(str(tmp_path))
    assert found.input_shape == (4, 3, 1) and found.classes == 5
    assert isinstance(found.train_images, np.memmap)
    (tmp_path / "y_test.npy").unlink()
    with pytest.raises(ValueError, match=r"lacks y_test\.npy"):
        data.load(str(tmp_path))


def save_floats(folder, archive, **changes):
    """Five training and three test images of 4x3 with values around 0."""
    sets = {"x_train": RANDOM.randn(5, 4, 3), "y_train": np.arange(5), "x_test": RANDOM.randn(3, 4, 3)}
    sets = {**sets, "y_test": np.arange(3), **changes}
    if archive:
        np.savez(folder / "set.npz", **sets)
    for name, values in () if archive else sets.items():
        np.save(folder / f"{name}.npy", values)
    return sets


@pytest.mark.parametrize("archive", [True, False])
def test_arrays_of_floats_are_images_as_they_are(tmp_path, archive):
    saved = save_floats(tmp_path, archive)
    found = data.load(str(tmp_path))
    np.testing.assert_array_equal(found.train_images[..., 0], saved["x_train"])
    assert found.input_shape == (4, 3, 1) and found.image_dtype == "float32"
    assert isinstance(found.train_images, np.memmap) != archive


@pytest.mark.parametrize("archive, array", [(True, "x_test of .*set.npz"), (False, ".*/x_test.npy")])
def test_values_that_are_no_numbers_are_refused(tmp_path, monkeypatch, archive, array):
    monkeypatch.setattr(formats, "CHECKED_BYTES", 100)  # an image at a time
    for bad, shown in ((np.nan, "nan"), (np.inf, "inf"), (-1e39, "-1e\\+39")):
        images = np.zeros((3, 4, 3))
        images[2, 1, 1] = bad
        save_floats(tmp_path, archive, x_test=images)
        with pytest.raises(ValueError, match=f"^{array} holds {shown} at image 2, .*replace such values$"):
            data.load(str(tmp_path))


@given(
    arrays.arrays(
        some.sampled_from([np.uint8, np.float16, np.float32, np.float64, ">f4"]),
        some.tuples(*[some.integers(1, 4)] * 4),
        elements={"min_value": 0, "max_value": 200},
    )
)
def test_a_shard_has_bytes_as_bytes_and_floats_as_float32(images):
    shipped, _ = data.unpack(data.pack(images, np.zeros(len(images), np.int64)))
    assert shipped.dtype == (np.uint8 if images.dtype == np.uint8 else np.float32)
    np.testing.assert_array_equal(shipped, images.astype(shipped.dtype))
