"""`planner export` as the operator meets it: what cannot be exported is told in one line."""

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planner.export import export as exports
from planner.export import formats
from planner.json_records import save
from planner.plan.file import load_plan
from tests.installed import computes_with
from tests.planner.cli.commands import Planner
from tests.running import ROOT

RUN = ROOT / "tests" / "golden" / "runs" / "parameter-server"


@pytest.fixture
def run_folder(planner: Planner) -> Path:
    """A run of the example model in an empty folder."""
    shutil.copytree(RUN, "run")
    shutil.copytree(ROOT / "examples", "examples", ignore=shutil.ignore_patterns("fashion-mnist"))
    return Path("run")


def test_what_is_no_run_folder_is_refused(planner: Planner) -> None:
    Path("file").touch()
    Path("empty").mkdir()
    remedy = "name a run folder that `planner train` made"
    for folder, problem in (
        ("none", "the folder does not exist"),
        ("file", "the folder is no directory"),
        ("empty", "it has no checkpoint.npz, the run wrote none"),
    ):
        assert planner("export", folder, "--to", "model.pt").problem() == f"cannot export {folder}: {problem}; {remedy}"


def test_the_target_is_a_file_in_a_folder_that_exists(planner: Planner, run_folder: Path) -> None:
    Path("folder.pt").mkdir()
    remedy = "name a file in a folder that exists"
    for target, problem in (("none/model.pt", "there is no folder none"), ("folder.pt", "it is a directory")):
        assert planner("export", "run", "--to", target).problem() == f"--to {target}: {problem}; {remedy}"


def test_a_missing_framework_is_named_with_the_command_that_installs_it(
    planner: Planner, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    assert planner("export", "run", "--to", "model.pt").problem() == (
        "--to model.pt: PyTorch, which makes it, is not installed on this machine; remedy: pip install torch"
    )


def test_a_model_of_ones_own_is_exported_by_its_own_framework_only(planner: Planner, run_folder: Path) -> None:
    plan = run_folder / "plan.json"
    made = load_plan(plan)
    save(made._replace(workers=tuple(each._replace(framework="tensorflow") for each in made.workers)), plan)
    problem = planner("export", "run", "--to", "model.pt").problem()
    assert problem.startswith(
        "--to model.pt: PyTorch makes .pt files, and examples/tiny.py:tiny is a TensorFlow model of your own"
    )


class TestWithTorch:
    pytestmark = computes_with("torch")

    def test_a_run_of_a_users_model_is_exported(self, planner: Planner, run_folder: Path) -> None:
        ran = planner("export", "run", "--to", "model.pt", "--json")
        made = json.loads(ran.out)
        assert (ran.code, ran.err) == (0, "")
        assert made["bytes"] == Path("model.pt").stat().st_size
        assert (made["path"], made["format"], made["model"], made["step"]) == (
            "model.pt", "TorchScript", "examples/tiny.py:tiny", 60
        )  # fmt: skip
        images = {"name": "images", "dtype": "uint8", "shape": [None, 28, 28, 1], "example": [1, 28, 28, 1]}
        outputs = {"name": "probabilities", "dtype": "float32", "shape": [None, 10], "example": [1, 10]}
        assert (made["inputs"], made["outputs"]) == ([images], [outputs])
        assert made["classes"] == [*"0123456789"]
        assert made["code"].splitlines() == made["lines"]

    def test_the_weights_of_a_users_model_are_told_without_what_planner_puts_around_it(
        self, planner: Planner, run_folder: Path
    ) -> None:
        made = json.loads(planner("export", "run", "--to", "model.pth", "--json").out)
        assert (made["inputs"], made["outputs"], made["format"]) == ([], [], "state_dict")
        assert "torch.zeros(1, 1, 28, 28) * (2 / 255) - 1" in made["code"]

    def test_a_file_that_nothing_here_can_run_is_said_to_be_untried(
        self, planner: Planner, run_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = exports.find_spec
        monkeypatch.setattr(exports, "find_spec", lambda name: found(name) if name != "torch" else None)
        made = json.loads(planner("export", "run", "--to", "model.pth", "--json").out)
        assert made["notes"][-1] == "torch: not installed here, so that neither the file nor the lines were tried"

    def test_an_error_in_a_users_file_names_its_line(self, planner: Planner, run_folder: Path) -> None:
        file = Path("examples/tiny.py")
        lines = file.read_text().splitlines()
        lines.insert(lines.index("    net = nn.Sequential("), "    1 / 0")
        file.write_text("\n".join(lines))
        problem = planner("export", "run", "--to", "model.pt").problem()
        assert problem.startswith("cannot export examples/tiny.py:tiny to model.pt: ZeroDivisionError: ")
        assert problem.endswith(f"examples/tiny.py:{lines.index('    1 / 0') + 1}")

    def test_what_a_trace_does_not_hold_is_refused(self, planner: Planner, run_folder: Path) -> None:
        file = Path("examples/tiny.py")
        moody = "    class Moody(type(net)):\n        def forward(self, x):\n            x = super().forward(x)\n"
        moody += "            return x if len(x) == 2 else -x\n    net.__class__ = Moody\n    return net, "
        file.write_text(file.read_text().replace("    return net, ", moody))
        problem = planner("export", "run", "--to", "model.pt").problem()
        assert "made of a batch of 2 samples, it computes something else for one of 3" in problem
        assert problem.endswith("; export its weights to model.pth")
        assert not Path("model.pt").exists()

    def test_a_disk_that_is_full_keeps_the_older_file(self, planner: Planner, run_folder: Path) -> None:
        Path("model.pt").write_text("older")
        with file_limit(10_000):
            problem = planner("export", "run", "--to", "model.pt").problem()
        assert problem == (
            "cannot write model.pt: File too large; make room or write access there, or choose another folder"
        )
        assert Path("model.pt").read_text() == "older"
        assert {path.name for path in Path().iterdir()} == {"run", "examples", "model.pt"}


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
