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
    """Ctrl-C works in whatever the tests start.

    A shell that starts the tests in the background has it ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: Folders whose tests wait longest for processes, the longest first.
WAITING = ("e2e", "planner/audit", "planner/train", "planner/profile", "backends/peers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, so that none of them is left alone at the end."""

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(ROOT / "tests").as_posix()
        return next((rank for rank, name in enumerate(WAITING) if folder.startswith(name)), len(WAITING))

    items.sort(key=place)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements by others, beside a development checkout.

    Elsewhere, tests that need them are skipped.
    """
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no recorded data beside this checkout ({folder.name} not found)")
    return folder
