"""Fixtures for the whole suite."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements by others, beside a development checkout; tests that need them skip elsewhere."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no recorded data beside this checkout ({folder.name} not found)")
    return folder
