"""A job's error is reported with its place: the user's own line, or else that of a package.

A package raises one where it cannot use what the user's code has given it.
"""

import contextlib
import os
import re
import traceback
from typing import Iterator, Optional, Tuple

#: How texts of tracebacks name a place.
PLACE = re.compile(r'File "([^"]+)", line (\d+)')

BOLD = re.compile(r"\x1b\[\d*m")
#: Folders of installed packages, and the one with this program's, which may be installed as well.
INSTALLED = ("site-packages", "dist-packages")
OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
#: What errors say of a device that is short of memory, or whose GPU fails.
DEVICE_FAULTS = ("out of memory", "CUDA error", "OOM when allocating")
#: A GPU says it of values that its program checks. The error comes from whatever line awaits it.
CHECKED_ON_GPU = "device-side assert"
OUT_OF_RANGE = (
    "%s gave the GPU a value that is out of range, such as a label beyond the classes; to see which, train without "
    'the GPU: CUDA_VISIBLE_DEVICES = "" in [devices.NAME.environment] of the fleet file'
)


class JobFailure(Exception):
    """The user's own code has failed, or has given what cannot be used.

    The message names file and line, or what the job must give instead.
    """


def refusal(reason: object) -> JobFailure:
    """What is raised for a job of the wrong form."""
    return JobFailure("the job cannot be used: %s" % reason)


@contextlib.contextmanager
def own_code(folder: str, function: str) -> Iterator[None]:
    """Raise JobFailure for errors that pass through a file of this folder.

    Those that an installed package raises count too: the job has handed it what it cannot use,
    such as a label beyond the classes. No line of the user's is known then, but ``function``, as
    the user named it: it gave what was used. Faults of the device are passed on as they are.
    """
    try:
        yield
    except JobFailure:
        raise
    except (Exception, SystemExit) as error:
        if CHECKED_ON_GPU in str(error):
            raise refusal(OUT_OF_RANGE % function) from error
        own = place_in(folder, error)
        place = own or place_in_package(error)
        if place is None or is_of_device(error):
            raise
        said = _said(error) if own else "%s, with what %s gave" % (_said(error), function)
        raise JobFailure("%s: %s, at %s:%d" % ((type(error).__name__, said) + place)) from error


def place_in(folder: str, error: BaseException) -> Optional[Tuple[str, int]]:
    """The innermost file of the folder that an error passed through, and the line; None for none.

    The error's own text counts too: TensorFlow names the lines of functions that it has traced.
    """
    places = [(frame[0], int(frame[1] or 0)) for frame in traceback.extract_tb(error.__traceback__)]
    places += [(path, int(line)) for path, line in PLACE.findall(str(error))]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, int(error.lineno or 0)))
    start = os.path.join(os.path.realpath(folder), "")
    own = [(path, line) for path, line in places if os.path.isabs(path) and os.path.realpath(path).startswith(start)]
    return own[-1] if own else None


def place_in_package(error: BaseException) -> Optional[Tuple[str, int]]:
    """The file of an installed package, and the line, that raised an error; None for others.

    Files and connections fail with the device, and not because of what a package was given.
    """
    if isinstance(error, OSError):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    path, line = (frames[-1][0], int(frames[-1][1] or 0)) if frames else ("", 0)
    is_installed = any(part in INSTALLED for part in path.split(os.sep)) and not path.startswith(OURS)
    return (path, line) if is_installed else None


def is_of_device(error: BaseException) -> bool:
    """Whether the device is at fault, which may be short of memory for any model."""
    return isinstance(error, MemoryError) or any(fault in str(error) for fault in DEVICE_FAULTS)


def _said(error: BaseException) -> str:
    """An error's message in one line: the last, where frameworks put a traceback before it.

    TensorFlow names the node of its graph behind that; Keras first says what it called, and then in
    bold why that failed.
    """
    text = BOLD.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip() and "{{node " not in line]
    if not lines:
        return "no message"
    if not PLACE.search(text):
        return " ".join(lines[:2])
    kind = type(error).__name__ + ": "  # which a traceback of a worker process has as well
    return lines[-1][len(kind) :] if lines[-1].startswith(kind) else lines[-1]
