"""Fixtures for the whole suite."""

import signal
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent

# A property holds however long a busy machine takes to try it.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


def pytest_configure() -> None:
    """Ctrl-C works in whatever the tests start: a shell that starts them in the background has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements by others, beside a development checkout; tests that need them skip elsewhere."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no recorded data beside this checkout ({folder.name} not found)")
    return folder
