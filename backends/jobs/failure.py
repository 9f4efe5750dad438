"""An error in a user's code is reported with the user's own file and line."""

import contextlib
import os
import re
import traceback
from typing import Iterator, Optional, Tuple

#: How texts of tracebacks name a place.
PLACE = re.compile(r'File "([^"]+)", line (\d+)')


class JobFailure(Exception):
    """The user's own code has failed; the message names its file and line."""


@contextlib.contextmanager
def own_code(folder: Optional[str]) -> Iterator[None]:
    """Raise JobFailure for errors that pass through a file of this folder; None for no folder."""
    try:
        yield
    except JobFailure:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # Ctrl-C is never raised on a device
        place = None if folder is None else place_in(folder, error)
        if place is None:
            raise
        raise JobFailure("%s: %s, at %s:%d" % ((type(error).__name__, _said(error)) + place)) from error


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


def _said(error: BaseException) -> str:
    """An error's message in one line: the last, where frameworks put a traceback before it.

    TensorFlow names the node of its graph behind that.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and "{{node " not in line]
    if not lines:
        return "no message"
    return lines[-1] if PLACE.search(str(error)) else lines[0]
