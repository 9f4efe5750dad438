"""A job's requirements.txt is held against what a device has installed."""

from pathlib import Path

import pytest

from planner.check.findings import of_packages
from planner.errors import PlanError
from planner.fleet.device import Device, Interpreter, SshLogin
from planner.jobs.requirements import requirements_in, unmet


def project(folder: Path, *lines: str) -> Path:
    (folder / "requirements.txt").write_text("\n".join(lines))
    return folder


def test_without_a_file_nothing_is_required(tmp_path: Path) -> None:
    assert requirements_in(tmp_path) == ()


def test_comments_and_options_of_pip_are_no_requirements(tmp_path: Path) -> None:
    lines = ("# what the job needs", "", "pillow>=9  # pictures", "-r other.txt", "--extra-index-url https://x", "tqdm")
    assert [str(each) for each in requirements_in(project(tmp_path, *lines))] == ["pillow>=9", "tqdm"]


def test_a_line_that_is_no_requirement_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"requirements\.txt:2: 'pillow >> 9' is no requirement"):
        requirements_in(project(tmp_path, "tqdm", "pillow >> 9"))


def test_what_is_missing_or_of_another_version_is_told(tmp_path: Path) -> None:
    required = requirements_in(project(tmp_path, "pillow>=9", "tqdm", "einops==0.6", "triton; sys_platform == 'win32'"))
    assert unmet(required, {"pillow": "10.1", "tqdm": None, "einops": "0.7"}) == [
        "tqdm is not installed",
        "einops is 0.7, and ==0.6 is asked for",
    ]
    assert unmet(required[:1], {"pillow": "9.0+nv1"}) == unmet(required[:1], {"pillow": "of-a-vendor"}) == []


def test_the_finding_names_the_command_that_installs_what_is_missing(tmp_path: Path) -> None:
    required = requirements_in(project(tmp_path, "pillow>=9", "tqdm"))
    device = Device(name="tx2", ssh=SshLogin("tx2"), interpreter=Interpreter("/opt/torch/bin/python"))
    missing = of_packages(device, required, {"pillow": "10.1", "tqdm": None})
    assert (missing.check, missing.status, missing.detail) == ("job", "failed", "tqdm is not installed")
    assert missing.remedy == "install it there: /opt/torch/bin/python -m pip install tqdm"
    assert of_packages(device, required, {"pillow": "10.1", "tqdm": "4"}).status == "ok"
