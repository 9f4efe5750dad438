"""Files that `planner export` has written carry a mark, so that no project takes them along."""

from pathlib import Path

#: In the metadata of a file, else behind its content.
MARK = b"Written by `planner export`"
#: Endings of files with weights; the Python that export may write beside them is small.
ENDINGS = (".pth", ".safetensors", ".pt", ".onnx", ".keras", ".h5")
#: A mark is within so many bytes of one of the ends.
_SEEN = 1 << 16
_END_OF_ZIP, _END_OF_ZIP_BYTES = b"PK\x05\x06", 22


def marked(content: bytes) -> bytes:
    """The content of a file with the mark, where it has none: a zip archive gets it as its comment.

    Others get it behind their content, as HDF5 allows.
    """
    if has_mark(content):
        return content
    if content[-_END_OF_ZIP_BYTES:].startswith(_END_OF_ZIP):
        return content[:-2] + len(MARK).to_bytes(2, "little") + MARK
    return content + MARK


def has_mark(content: bytes) -> bool:
    """Whether an export has written it."""
    return MARK in content[:_SEEN] or MARK in content[-_SEEN:]


def is_exported(path: Path) -> bool:
    """Whether a file of weights carries the mark. Raises OSError."""
    if not path.name.endswith(ENDINGS):
        return False
    with path.open("rb") as stream:
        first = stream.read(_SEEN)
        stream.seek(max(0, path.stat().st_size - _SEEN))
        return MARK in first or MARK in stream.read()
