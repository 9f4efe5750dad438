"""What of a user's folder belongs to a model: its file and what that imports, and nothing else."""

import hashlib
from pathlib import Path

import pytest

from backends import models
from backends.models import user_source
from backends.models.user_source import source_files


def write(folder: Path, **files: str) -> str:
    """Files by name, ``__`` for a slash; the model's own is net.py. Returns the model's name."""
    for name, text in files.items():
        path = folder / (name.replace("__in__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return f"{folder}/net.py:build"


def names(model: str) -> list[str]:
    return [source.name for source in source_files(model)]


def test_a_model_of_one_file_is_that_file(tmp_path: Path) -> None:
    model = write(tmp_path, net="import os\nimport torch\n", other="never imported")
    assert names(model) == ["net.py"]
    assert source_files(model)[0].content == b"import os\nimport torch\n"


@pytest.mark.parametrize(
    "statement",
    ["import block", "import block as b", "from block import Block", "from . import block", "from .block import Block"],
)
def test_every_way_to_import_a_neighbour_is_followed(tmp_path: Path, statement: str) -> None:
    model = write(tmp_path, net=f"def build():\n    {statement}\n", block="", other="")
    assert names(model) == ["net.py", "block.py"]


def test_imports_are_followed_through_packages_and_circles(tmp_path: Path) -> None:
    model = write(
        tmp_path,
        net="from parts.blocks import Block\n",
        parts__in____init__="",
        parts__in__blocks="from . import sizes\nfrom .. import common\n",
        parts__in__sizes="import parts.blocks\n",
        common="import net\n",
        unused="",
    )
    assert names(model) == ["net.py", "common.py", "parts/__init__.py", "parts/blocks.py", "parts/sizes.py"]


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path: Path) -> None:
    model = write(tmp_path, net="import block\n", block="x = 1\ndef f(:\n")
    with pytest.raises(ValueError, match=r"block\.py:2: not Python"):
        source_files(model)


def test_a_model_that_imports_a_whole_project_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_source, "MOST_FILES", 3)
    model = write(tmp_path, net="import a0", a0="import a1", a1="import a2", a2="")
    with pytest.raises(ValueError, match="imports more than 3 files or 4 MiB of its folder; keep what"):
        source_files(model)
    monkeypatch.setattr(user_source, "MOST_FILES", 4)
    assert len(source_files(model)) == 4
    monkeypatch.setattr(user_source, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="of its folder"):
        source_files(model)


def test_a_fingerprint_follows_what_is_imported(tmp_path: Path) -> None:
    model = write(tmp_path, net="import block\n", block="one", other="one")
    first = models.fingerprint(model)
    write(tmp_path, other="two")
    assert models.fingerprint(model) == first
    write(tmp_path, block="two")
    assert models.fingerprint(model) != first


def test_the_fingerprint_of_a_single_file_is_what_it_always_was(tmp_path: Path) -> None:
    model = write(tmp_path, net="import os\n")
    assert models.fingerprint(model) == hashlib.sha256(b"build\nimport os\n").hexdigest()[:12]
