"""A job's requirements.txt is held against what a device has installed."""

from pathlib import Path

import pytest

from planner.check.findings import install_remedy, of_packages
from planner.errors import PlanError
from planner.fleet.device import Device, Interpreter, SshLogin
from planner.jobs.requirements import applicable, applies, requirements_in, unmet
from tests.planner.check.test_findings import FACTS


def project(folder: Path, *lines: str) -> Path:
    (folder / "requirements.txt").write_text("\n".join(lines))
    return folder


def test_without_a_file_nothing_is_required(tmp_path: Path) -> None:
    assert requirements_in(tmp_path) == ()


def test_comments_and_options_of_pip_are_no_requirements(tmp_path: Path) -> None:
    lines = ("# what the job needs", "", "pillow>=9  # pictures", "--no-binary :all:", "-i https://x", "tqdm")
    assert [str(each) for each in requirements_in(project(tmp_path, *lines))] == ["pillow>=9", "tqdm"]


def test_a_line_that_is_no_requirement_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"requirements\.txt:2: 'pillow >> 9' is no requirement"):
        requirements_in(project(tmp_path, "tqdm", "pillow >> 9"))


def test_what_is_missing_or_of_another_version_is_told(tmp_path: Path) -> None:
    required = requirements_in(project(tmp_path, "pillow>=9", "tqdm", "einops==0.6"))
    assert unmet(required, {"pillow": "10.1", "tqdm": None, "einops": "0.7"}) == [
        "tqdm is not installed",
        "einops is 0.7, and ==0.6 is asked for",
    ]
    assert unmet(required[:1], {"pillow": "9.0+nv1"}) == unmet(required[:1], {"pillow": "of-a-vendor"}) == []


def test_a_marker_is_judged_for_the_device(tmp_path: Path) -> None:
    lines = "tqdm; sys_platform == 'win32'", "wheel; python_version < '3.7'", "idna; platform_machine == 'aarch64'"
    required = requirements_in(project(tmp_path, *lines))
    assert [applies(each, "3.6.9", "aarch64") for each in required] == [False, True, True]
    assert of_packages(PC, FACTS, required, {}).status == "ok"


def test_a_marker_of_the_kernel_is_judged_for_the_device(tmp_path: Path) -> None:
    required = requirements_in(project(tmp_path, "tqdm; 'tegra' in platform_release"))
    jetson = FACTS._replace(system="Ubuntu 22.04.5 LTS, Linux 5.15.148-tegra")
    assert of_packages(PC, jetson, required, {}).detail == "tqdm is not installed"
    assert of_packages(PC, FACTS, required, {}).status == "ok"


def test_a_marker_of_the_system_is_judged_for_the_device(tmp_path: Path) -> None:
    mac = FACTS._replace(system="macOS 14.5, Darwin 23.5.0", machine="arm64")
    for marker in ("sys_platform == 'darwin'", "platform_system == 'Darwin' and platform_machine == 'arm64'"):
        required = requirements_in(project(tmp_path, f"tqdm; {marker}"))
        assert of_packages(PC, mac, required, {}).detail == "tqdm is not installed"
        assert of_packages(PC, FACTS, required, {}).status == "ok"


# -- lines, as pip reads them ----------------------------------------------------------------------


def names(folder: Path, *lines: str) -> tuple[list[str], list[str]]:
    """The requirements of a file with these lines, and what is left to pip."""
    left: list[str] = []
    found = requirements_in(project(folder, *lines), left.append)
    return [str(each) for each in found], [text.partition(" is left to pip")[0] for text in left]


def test_lines_that_go_on_are_joined_and_hashes_are_dropped(tmp_path: Path) -> None:
    lines = ("einops==0.7 \\", "    --hash=sha256:aa \\", "    --hash=sha256:bb", "    # via torch", "tqdm>=4,\\", "<5")
    assert names(tmp_path, *lines) == (["einops==0.7", "tqdm<5,>=4"], [])


@pytest.mark.parametrize("line", [
    "git+https://example.org/layers.git@v1#egg=layers", "./libs/layers", "libs/layers", ".[gpu]", "-e ./libs/layers",
    "https://example.org/tqdm-4-py3-none-any.whl", "tqdm-4-py3-none-any.whl", "file:///libs/layers",
    "--editable=git+ssh://git@example.org/layers.git", "-r https://example.org/more.txt",
])  # fmt: skip
def test_what_has_no_name_is_left_to_pip_and_said(tmp_path: Path, line: str) -> None:
    found, (left,) = names(tmp_path, "tqdm", line)
    assert found == ["tqdm"] and left.startswith(f"{tmp_path}/requirements.txt:2: ")


@pytest.mark.parametrize("option", ["-i https://a:secret@x", "--extra-index-url=https://a:secret@x", "--no-index"])
def test_an_index_is_left_to_pip_and_said_without_its_password(tmp_path: Path, option: str) -> None:
    told: list[str] = []
    assert len(requirements_in(project(tmp_path, option, "tqdm"), told.append)) == 1
    name = option.replace("=", " ").split()[0]
    assert told == [
        f"{tmp_path}/requirements.txt:1: {name} is left to pip: add it to each `pip install` that is named here"
    ]


