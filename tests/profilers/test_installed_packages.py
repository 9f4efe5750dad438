"""Versions of packages are read without importing them."""

from importlib import metadata

from profilers.installed_packages import versions


def test_installed_packages_have_their_version_and_others_none() -> None:
    assert versions(["numpy", "no-such-package"]) == {"numpy": metadata.version("numpy"), "no-such-package": None}
