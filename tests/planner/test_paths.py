"""Names of files and folders, and the newest profile of a folder."""

import os
from pathlib import Path

import pytest

from planner.errors import RecordError
from planner.paths import RunFolder, newest_profile


def test_the_newest_profile_is_by_time_not_by_name(tmp_path: Path) -> None:
    for age_s, name in enumerate(("profile.json", "profile-lab.json", "profile-z.json")):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, (1e9 - age_s, 1e9 - age_s))
    (tmp_path / "plan.json").write_text("{}")
    assert newest_profile(tmp_path) == tmp_path / "profile.json"


def test_without_a_profile_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no profile.*run `planner profile` first or name one"):
        newest_profile(tmp_path)


def test_every_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    folders = [RunFolder.create(tmp_path / "runs", "cipher").path for _ in range(3)]
    assert len(set(folders)) == 3
    assert all(path.is_dir() and path.parent == tmp_path / "runs" and "-cipher" in path.name for path in folders)


def test_only_its_owner_reads_the_folder_of_a_run(tmp_path: Path) -> None:
    assert RunFolder.create(tmp_path / "runs", "cipher").path.stat().st_mode & 0o777 == 0o700
