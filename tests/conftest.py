"""Fixtures for the whole suite."""

import functools
import signal
from pathlib import Path

import hypothesis
import pytest

from tests.installed import mark_needs

ROOT = Path(__file__).resolve().parent.parent

# A property holds however long a busy machine takes to try it; each run draws other examples.
hypothesis.settings.register_profile("brief", deadline=None, max_examples=50)
hypothesis.settings.load_profile("brief")


def pytest_configure() -> None:
    """Ctrl-C and a terminal that hangs up work in whatever the tests start.

    A shell that starts the tests in the background, and nohup, have them ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


#: Files of tests that take half a minute or more, the longest first.
LONGEST = (
    "e2e/test_frameworks",
    "e2e/test_ssh_end_to_end",
    "planner/run/test_supervisor",
)
#: Folders of tests that wait for processes for seconds, the longest first.
WAITING = ("e2e", "planner/train", "planner/profile", "backends/peers", "backends/profiling", "planner/agents")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark_needs(item)
    items[:] = longest_first(items)


def longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that take longest come first, so that none of them is left alone at the end.

    A process of xdist is given three tests at a time. Two others follow each of the longest,
    so that no process is given two of those.
    """
    ranked = sorted(items, key=lambda item: (rank(item.path, LONGEST), rank(item.path, WAITING)))
    longest = [item for item in ranked if rank(item.path, LONGEST) < len(LONGEST)]
    others = ranked[len(longest) :]
    spaced = []
    for item in longest:
        spaced += [item, *others[-2:]]
        del others[-2:]
    return [*spaced, *others]


@functools.cache
def rank(path: Path, names: tuple[str, ...]) -> int:
    """The place of the first of these names that the file's path begins with."""
    file = path.relative_to(ROOT / "tests").as_posix()
    return next((place for place, name in enumerate(names) if file.startswith(name)), len(names))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real measurements by others, beside a development checkout.

    Elsewhere, tests that need them are skipped.
    """
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no recorded data beside this checkout ({folder.name} not found)")
    return folder