def test_a_name_before_a_url_is_a_requirement_of_any_version(tmp_path: Path) -> None:
    lines = "numpy @ file:///croot/numpy/work", "layers@git+https://example.org/layers", "tqdm[cli] @ https://x/t.whl"
    required = requirements_in(project(tmp_path, *lines))
    assert unmet(required, {"numpy": "1.26"}) == ["layers is not installed", "tqdm[cli] is not installed"]


def test_included_files_count_and_constraints_only_narrow(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("tqdm\n-c limits.txt\n")
    (tmp_path / "more" / "limits.txt").write_text("Tqdm<5\neinops<1\n")
    assert names(tmp_path, "idna", "-r more/base.txt", "--requirement=more/base.txt")[0] == ["idna", "tqdm<5", "tqdm<5"]


@pytest.mark.parametrize("line, reason", [
    ("-r none.txt", "there is no file"), ("-r requirements.txt", "includes itself"),
    ("numpy=1.26.4=py310h5f9d8c6_0", "conda's form, which pip does not read"), ("numpy=1.26", "conda's form"),
    ("- tqdm", "is no requirement"), ("git@example.org:a/layers.git", r"write git\+ssh://git@HOST/PATH"),
])  # fmt: skip
def test_a_line_that_cannot_be_followed_is_named(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(PlanError, match=rf"requirements\.txt:2: .*{reason}"):
        requirements_in(project(tmp_path, "tqdm", line))


def test_a_constraint_with_a_marker_narrows_where_it_holds(tmp_path: Path) -> None:
    (tmp_path / "limits.txt").write_text("Tqdm<5; python_version < '3.9'\n")
    required = requirements_in(project(tmp_path, "tqdm>=4; sys_platform == 'linux'", "-c limits.txt"))
    assert [str(each) for each in applicable(required, "3.8.10", "aarch64")][0].startswith("tqdm<5,>=4")
    assert unmet(applicable(required, "3.8.10", "aarch64"), {"tqdm": "5.1"}) == ["tqdm is 5.1, and <5,>=4 is asked for"]
    assert unmet(applicable(required, "3.10.12", "aarch64"), {"tqdm": "5.1"}) == []
    elsewhere = requirements_in(project(tmp_path, "tqdm; sys_platform == 'win32'", "-c limits.txt"))
    assert applicable(elsewhere, "3.8.10", "aarch64") == []


def test_a_line_goes_on_where_it_stopped(tmp_path: Path) -> None:
    assert names(tmp_path, "einops>=1.\\", "2", "tq\\", "dm")[0] == ["einops>=1.2", "tqdm"]
    assert names(tmp_path, "einops \\", "# of the job", "tqdm")[0] == ["einops", "tqdm"]


def test_a_comment_may_name_the_encoding(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes("#!pip\n# -*- coding: latin-1 -*-\n# von Müller\ntqdm\n".encode("latin-1"))
    assert [str(each) for each in requirements_in(tmp_path)] == ["tqdm"]
    file.write_bytes(b"\xef\xbb\xbf# coding: utf-8\ntqdm\n")
    assert [str(each) for each in requirements_in(tmp_path)] == ["tqdm"]
    file.write_bytes(b"# coding: klingon\ntqdm\n")
    with pytest.raises(PlanError, match=r"requirements\.txt: unknown encoding: klingon; save it as UTF-8"):
        requirements_in(tmp_path)


def test_what_is_no_requirement_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as refused:
        requirements_in(project(tmp_path, "einops 0.7"))
    assert "is no requirement: " in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("ending", ["tar", "tbz", "txz", "tlz", "tar.lz", "tar.lzma", "zip", "whl", "tgz"])
def test_an_archive_is_left_to_pip(tmp_path: Path, ending: str) -> None:
    found, left = names(tmp_path, f"einops-0.7.{ending}")
    assert found == [] and left[0].endswith(f"einops-0.7.{ending}")


@pytest.mark.parametrize(
    "name",
    ["torch", "torch_geometric", "torch-tensorrt", "torchtext", "tensorflow-cpu", "tensorflow_gpu", "tensorrt-cu12",
     "tf-nightly", "cupy-cuda12x", "jax-cuda12-plugin", "jaxlib", "nvidia-cudnn-cu12", "triton", "xformers",
     "onnxruntime", "onnxruntime-gpu", "OpenCV-Python", "opencv-contrib-python-headless", "flash-attn"],
)  # fmt: skip
def test_no_remedy_puts_a_package_of_pip_where_a_vendor_builds_it(tmp_path: Path, name: str) -> None:
    jetson = FACTS._replace(board="NVIDIA Jetson Orin Nano")
    remedy = of_packages(PC, jetson, requirements_in(project(tmp_path, name)), {}).remedy or ""
    assert "pip install" not in remedy and f"take {name} from its vendor" in remedy


def test_a_package_that_only_jetpack_brings_is_installed_elsewhere(tmp_path: Path) -> None:
    own = FACTS._replace(frameworks={"torch": {"version": "2.1.0+cu118"}})
    remedy = of_packages(PC, own, requirements_in(project(tmp_path, "opencv-python", "tensorboard")), {}).remedy or ""
    assert "pip install --no-deps opencv-python tensorboard" in remedy


def test_a_variable_of_the_environment_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAST", "4.60")
    assert names(tmp_path, "tqdm>=${LEAST}", "idna # ${UNKNOWN}")[0] == ["tqdm>=4.60", "idna"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_a_file_of_windows_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "requirements.txt").write_bytes("tqdm\r\nidna>=3\r\n".encode(encoding))
    assert [str(each) for each in requirements_in(tmp_path)] == ["tqdm", "idna>=3"]


# -- builds of vendors -----------------------------------------------------------------------------

PC = Device(name="pc", ssh=SshLogin("pc"))
NVIDIAS = "2.1.0a0+41361538.nv23.06"


@pytest.mark.parametrize("asked_for, version", [
    ("torch>=2.1", NVIDIAS), ("torch==2.1.0", NVIDIAS), ("torch~=2.1", NVIDIAS), ("torch>=1.10", "1.10.0a0+git36449ea"),
    ("torch==2.1.0", "2.1.0+cpu"), ("torch>=2.1", "2.1.0+rocm5.6"), ("torch>=2.1", "2.1.0+cu121"),
])  # fmt: skip
def test_a_build_of_a_vendor_is_the_version_that_it_is_built_of(tmp_path: Path, asked_for: str, version: str) -> None:
    assert unmet(requirements_in(project(tmp_path, asked_for)), {"torch": version}) == []


@pytest.mark.parametrize(
    "asked_for, version", [("torch>=2.2", NVIDIAS), ("torch<2", NVIDIAS), ("torch>=2.1", "2.1.0rc1")]
)
def test_another_version_is_unmet_all_the_same(tmp_path: Path, asked_for: str, version: str) -> None:
    assert len(unmet(requirements_in(project(tmp_path, asked_for)), {"torch": version})) == 1


JETSON = FACTS._replace(system="Ubuntu 22.04, Linux 5.15.136-tegra", machine="aarch64")


@pytest.mark.parametrize("version", [None, NVIDIAS, "1.13.0"])
@pytest.mark.parametrize("name", ["torch", "torchvision", "tensorflow"])
def test_no_remedy_puts_pips_own_framework_on_a_jetson(tmp_path: Path, name: str, version: str | None) -> None:
    required = requirements_in(project(tmp_path, f"{name}>=9", "tqdm"))
    remedy = of_packages(PC, JETSON, required, {name: version, "tqdm": None}).remedy
    assert remedy == (
        "install it there: python3 -m pip install --no-deps tqdm; "
        f"take {name}>=9 from its vendor (NVIDIA's wheels on a Jetson), not pip's own, or loosen the line"
    )


def test_no_remedy_replaces_another_vendors_build(tmp_path: Path) -> None:
    built = FACTS._replace(frameworks={"torch": {"version": "2.4.0+rocm6.1"}})
    required = requirements_in(project(tmp_path, "torch>=9", "tqdm"))
    remedy = of_packages(PC, built, required, {"torch": "2.4.0+rocm6.1", "tqdm": None}).remedy
    assert remedy is not None and "pip install --no-deps tqdm;" in remedy and "install torch" not in remedy
    assert install_remedy(PC, built, ["torch"]) == (
        "take another build of torch from where it came: pip's own would replace it"
    )


def test_a_version_that_pypi_does_not_have_is_not_asked_of_it(tmp_path: Path) -> None:
    wanted = requirements_in(project(tmp_path, "torch==2.1.0+cu118", "tqdm"))
    remedy = of_packages(PC, FACTS, wanted, {"torch": "2.1.0"}).remedy or ""
    assert "pip install tqdm; take torch==2.1.0+cu118 from its vendor" in remedy


def test_the_finding_names_the_command_that_installs_what_is_missing(tmp_path: Path) -> None:
    required = requirements_in(project(tmp_path, "pillow>=9", "tqdm"))
    device = Device(name="tx2", ssh=SshLogin("tx2"), interpreter=Interpreter("/opt/torch/bin/python"))
    missing = of_packages(device, FACTS, required, {"pillow": "10.1", "tqdm": None})
    assert (missing.check, missing.status, missing.detail) == ("job", "failed", "tqdm is not installed")
    assert missing.remedy == "install it there: /opt/torch/bin/python -m pip install tqdm"
    assert of_packages(device, FACTS, required, {"pillow": "10.1", "tqdm": "4"}).status == "ok"
