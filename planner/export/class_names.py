"""Names of classes come from the operator, from the data set, or are numbers."""

from pathlib import Path

from planner.errors import ExportError
from planner.train import picture_folders
from profilers import text_files

#: In the binary version of CIFAR-10, a name a line.
CIFAR_NAMES = "batches.meta.txt"


def class_names(given: str | None, data: str, count: int) -> tuple[str, ...]:
    """A name for each of ``count`` outputs.

    given: a file with a name a line, or names with commas between them.
    data: the directory of the data set; names in it are used where there are as many.
    Raises ExportError where ``given`` is not as many names.
    """
    if given is None:
        found = _in_data(data)
        return found if len(found) == count else tuple(map(str, range(count)))
    path = Path(given)
    if not path.is_file() and ("," not in given or path.suffix == ".txt"):
        raise ExportError(f"--classes {given}: no such file; give a file with a name a line, or names as a,b,c")
    names = _lines(path) if path.is_file() else tuple(name.strip() for name in given.split(","))
    if len(names) != count or not all(names):
        raise ExportError(f"--classes {given}: {len([*filter(None, names)])} names, the model has {count} outputs")
    return names


def _in_data(directory: str) -> tuple[str, ...]:
    if (Path(directory) / CIFAR_NAMES).is_file():
        return _lines(Path(directory) / CIFAR_NAMES)
    if not picture_folders.present(directory):
        return ()
    try:
        return tuple(picture_folders.class_names(directory))
    except (ValueError, OSError) as error:
        raise ExportError(str(error)) from error


def _lines(path: Path) -> tuple[str, ...]:
    try:
        text = text_files.read_text(str(path))
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot read {path}: {error}; give a text file in UTF-8 with a name a line") from error
    return tuple(line.strip() for line in text.strip().split("\n"))
