"""A user's model on its way to a device; the device stores what it is sent in memory."""

from pathlib import Path
from typing import cast

import pytest

from planner.agents.client import AgentClient
from planner.jobs.shipping import ship_model


class Storage:
    """Stands for an agent that stores files."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def store(self, name: str, content: bytes, origin: str = "") -> str:
        self.files[name] = content
        return f"/remote/{name}"


@pytest.fixture
def storage() -> Storage:
    return Storage()


def ship(storage: Storage, model: str) -> str:
    return ship_model(cast(AgentClient, storage), model)


def test_the_name_of_a_known_model_is_not_changed(storage: Storage) -> None:
    assert ship(storage, "cipher") == "cipher"
    assert storage.files == {}


def test_a_file_is_stored_with_the_files_that_it_imports(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("from layers import block\ndef net():\n    return block()\n")
    (tmp_path / "layers.py").write_text("def block():\n    pass\n")
    (tmp_path / "other.py").write_text("")
    there = ship(storage, f"{tmp_path}/net.py:net")
    folder = there.removeprefix("/remote/").removesuffix("/net.py:net")
    assert storage.files.keys() == {f"{folder}/net.py", f"{folder}/layers.py"}
    assert storage.files[f"{folder}/layers.py"] == (tmp_path / "layers.py").read_bytes()


def test_a_changed_file_goes_to_a_folder_of_its_own(storage: Storage, tmp_path: Path) -> None:
    model = tmp_path / "net.py"
    model.write_text("def net():\n    return 1\n")
    first = ship(storage, f"{model}:net")
    assert ship(storage, f"{model}:net") == first
    model.write_text("def net():\n    return 2\n")
    assert ship(storage, f"{model}:net") != first
