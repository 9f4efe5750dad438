"""Frameworks by their names."""

import pytest

from backends.frameworks import base


def test_an_unknown_framework_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="unknown framework 'troch'; known: tensorflow, torch"):
        base.framework("troch")
