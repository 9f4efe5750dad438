"""Errors of an exchange are told from those of a model; torch has no class of its own for them."""

import contextlib
from typing import Iterator

from backends.frameworks.process_group import BROKEN, GroupError

#: Parts of the messages of errors that come from the exchange and not from the model.
_SOURCES = ("gloo", "NCCL", "ProcessGroup", "c10d", "TCPStore", "socket")


@contextlib.contextmanager
def as_group_error(what: str = BROKEN) -> Iterator[None]:
    """Raise GroupError for an error of the exchange."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        if not any(source in text for source in _SOURCES):
            raise
        raise GroupError("%s: %s" % (what, _first_sentence(text))) from error


def _first_sentence(text: str) -> str:
    """The part of an error of torch that tells what happened: without its place in the source."""
    line = text.strip().splitlines()[0]
    if line.startswith("["):
        line = line.partition("] ")[2] or line
    return line.partition(". ")[0]
