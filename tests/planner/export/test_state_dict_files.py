"""Lines that load weights call the job's function, whatever the name of its file is."""

from pathlib import Path

import pytest

from planner.export.export import Export, export
from tests.installed import computes_with
from tests.trained_runs import trained_job_folder

pytestmark = computes_with("torch")

JOB = """
import sys
from types import SimpleNamespace
import torch
from torch import nn

def job():
    if BREAKS and "planner.export.export" not in sys.modules:
        raise KeyError("alone")
    data = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.randn(8, 1))
    return SimpleNamespace(model=nn.Linear(3, 1), train=data, test=data, loss=nn.functional.mse_loss)
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def exported(file: str, breaks: bool = False) -> Export:
    """The weights of a job; breaks: its function fails in the process that tries the lines."""
    Path(file).write_text(f"BREAKS = {breaks}\n{JOB}")
    return export(trained_job_folder(Path("runs"), f"{file}:job").path, Path("model.pth"))


@pytest.mark.parametrize("file", ["my-train.py", "01-train.py"])
def test_the_file_of_a_job_may_have_a_name_that_no_import_statement_takes(file: str) -> None:
    made = exported(file)
    assert made.notes == () and made.lines[-1].startswith("print(model.eval()(torch.zeros((1, 3)")


def test_weights_are_written_also_where_the_lines_fail_which_a_note_says() -> None:
    import torch

    made = exported("train.py", breaks=True)
    assert made.notes == (
        "the lines that load it failed when run here: KeyError: 'alone'; the file has the weights all the same",
    )
    assert torch.load("model.pth", weights_only=True)["weight"].shape == (1, 3)
