"""What brings checkpoints home, when a disk is full and when its way there is lost."""

from pathlib import Path
from typing import Any

import pytest

from planner.errors import DeviceLostError
from planner.paths import RunFolder
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter


class Carrier:
    """An agent on the server's device."""

    def __init__(self, content: bytes | Exception) -> None:
        self.content = content
        self.closed = False

    def fetch(self, path: str) -> bytes:
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def close(self) -> None:
        self.closed = True


class Device:
    """A crew with one device, on which these agents are to be had."""

    def __init__(self, *carriers: Carrier) -> None:
        self.left = list(carriers)

    def another(self, name: str) -> Carrier:
        return self.left.pop(0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def courier(folder: RunFolder, tmp_path: Path, *carriers: Carrier) -> CheckpointFetcher:
    crew: Any = Device(*carriers)
    return CheckpointFetcher(crew, "tx2", folder, None, EventReporter(tmp_path / "events", lambda *_: None))


def test_a_full_disk_here_costs_no_agent(folder: RunFolder, tmp_path: Path) -> None:
    only = Carrier(b"weights")
    bringing = courier(folder, tmp_path, only)
    bringing.bring("there.npz")  # the run folder is not there to write into
    bringing.wait()
    assert not bringing.home and "there.npz on tx2" in bringing.unsaved
    folder.path.mkdir()
    bringing.finish()
    assert bringing.home and folder.checkpoint.read_bytes() == b"weights"
    assert bringing.agent is only and not only.closed


def test_an_agent_that_is_lost_is_closed_and_replaced(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    lost, other = Carrier(DeviceLostError("tx2: gone")), Carrier(b"weights")
    bringing = courier(folder, tmp_path, lost, other)
    bringing.bring("there.npz")
    bringing.wait()
    assert lost.closed and not bringing.home
    bringing.finish()
    assert bringing.agent is other and bringing.home


def test_what_the_server_wrote_while_an_earlier_one_was_on_its_way_is_not_home(
    folder: RunFolder, tmp_path: Path
) -> None:
    folder.path.mkdir()
    slow = Carrier(b"weights")
    bringing = courier(folder, tmp_path, slow)
    fetch, told = slow.fetch, []

    def overtaken(path: str) -> bytes:
        if not told:
            told.append(path)
            bringing.bring(path)
        return fetch(path)

    slow.fetch = overtaken
    bringing.bring("there.npz")
    bringing.wait()
    assert not bringing.home
    bringing.finish()
    assert bringing.home
