"""One picture is read with Pillow into grey or RGB bytes, whatever its format, mode and depth."""

import os
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
    except _UnknownRange as error:
        raise ValueError(f"{path} {error}; save it with 8 or 16 bits") from None
    except Exception as error:  # noqa: BLE001 - Pillow raises whatever damage makes it
        ending = os.path.splitext(path)[1].lower()
        if type(error).__name__ == "UnidentifiedImageError" and ending not in endings(image_module):
            return None
        raise ValueError(f"{path} is damaged: {str(error) or type(error).__name__}") from None


def as_bytes(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """Deep grey pictures as uint8, all by one scale: the bits that the deepest value of them takes.

    So greys of 10 or 12 bits in files of 16 bits stay apart as far as a byte can tell.
    """
    deepest = max((int(pixels.max()) for pixels in pictures if pixels.dtype == np.uint16), default=0)
    shift = max(0, deepest.bit_length() - 8)
    return [(pixels >> shift).astype(np.uint8) if pixels.dtype == np.uint16 else pixels for pixels in pictures]


class _UnknownRange(ValueError):
    """Pixels of which nobody says which value is white."""


def _pixels(picture: Any) -> np.ndarray:
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(picture)
    if turned.mode == "F":
        raise _UnknownRange("holds floats, and which of them is white is not known")
    if turned.mode.startswith("I"):
        values = np.asarray(turned).astype(np.int64)
        if values.min() < 0 or values.max() > DEEPEST:
            raise _UnknownRange(f"holds whole numbers from {values.min()} to {values.max()}")
        return values.astype(np.uint16)[..., None]
    if turned.mode in GREY:
        return np.asarray(turned.convert("L"), np.uint8)[..., None]
    return np.asarray(turned.convert("RGB"), np.uint8)
