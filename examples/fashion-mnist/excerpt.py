"""Cut a small balanced excerpt out of Fashion-MNIST's files: python excerpt.py SOURCE TARGET."""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np

from backends.data.formats import IDX_IMAGES, IDX_LABELS, read_idx

PER_CLASS = {"train": 300, "t10k": 100}


def main(source: Path, target: Path) -> None:
    for part, per_class in PER_CLASS.items():
        images = read_idx(str(source / f"{part}-images-idx3-ubyte.gz"), IDX_IMAGES)[..., 0]
        labels = read_idx(str(source / f"{part}-labels-idx1-ubyte.gz"), IDX_LABELS).astype(np.uint8)
        chosen = np.sort(np.concatenate([np.flatnonzero(labels == label)[:per_class] for label in range(10)]))
        write(target / f"{part}-images-idx3-ubyte.gz", IDX_IMAGES, images[chosen])
        write(target / f"{part}-labels-idx1-ubyte.gz", IDX_LABELS, labels[chosen])


def write(path: Path, magic: int, values: np.ndarray) -> None:
    header = struct.pack(f">{1 + values.ndim}I", magic, *values.shape)
    # No time stamp, so that the same excerpt has the same bytes.
    path.write_bytes(gzip.compress(header + values.tobytes(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
