"""Sensors and counters read /proc and /sys through a file tree.

It is the machine's own, or another one, recorded or made up, that ``PLANNER_SYSFS_ROOT`` names.
"""

import glob
import os
from typing import List, Optional

ROOT_VARIABLE = "PLANNER_SYSFS_ROOT"


class Unavailable(Exception):
    """A quantity cannot be read here; the message tells the operator why."""


def fail(reason: str) -> float:
    """A reader of a quantity that cannot be read. Raises Unavailable."""
    raise Unavailable(reason)


class FileTree:
    """Files below ``root``; paths are those of the real machine without the first slash."""

    def __init__(self, root: Optional[str] = None) -> None:
        self.root = str(root or os.environ.get(ROOT_VARIABLE) or "/")

    @property
    def is_own(self) -> bool:
        """Whether this is the machine's own tree."""
        return os.path.abspath(self.root) == "/"

    def path(self, name: str) -> str:
        """The path of a file on this machine."""
        return os.path.join(self.root, name.lstrip("/"))

    def text(self, name: str) -> str:
        """A file's text without surrounding space and NULs. Raises Unavailable."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read().decode("utf-8", "replace").strip("\0 \n\t")
        except FileNotFoundError:
            raise Unavailable("/%s does not exist" % name) from None
        except PermissionError:
            raise Unavailable("/%s may be read by root only" % name) from None
        except OSError as error:
            raise Unavailable("/%s cannot be read: %s" % (name, error.strerror)) from None

    def first_text(self, *names: str) -> str:
        """The text of the first of these files that can be read and is not empty, else ""."""
        for name in names:
            try:
                text = self.text(name)
            except Unavailable:
                continue
            if text:
                return text
        return ""

    def number(self, name: str) -> int:
        """The integer that a file holds. Raises Unavailable."""
        text = self.text(name)
        try:
            return int(text)
        except ValueError:
            raise Unavailable("/%s holds %r instead of a number" % (name, text[:40])) from None

    def glob(self, pattern: str) -> List[str]:
        """Names that match a pattern, sorted, relative to the root."""
        found = glob.glob(os.path.join(glob.escape(self.root), pattern))
        return sorted(os.path.relpath(path, self.root) for path in found)
