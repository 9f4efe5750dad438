"""The versions of packages that this Python has installed."""

import importlib
from typing import Any, Dict, Optional, Sequence


def versions(names: Sequence[str]) -> Dict[str, Optional[str]]:
    """The version of each package by its name on the package index; None where it is absent."""
    return {name: _version(name) for name in names}


def _version(name: str) -> Optional[str]:
    try:
        metadata: Any = importlib.import_module("importlib.metadata")
    except ImportError:  # before Python 3.8
        return _by_setuptools(name)
    try:
        return str(metadata.version(name))
    except metadata.PackageNotFoundError:
        return None


def _by_setuptools(name: str) -> Optional[str]:
    try:
        resources: Any = importlib.import_module("pkg_resources")
    except ImportError:
        return None
    try:
        return str(resources.get_distribution(name).version)
    except (resources.DistributionNotFound, resources.RequirementParseError):
        return None
