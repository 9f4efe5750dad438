"""One picture is read with Pillow into grey or RGB bytes, whatever its format, mode and depth."""

import os
import re
import warnings
from typing import Any, NamedTuple

import numpy as np

from profilers.regular_file import open_regular

#: Formats that Pillow knows by name but that hold no pixels which it reads itself.
WITHOUT_PIXELS = frozenset({"BUFR", "EPS", "GRIB", "HDF5", "MPEG", "WMF"})
#: JPEG with further pictures of the same scene: cameras write them, and nobody calls it animated.
OF_CAMERAS = "MPO"
GREY = ("1", "L", "LA", "La")
DEEPEST = 65535
SAVE = "save it with 8 or 16 bits"
#: Pillow's names of layouts with 16 bits a value, unlike those with 16 a pixel, and of the decoders
#: whose second argument is the greatest value.
_DEEP = re.compile(r";16[BLN]")
PPM = ("ppm", "ppm_plain")
#: A TIFF's tag that tells what zero is, and its value where that is white.
PHOTOMETRIC, WHITE_IS_ZERO = 262, 0
#: No more than this share of the pixels are outliers.
FEW = 1e-3


class Picture(NamedTuple):
    """pixels: (height, width, 1 or 3), uint8, or uint16 of a grey picture of more than 8 bits."""

    pixels: np.ndarray
    has_more_frames: bool


def import_pillow(directory: str) -> Any:
    """The module PIL.Image with all its formats. Raises ValueError with the remedy."""
    try:
        from PIL import Image
    except ImportError:
        raise ValueError(
            f"{directory} holds pictures, and Pillow is not installed here: pip install 'edge-cluster-planner[images]'"
        ) from None
    Image.init()
    return Image


def endings(image_module: Any) -> frozenset[str]:
    """Endings of the files that must be pictures, each with its dot."""
    known = image_module.registered_extensions().items()
    return frozenset(ending for ending, name in known if name in image_module.OPEN and name not in WITHOUT_PIXELS)


def read(image_module: Any, path: str) -> Picture | None:
    """The first frame of a picture as its camera was held; None for a file that is no picture.

    Transparency is dropped. Raises ValueError that names the file, and what it is not read for.
    """
    formats = [name for name in image_module.OPEN if name not in WITHOUT_PIXELS]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Pillow: what it reads all the same
            with open_regular(path) as file, image_module.open(file, formats=formats) as picture:
                several = getattr(picture, "is_animated", False) and picture.format != OF_CAMERAS
                return Picture(_pixels(picture), several)
    except image_module.DecompressionBombError:
        most = 2 * image_module.MAX_IMAGE_PIXELS
        raise ValueError(f"{path} is too large: it has more than {most:,} pixels; scale it down") from None
    except _UnreadValues as error:
        raise ValueError(f"{path} {error}") from None
    except Exception as error:  # noqa: BLE001 - Pillow raises whatever damage makes it
        reason, ending = str(error) or type(error).__name__, os.path.splitext(path)[1].lower()
        if type(error).__name__ == "UnidentifiedImageError":
            if ending not in endings(image_module):
                return None
            reason = f"it holds no picture in spite of its {ending}"  # Pillow's words name no file
        raise ValueError(f"{path} is damaged: {reason}; replace it or take it out") from None


def as_bytes(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """Deep grey pictures as uint8, all by one scale: the bits that the deepest value of them takes.

    So greys of 10 or 12 bits in files of 16 bits stay apart as far as a byte can tell.
    """
    deepest = max((int(pixels.max()) for pixels in pictures if pixels.dtype == np.uint16), default=0)
    shift = max(0, deepest.bit_length() - 8)
    return [(pixels >> shift).astype(np.uint8) if pixels.dtype == np.uint16 else pixels for pixels in pictures]


def faded(pictures: list[np.ndarray]) -> str | None:
    """What few very bright pixels do to the others by the scale of ``as_bytes``, if anything."""
    deep = [pixels for pixels in pictures if pixels.dtype == np.uint16]
    deepest = max((int(pixels.max()) for pixels in deep), default=0)
    bright = sum(int(np.count_nonzero(pixels > deepest >> 4)) for pixels in deep)
    total = sum(pixels.size for pixels in deep)
    if deepest.bit_length() <= 8 or bright > FEW * total:
        return None
    return (
        f"{bright} of {total} deep greys are above {deepest >> 4}, up to {deepest}, by which all are scaled, so that "
        "the others keep 16 greys; mend such pixels if they are faults of the camera"
    )


class _UnreadValues(ValueError):
    """Pixels that would not be read as they are, with the remedy."""


def _pixels(picture: Any) -> np.ndarray:
    from PIL import ImageOps

    if _is_cut_to_bytes(picture):
        raise _UnreadValues("has colours of 16 bits, of which Pillow reads 8; save it with 8 bits a colour")
    if picture.mode.startswith("I") and getattr(picture, "tag_v2", {}).get(PHOTOMETRIC) == WHITE_IS_ZERO:
        raise _UnreadValues("holds deep greys of which zero is white; save it with zero as black")
    turned = ImageOps.exif_transpose(picture)
    if turned.mode == "F":
        raise _UnreadValues(f"holds floats, and which of them is white is not known; {SAVE}")
    if turned.mode.startswith("I"):
        values = np.asarray(turned).astype(np.int64)
        if values.min() < 0 or values.max() > DEEPEST:
            raise _UnreadValues(f"holds whole numbers from {values.min()} to {values.max()}; {SAVE}")
        return values.astype(np.uint16)[..., None]
    if turned.mode in GREY:
        return np.asarray(turned.convert("L"), np.uint8)[..., None]
    return np.asarray(turned.convert("RGB"), np.uint8)


def _is_cut_to_bytes(picture: Any) -> bool:
    """Whether Pillow keeps the high byte only of each value, as it does beside plain deep greys."""
    if picture.mode.startswith(("I", "F")):
        return False
    if picture.format == "JPEG2000":
        return _jpeg_2000_bits(picture.fp) > 8
    return any(
        tile[0] == "SGI16" or _DEEP.search(str(tile[3])) is not None or (tile[0] in PPM and tile[3][1] > 255)
        for tile in picture.tile
    )


def _jpeg_2000_bits(file: Any) -> int:
    """The bits of a value, by the header of the code stream; 0 where it is not found."""
    place = file.tell()
    file.seek(0)
    _, _, header = file.read(1 << 16).partition(b"\xff\x4f\xff\x51")
    file.seek(place)
    return (header[38] & 0x7F) + 1 if len(header) > 38 else 0
