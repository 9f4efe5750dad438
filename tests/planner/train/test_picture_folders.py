"""Folders of pictures: what they hold, and what is said of those that cannot be trained on."""

import builtins
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from planner.train import picture_folders
from tests.mutations import MUTATIONS, damaged

CLASSES = "cat", "dog"


def picture(path: Path, value: int, mode: str = "L", size: tuple[int, int] = (4, 3)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, 0, 9)).save(path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two training pictures and a test picture of each class, of one grey level each."""
    for number, name in enumerate(CLASSES):
        picture(tmp_path / "train" / name / "a.png", 10 * number)
        picture(tmp_path / "train" / name / "b.png", 10 * number + 1)
        picture(tmp_path / "test" / name / "c.png", 10 * number + 2)
    return tmp_path


def test_grey_pictures_have_one_channel_and_labels_in_the_order_of_names(pictures: Path) -> None:
    found = picture_folders.read(str(pictures))
    assert found.input_shape == (3, 4, 1) and found.classes == 2
    assert found.train_images[:, 0, 0, 0].tolist() == [0, 1, 10, 11]
    assert (found.train_labels.tolist(), found.test_labels.tolist()) == ([0, 0, 1, 1], [0, 1])
    assert picture_folders.class_names(str(pictures)) == list(CLASSES)


def test_one_picture_in_colour_makes_all_rgb(pictures: Path) -> None:
    picture(pictures / "test" / "dog" / "d.png", 7, "RGB")
    found = picture_folders.read(str(pictures))
    assert found.input_shape == (3, 4, 3)
    assert found.train_images[-1, 0, 0].tolist() == [11, 11, 11]
    assert found.test_images[-1, 0, 0].tolist() == [7, 0, 9]


def test_a_picture_of_another_size_is_named(pictures: Path) -> None:
    picture(pictures / "test" / "cat" / "z.png", 0, size=(5, 3))
    with pytest.raises(ValueError, match=r"z\.png has 5 x 3 pixels, the first picture 4 x 3; scale all to one size"):
        picture_folders.read(str(pictures))


@pytest.mark.parametrize("keep", [0, 8, 40])
def test_a_truncated_picture_is_named(keep: int, pictures: Path) -> None:
    broken = pictures / "train" / "dog" / "a.png"
    broken.write_bytes(broken.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"dog/a\.png is damaged: [^<]*; replace it or take it out$"):
        picture_folders.read(str(pictures))


def test_parts_with_other_classes_are_named(pictures: Path) -> None:
    picture(pictures / "test" / "bird" / "a.png", 0)
    with pytest.raises(ValueError, match="the same in both; in one of them only: bird"):
        picture_folders.read(str(pictures))


def test_a_class_without_pictures_is_named(pictures: Path) -> None:
    (pictures / "test" / "cat" / "c.png").unlink()
    with pytest.raises(ValueError, match="test/cat holds no picture"):
        picture_folders.read(str(pictures))


def test_without_pillow_the_remedy_is_named(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without_pillow(name: str, *arguments: object, **options: object) -> object:
        if name == "PIL":
            raise ImportError(name)
        return importing(name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(ValueError, match=r"pip install 'edge-cluster-planner\[images\]'"):
        picture_folders.read(str(pictures))


# -- formats, modes and depths ---------------------------------------------------------------------


def added(folder: Path, name: str, image: Image.Image, **options: object) -> np.ndarray:
    """The pixels that are read of a picture after it was put beside the others."""
    image.save(folder / "train" / "cat" / name, **options)
    found = picture_folders.read(str(folder))
    return found.train_images[sorted(["a.png", "b.png", name]).index(name)]


@pytest.mark.parametrize("ending", ["bmp", "gif", "jp2", "jpeg", "jpg", "pgm", "png", "tga", "tif", "tiff", "webp"])
def test_every_format_is_used(pictures: Path, ending: str) -> None:
    pixels = added(pictures, f"n.{ending}", Image.new("L", (4, 3), 200))
    assert np.abs(pixels.astype(int) - 200).max() <= 2


def test_a_picture_needs_no_ending(pictures: Path) -> None:
    assert (added(pictures, "n", Image.new("L", (4, 3), 200), format="PNG") == 200).all()


COLOUR = (200, 100, 50)


@pytest.mark.parametrize("mode, value, ending, read", [
    ("1", 1, "png", 255), ("LA", (200, 0), "png", 200), ("RGB", COLOUR, "png", COLOUR),
    ("RGBA", (*COLOUR, 0), "png", COLOUR), ("CMYK", (55, 155, 205, 0), "tif", COLOUR),
    ("YCbCr", (129, 84, 178), "jpg", COLOUR), ("P", 1, "png", COLOUR),
])  # fmt: skip
def test_every_mode_is_read(pictures: Path, mode: str, value: object, ending: str, read: object) -> None:
    image = Image.new(mode, (4, 3), value)
    if mode == "P":
        image.putpalette([0, 0, 0, *COLOUR])
        image.info["transparency"] = b"\x00\x80"
    pixels = added(pictures, f"n.{ending}", image)
    assert pixels.shape == (3, 4, np.size(read)) and np.abs(pixels.astype(int) - read).max() <= 8


@pytest.mark.parametrize("bits, ending", [(10, "png"), (12, "tif"), (16, "png"), (16, "tif")])
def test_greys_of_more_than_8_bits_stay_apart(pictures: Path, bits: int, ending: str) -> None:
    for path in pictures.rglob("*.png"):
        Image.new("L", (8, 8)).save(path)
    ramp = np.linspace(0, 2**bits - 1, 64).astype(np.uint16).reshape(8, 8)
    pixels = added(pictures, f"n.{ending}", Image.fromarray(ramp))
    assert len(np.unique(pixels)) == 64 and (pixels.min(), pixels.max()) == (0, 255)
    assert (np.diff(pixels.ravel().astype(int)) > 0).all()


def png_of_16_bits(colour_type: int, channels: int) -> bytes:
    """4 x 3 pixels of one value. colour_type: 2 RGB, 4 grey with alpha, 6 RGB with alpha."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + struct.pack(">H", 252) * channels * 4) * 3
    header = struct.pack(">IIBBBBB", 4, 3, 16, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff_of_16_bits(photometric: int, channels: int) -> bytes:
    """An uncompressed TIFF of 4 x 3 pixels, the first value 0 and all others 1000."""
    values = struct.pack("<H", 0) + struct.pack("<H", 1000) * (12 * channels - 1)
    bits = (258, 3, channels, 8 if channels > 2 else 16)
    tags = [(256, 3, 1, 4), (257, 3, 1, 3), bits, (259, 3, 1, 1), (262, 3, 1, photometric), (273, 4, 1, 24),
            (277, 3, 1, channels), (278, 3, 1, 3), (279, 4, 1, len(values))]  # fmt: skip
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    header = b"II*\0" + struct.pack("<I", 24 + len(values)) + struct.pack("<HHHH", 16, 16, 16, 16)
    return header + bytes(8) + values + directory


def sgi_of_16_bits(compression: int) -> bytes:
    header = struct.pack(">HBBHHHH", 474, compression, 2, 3, 4, 3, 3).ljust(512, b"\0")
    return header + struct.pack(">H", 252) * 36


DEEP_COLOURS = {
    "rgb.png": png_of_16_bits(2, 3),
    "grey_alpha.png": png_of_16_bits(4, 2),
    "rgb_alpha.png": png_of_16_bits(6, 4),
    "rgb.tif": tiff_of_16_bits(2, 3),
    "rgb.ppm": b"P6 4 3 65535\n" + bytes(72),
    "rgb.sgi": sgi_of_16_bits(0),
    "packed.sgi": sgi_of_16_bits(1),
    "plain.ppm": b"P3 4 3 4095\n" + b"1 " * 36,
}


@pytest.mark.parametrize("name", DEEP_COLOURS)
def test_colours_of_16_bits_are_refused_by_name(pictures: Path, name: str) -> None:
    (pictures / "train" / "cat" / name).write_bytes(DEEP_COLOURS[name])
    with pytest.raises(ValueError, match=rf"cat/{name} has colours of 16 bits, of which Pillow reads 8; save it with"):
        picture_folders.read(str(pictures))


def test_a_jpeg_2000_of_deep_colours_is_refused_by_name(pictures: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (4, 3), COLOUR).save(stream, "JPEG2000")
    content = bytearray(stream.getvalue())
    at = content.index(b"\xff\x4f\xff\x51") + 42
    content[at : at + 9 : 3] = b"\x0f" * 3
    (pictures / "train" / "cat" / "n.jp2").write_bytes(content)
    with pytest.raises(ValueError, match=r"cat/n\.jp2 has colours of 16 bits"):
        picture_folders.read(str(pictures))


def test_colours_of_5_and_6_bits_are_read(pictures: Path) -> None:
    pixels = struct.pack("<H", 0b1111100000000000) * 4
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
    header = struct.pack("<IiiHHIIiiII", 40, 4, 3, 1, 16, 3, 24, 0, 0, 0, 0) + masks
    (pictures / "train" / "cat" / "n.bmp").write_bytes(
        b"BM" + struct.pack("<IHHI", 66 + 24, 0, 0, 66) + header + pixels * 3
    )
    assert picture_folders.read(str(pictures)).train_images[2, 0, 0].tolist() == [255, 0, 0]


def test_deep_greys_whose_zero_is_white_are_refused_by_name(pictures: Path) -> None:
    file = pictures / "train" / "cat" / "n.tif"
    file.write_bytes(tiff_of_16_bits(1, 1))
    assert picture_folders.read(str(pictures)).train_images[2, 0, :2, 0].tolist() == [0, 250]
    file.write_bytes(tiff_of_16_bits(0, 1))
    with pytest.raises(ValueError, match=r"cat/n\.tif holds deep greys of which zero is white; save it with zero as"):
        picture_folders.read(str(pictures))


def test_a_hot_pixel_that_fades_all_others_is_said(pictures: Path) -> None:
    for path in pictures.rglob("*.png"):
        Image.new("L", (64, 64)).save(path)
    greys, notes = np.arange(4096, dtype=np.uint16).reshape(64, 64), []
    Image.fromarray(greys).save(pictures / "train" / "cat" / "a.png")
    picture_folders.read(str(pictures), notes.append)
    assert notes == []
    greys[5, 5] = 65535
    Image.fromarray(greys).save(pictures / "train" / "cat" / "a.png")
    picture_folders.read(str(pictures), notes.append)
    assert notes == [
        f"{pictures}: 1 of 4096 deep greys are above 4095, up to 65535, by which all are scaled, so that the others "
        "keep 16 greys; mend such pixels if they are faults of the camera"
    ]


@pytest.mark.parametrize("values, reason", [
    (np.full((3, 4), 0.5, np.float32), r"n\.tif holds floats"),
    (np.full((3, 4), 70000, np.int32), r"n\.tif holds whole numbers from 70000 to 70000"),
])  # fmt: skip
def test_values_whose_white_is_unknown_are_refused_by_name(pictures: Path, values: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        added(pictures, "n.tif", Image.fromarray(values))


def test_pictures_are_turned_as_their_camera_was_held(pictures: Path) -> None:
    lying = Image.new("L", (3, 4), 9)
    exif = Image.Exif()
    exif[0x0112] = 6
    assert added(pictures, "n.png", lying, exif=exif).shape == (3, 4, 1)


# -- what is left out, and what is refused ---------------------------------------------------------


def test_what_is_left_out_is_counted_and_named(pictures: Path) -> None:
    (pictures / "train" / "cat" / "notes.txt").write_text("no picture")
    (pictures / "train" / "cat" / "inner").mkdir()
    (pictures / "test" / "labels.csv").write_text("a,b")
    (pictures / "test" / ".DS_Store").write_bytes(b"\0")
    notes: list[str] = []
    picture_folders.read(str(pictures), notes.append)
    assert notes == [
        f"{pictures}: 3 left out, for they are no pictures in a class's folder: "
        "train/cat/inner, train/cat/notes.txt, test/labels.csv"
    ]


def test_the_first_of_several_frames_is_used_and_said(pictures: Path) -> None:
    frames = [Image.new("L", (4, 3), value) for value in (200, 10)]
    frames[0].save(pictures / "test" / "cat" / "n.gif", save_all=True, append_images=frames[1:])
    notes: list[str] = []
    assert (picture_folders.read(str(pictures), notes.append).test_images[1] == 200).all()
    assert notes == [f"{pictures}: 1 pictures of several frames, of which the first is used: test/cat/n.gif"]


@pytest.mark.parametrize("side", [20_000, 60_000])
def test_a_picture_that_fills_the_memory_is_refused_by_its_header(pictures: Path, side: int) -> None:
    small = io.BytesIO()
    Image.new("1", (4, 3)).save(small, "BMP")
    huge = bytearray(small.getvalue())
    huge[18:26] = struct.pack("<ii", side, side)
    (pictures / "train" / "dog" / "n.bmp").write_bytes(huge)
    with pytest.raises(ValueError, match=r"dog/n\.bmp is too large: it has more than 178,956,970 pixels; scale"):
        picture_folders.read(str(pictures))


FORMATS = {ending: Image.new("L", (4, 3), 200) for ending in ("bmp", "gif", "jpg", "png", "ppm", "tif", "webp")}


@MUTATIONS
@given(st.data())
def test_a_damaged_picture_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, drawn: st.DataObject) -> None:
    ending = drawn.draw(st.sampled_from(sorted(FORMATS)))
    whole = io.BytesIO()
    FORMATS[ending].save(whole, Image.registered_extensions()[f".{ending}"])
    folder = tmp_path_factory.getbasetemp() / "damaged_pictures"
    for part in picture_folders.PARTS:
        picture(folder / part / "cat" / "a.png", 10)
    broken = folder / "test" / "cat" / f"b.{ending}"
    broken.write_bytes(drawn.draw(damaged(whole.getvalue())))
    try:
        picture_folders.read(str(folder))
    except ValueError as error:
        assert str(broken) in str(error) and "\n" not in str(error)
    finally:
        broken.unlink()
