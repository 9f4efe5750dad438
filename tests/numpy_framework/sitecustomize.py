"""In a process that has this folder on its path, the framework called torch is in numpy.

An agent starts in a tenth of a second then, and not in the seconds that torch takes.
"""

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


class Finder(importlib.abc.MetaPathFinder):
    """Finds ``backend.py`` of this folder under the name of torch's backend."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "backends.pytorch":
            return None
        return importlib.util.spec_from_file_location(fullname, Path(__file__).with_name("backend.py"))


sys.meta_path.insert(0, Finder())
