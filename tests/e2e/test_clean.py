"""What runs leave on devices is removed over real SSH servers, but not from under a run."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import SLOWDOWNS
from tests.running import Command, gone, plan_file, run, until

FIRST, SECOND = SLOWDOWNS
LAUNCH = ("launch", "plan.json", "--project", "project", "--", "python", "train.py")
#: A user's script that leaves a file and then goes on for ever.
SCRIPT = """
import time
open("net.pt", "w").write("weights")
print("trained", flush=True)
time.sleep(100_000)
"""


@pytest.fixture
def launched(ssh_fleet: Path) -> Iterator[Command]:
    """A script that runs on the first device, as long as the test."""
    for name in SLOWDOWNS:
        assert run(ssh_fleet, "trust", "--yes", name, HOME=str(ssh_fleet)).popen.returncode == 0
    plan_file(ssh_fleet / "plan.json", "cipher", (FIRST,), 10, fingerprint="none")
    (ssh_fleet / "project").mkdir()
    (ssh_fleet / "project" / "train.py").write_text(SCRIPT)
    command = Command(ssh_fleet, *LAUNCH, HOME=str(ssh_fleet))
    yield command
    command.popen.kill()
    command.popen.wait()


def cleaned(folder: Path) -> dict[str, list[str]]:
    """The kinds of what was removed, by device."""
    command = run(folder, "clean", "--yes", "--json", HOME=str(folder), XDG_CACHE_HOME=str(folder / "here"))
    assert command.popen.returncode == 0, command.errors
    removed = json.loads(command.output)["removed"]
    return {name: [entry.partition("-")[0] for entry in entries] for name, entries in removed.items()}


def test_a_run_keeps_what_it_uses_and_nothing_is_left_after_it(ssh_fleet: Path, launched: Command) -> None:
    caches = {name: ssh_fleet / f"cache-{name}" / "planner" for name in SLOWDOWNS}
    until(lambda: list(caches[FIRST].glob("project-*/net.pt")), lambda: launched.errors)
    caches[SECOND].mkdir(parents=True, exist_ok=True)
    for cache in caches.values():
        (cache / "data-0123456789abcdef.npz").write_text("images")
    assert cleaned(ssh_fleet) == {"this machine": [], FIRST: ["data"], SECOND: ["data"]}
    assert list(caches[FIRST].glob("project-*/net.pt"))
    assert not caches[SECOND].exists()
    launched.popen.send_signal(signal.SIGINT)
    launched.ended()
    gone(ssh_fleet)
    assert {*cleaned(ssh_fleet)[FIRST]} == {"file", "project"}
    assert not any(cache.exists() for cache in caches.values())
    assert (ssh_fleet / "project" / "train.py").exists()
