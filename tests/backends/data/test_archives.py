"""An archive that says it unpacks to gigabytes is refused before it does."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest

from backends.data import archives, formats
from backends.data.archives import open_npz
from backends.training import checkpoint


def declaring(size, compressed=True):
    """An archive of one array whose directory says that it has so many bytes."""
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, meta=np.zeros(1000))
    content = bytearray(stream.getvalue())
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", size)
    return bytes(content)


@pytest.mark.parametrize("compressed", [True, False])
def test_an_array_that_unpacks_to_gigabytes_is_refused_by_its_declared_size(tmp_path, compressed):
    content = declaring(3 << 30, compressed)
    with pytest.raises(ValueError, match="say that they unpack to 3221225472; give it uncompressed"):
        open_npz(io.BytesIO(content))
    with pytest.raises(ValueError, match=r"x\.npz: its \d+ bytes say that they unpack to 3221225472"):
        formats.read_npz(io.BytesIO(content), "x.npz", ("meta",))
    (tmp_path / "checkpoint.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged or not a checkpoint: its \d+ bytes say"):
        checkpoint.peek(str(tmp_path / "checkpoint.npz"))


def test_parts_that_are_small_alone_are_added(monkeypatch):
    monkeypatch.setattr(archives, "FREE_BYTES", 100_000)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.npy", bytes(40_000))
    with pytest.raises(ValueError, match="unpack to 120000"):
        open_npz(stream)


def test_small_and_honest_archives_are_read():
    stream = io.BytesIO()
    np.savez_compressed(stream, zeros=np.zeros(1_000_000))
    with open_npz(stream) as arrays:
        assert arrays["zeros"].shape == (1_000_000,)


@pytest.mark.parametrize("rows, said", [(1 << 30, "say that they unpack to 841813590016"), (1, "expected 800 bytes")])
def test_a_gzipped_image_set_is_unpacked_no_further_than_it_declares(tmp_path, rows, said):
    header = struct.pack(">IIII", formats.IDX_IMAGES, rows, 28, 28)
    (tmp_path / "x.gz").write_bytes(gzip.compress(header + bytes(50_000_000)))
    with pytest.raises(ValueError, match=rf"x\.gz .*{said}") as refused:
        formats.read_idx(str(tmp_path / "x.gz"), formats.IDX_IMAGES)
    assert rows > 1 or "found 801" in str(refused.value)


@pytest.mark.parametrize("cut", [5, 16, 20])
def test_a_gzip_file_of_several_members_is_read(tmp_path, cut):
    content = struct.pack(">IIII", formats.IDX_IMAGES, 4, 2, 2) + bytes(range(16))
    (tmp_path / "x.gz").write_bytes(gzip.compress(content[:cut]) + gzip.compress(content[cut:]) + gzip.compress(b""))
    assert formats.read_idx(str(tmp_path / "x.gz"), formats.IDX_IMAGES).ravel().tolist() == list(range(16))


def test_the_state_of_an_optimizer_that_unpacks_to_gigabytes_is_refused():
    torch = pytest.importorskip("torch")
    from backends.pytorch.own_optimizer import TorchOptimizer

    stream = io.BytesIO()
    torch.save({"optimizer": {}, "scheduler": None}, stream)
    content = bytearray(stream.getvalue())
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 3 << 30)
    with pytest.raises(ValueError, match=r"optimizer cannot be read: its \d+ bytes say that they unpack to 32"):
        TorchOptimizer.set_state(None, np.frombuffer(bytes(content), np.uint8))
