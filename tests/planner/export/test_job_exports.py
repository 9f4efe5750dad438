"""Exports of jobs as people write them: weights always come back, graphs where they are right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.errors import ExportError, PlanError
from planner.export import export as exports
from planner.export.export import export
from planner.jobs.reference import find_job
from tests.installed import computes_with, needs
from tests.trained_runs import trained_job_folder

pytestmark = computes_with("torch")

JOBS = '''
import os
from types import SimpleNamespace
import torch
from torch import nn
from torch.utils.data import TensorDataset

PLACES, WORDS = 7, 20


def made(model, forward=None, count=12, loss=nn.functional.mse_loss, **others):
    data = TensorDataset(torch.randn(count, 8), torch.randn(count, 1))
    return SimpleNamespace(**{"model": model, "train": data, "test": data, "loss": loss, "forward": forward, **others})


class Words(nn.Module):
    """As in a language model: (time, batch), a hidden state, and one matrix with two names."""

    def __init__(self):
        super().__init__()
        self.encoder, self.rnn, self.decoder = nn.Embedding(WORDS, 6), nn.LSTM(6, 6), nn.Linear(6, WORDS)
        self.decoder.weight = self.encoder.weight
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.register_buffer("order", torch.randperm(5))
        self.register_buffer("mask", torch.full((2, 2), float("-inf")).triu(1))
        self.register_buffer("scratch", torch.ones(3), persistent=False)

    def forward(self, words, hidden, mask):
        found, hidden = self.rnn(self.encoder(words) + mask.sum(), hidden)
        return {"scores": self.decoder(found), "hidden": hidden}


def words():
    def forward(model, batch):
        words = batch[0].T
        hidden = torch.zeros(1, len(batch[0]), 6), torch.zeros(1, len(batch[0]), 6)
        return model(words, hidden, mask=torch.zeros(PLACES, PLACES))["scores"].flatten(0, 1), batch[1].T.flatten()

    texts = TensorDataset(*torch.randint(0, WORDS, (2, 12, PLACES)))
    return made(Words(), forward, train=texts, test=texts, loss=nn.functional.cross_entropy)


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def score(self, x):
        return self.layer(x)


def parts():
    return made(Parts(), lambda model, batch: (model.score(batch[0]), batch[1]))


class Moody(nn.Linear):
    def forward(self, x):
        return super().forward(x) * (1 if len(x) == 2 else -1)


def moody():
    return made(Moody(8, 1))


class Reshaping(nn.Linear):
    def forward(self, x):
        return super().forward(x).view(int(x.shape[0]), 1)


def reshaping():
    return made(Reshaping(8, 1))


class Noisy(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.randn(len(x), 1)


def noisy():
    return made(Noisy(8, 1))


def alone():
    return made(nn.Linear(8, 1), count=1)


def whole():
    return made(nn.Linear(8, 1), train=[(torch.ones(5, 8), torch.ones(5, 1))] * 4,
                test=[(torch.ones(5, 8), torch.ones(5, 1))] * 4, collate=lambda samples: samples[0])


def lazy():
    return made(nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.LazyLinear(1)))


class Completing(nn.Linear):
    """Its first forward makes a table, and a layer."""

    has_layer = True

    def forward(self, x):
        if not hasattr(self, "table"):
            self.register_buffer("table", torch.arange(8.0), persistent=False)
            self.second = nn.Linear(1, 1) if self.has_layer else nn.Identity()
        return self.second(super().forward(x * self.table))


class Caching(Completing):
    has_layer = False


def completing():
    return made(Completing(8, 1))


def caching():
    return made(Caching(8, 1))


class Deciding(nn.Linear):
    def forward(self, x):
        found = super().forward(x)
        if found.sum() > 0:
            found = 2 * found
        return found


def deciding():
    return made(Deciding(8, 1))


class Padded(nn.RNN):
    def forward(self, x):
        return super().forward(x)[0].sum(1)


def padded():
    texts = [torch.randn(2 + place // 4, 8) for place in range(12)]
    return made(Padded(8, 1, batch_first=True), lambda model, batch: (model(batch), batch[:, 0, :1]), train=texts,
                test=texts, collate=lambda samples: nn.utils.rnn.pad_sequence(samples, batch_first=True))


class Versioned(nn.Linear):
    def get_extra_state(self):
        return 3

    def set_extra_state(self, version):
        assert version == 3


def versioned():
    return made(Versioned(8, 1))


def wrapped():
    return made(nn.DataParallel(nn.Linear(8, 1)))


def elsewhere():
    if "UNNAMED" in os.environ:
        raise KeyError("PLANNER_DATA")
    if "GONE" in os.environ:
        raise FileNotFoundError(2, "No such file", "set.csv")
    return made(nn.Sequential(nn.Linear(8, 1), nn.BatchNorm1d(1)))
'''


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a run of one of the jobs, in its folder; printed lines are not tried."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(exports.lines, "working", lambda lines: (lines, ""))
    Path("jobs.py").write_text(JOBS)
    return lambda name, seed=0: trained_job_folder(Path("runs"), f"jobs.py:{name}", seed=seed).path


def loaded(path: str) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(path) if path.endswith("s") else torch.load(path, weights_only=True)
    return found


def fresh(name: str) -> Any:
    """The model as the job's function makes it."""
    made: dict[str, Any] = {"__name__": "jobs"}
    exec(JOBS, made)  # noqa: S102
    return made[name]().model


@pytest.mark.parametrize("path", ["model.pth", "model.safetensors"])
@pytest.mark.parametrize("job", ["words", "parts", "moody", "noisy", "alone", "whole", "lazy", "caching", "deciding"])
def test_the_users_own_class_takes_the_weights_strictly(trained: Any, job: str, path: str) -> None:
    folder = trained(job)
    export(folder, Path(path))
    state = loaded(path)
    fresh(job).load_state_dict(state)
    with np.load(folder / "checkpoint.npz") as saved:
        kept = {name.partition("/")[2]: saved[name] for name in saved if name.startswith(("weights/", "state/"))}
    assert kept.keys() - state.keys() <= {"scratch", "table"}
    assert all((values == state[name].numpy()).all() for name, values in kept.items() if name in state)


def test_a_matrix_with_two_names_is_one_when_it_is_loaded(trained: Any) -> None:
    export(trained("words"), Path("model.pth"))
    state = loaded("model.pth")
    assert state["decoder.weight"].data_ptr() == state["encoder.weight"].data_ptr()
    assert sorted(state["order"].tolist()) == [0, 1, 2, 3, 4] and "scratch" not in state


def test_parts_that_a_forward_makes_are_in_the_file_and_how_to_load_them_is_said(trained: Any) -> None:
    import torch

    made = export(trained("completing"), Path("model.pth"))
    model, state = fresh("completing"), loaded("model.pth")
    assert made.lines[-1].startswith("# with your model: call it once")
    model(torch.zeros(1, 8))
    model.load_state_dict(state)
    assert "second.weight" in state and "table" not in state


def test_a_class_takes_the_weights_that_were_trained_in_a_wrapper_of_torch(trained: Any) -> None:
    made = export(trained("wrapped"), Path("model.pth"))
    fresh("wrapped").module.load_state_dict(loaded("model.pth"))
    found: dict[str, Any] = {}
    exec("\n".join(made.lines), found)  # noqa: S102
    assert found["model"].weight.tolist() == loaded("model.pth")["weight"].tolist()


def test_a_state_that_is_more_than_tensors_is_refused_with_a_format_that_holds_it(trained: Any) -> None:
    folder = trained("versioned")
    with pytest.raises(ExportError, match="_extra_state, which is no tensor; export its weights to model.pth"):
        export(folder, Path("model.safetensors"))
    export(folder, Path("model.pth"))
    fresh("versioned").load_state_dict(loaded("model.pth"))


@needs("onnx", "onnxscript", "onnxruntime")
def test_what_stops_an_onnx_file_is_said_in_a_line_with_its_place(
    trained: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = trained("deciding")
    place = JOBS.splitlines().index("        if found.sum() > 0:") + 1
    capfd.readouterr()
    with pytest.raises(ExportError) as refused:
        export(folder, Path("model.onnx"))
    assert str(refused.value).endswith(
        "its control flow depends on values, which a graph cannot hold, "
        f"at {Path('jobs.py').resolve()}:{place}; export its weights to model.pth"
    )
    assert capfd.readouterr() == ("", "")


def test_lengths_that_differ_between_batches_are_open(trained: Any) -> None:
    made = export(trained("padded"), Path("model.pt"))
    assert [each.shape for each in made.inputs] == [(None, None, 8)]


def test_a_trace_is_in_evaluation_and_its_parameters_need_no_gradients(trained: Any) -> None:
    import torch

    export(trained("padded"), Path("model.pt"))
    model = torch.jit.load("model.pt")
    assert not any(each.training for each in model.modules())
    assert not any(each.requires_grad for each in model.parameters())


@needs("onnx", "onnxscript", "onnxruntime")
@pytest.mark.parametrize("path", ["model.onnx", "model.pt"])
def test_the_axis_of_the_batch_is_where_it_is(trained: Any, path: str) -> None:
    made = export(trained("words"), Path(path))
    shapes = {each.name: each.shape for each in (*made.inputs, *made.outputs)}
    hidden = (1, None, 6)
    assert shapes == {
        "input_0": (7, None), "input_1_0": hidden, "input_1_1": hidden, "mask": (7, 7),
        "scores": (7, None, 20), "hidden_0": hidden, "hidden_1": hidden,
    }  # fmt: skip
    found: dict[str, Any] = {}
    exec("\n".join(made.lines).replace("print(", "outputs = list("), found)  # noqa: S102
    assert [tuple(each.shape) for each in found["outputs"]] == [each.example for each in made.outputs]


@pytest.mark.parametrize("path", ["model.onnx", "model.pt"])
@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ("parts", "its forward does not call the model with tensors, but its parts or its methods"),
        ("moody", "made of a batch of 2 samples, it computes something else for one of 3"),
        ("reshaping", "made of a batch of 2 samples, it computes something else for one of 3"),
        ("noisy", "its outputs for the same inputs are others each time"),
        ("alone", "the test set has one sample"),
        ("whole", "no input of the model grows with the number of samples, so that its batch would be fixed"),
    ],
)
def test_a_graph_that_would_be_wrong_is_refused_with_a_format_that_works(
    trained: Any, job: str, reason: str, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = trained(job)
    capfd.readouterr()
    with pytest.raises(ExportError, match=f"cannot export jobs.py:{job} to {path}: {reason}") as refused:
        export(folder, Path(path))
    assert str(refused.value).endswith("; export its weights to model.pth")
    assert capfd.readouterr() == ("", "")
    assert {each.name for each in Path().iterdir()} - {"__pycache__"} == {"runs", "jobs.py"}


def test_without_its_data_the_weights_of_a_job_come_back_as_the_checkpoint_has_them(
    trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained("elsewhere")
    monkeypatch.setenv("GONE", "1")
    made = export(folder, Path("model.pth"))
    assert "the job's function fails here: FileNotFoundError" in made.notes[0] and "PLANNER_DATA" in made.notes[0]
    assert made.lines[-1] == "# with your model: model.load_state_dict(weights, strict=False)"
    monkeypatch.setenv("UNNAMED", "1")
    assert "name their folder in PLANNER_DATA" in export(folder, Path("model.pth")).notes[0]
    Path("jobs.py").rename("moved.py")
    assert (
        "the job's function fails here: --job jobs.py:elsewhere: there is no" in export(folder, Path("m.pth")).notes[0]
    )
    with pytest.raises(PlanError, match="there is no file"):
        export(folder, Path("model.pt"))
    assert (loaded("m.pth")["0.weight"] == loaded("model.pth")["0.weight"]).all()
    monkeypatch.delenv("UNNAMED")
    monkeypatch.delenv("GONE")
    assert not any(fresh("elsewhere").load_state_dict(loaded("model.pth"), strict=False))


def test_a_trace_of_a_model_whose_values_decide_is_refused(trained: Any) -> None:
    with pytest.raises(ExportError, match="computes something else for another of 2; .*; export its weights to"):
        export(trained("deciding"), Path("model.pt"))


def test_a_model_of_other_names_is_refused_in_every_format_alike(trained: Any) -> None:
    folder = trained("parts")
    # Of another length: Python takes a file of equal size and second for the one it has compiled.
    Path("jobs.py").write_text(JOBS.replace("self.layer", "self.renamed"))
    for path in ("model.pth", "model.pt"):
        with pytest.raises(
            ExportError, match="another model: the checkpoint has no renamed.weight, renamed.bias"
        ) as refused:
            export(folder, Path(path))
        assert "export its weights" not in str(refused.value)


@pytest.mark.parametrize("module", ["01-jobs", "my jobs", "größe"])
def test_a_trace_that_torch_could_not_read_for_the_name_of_its_file_is_refused(trained: Any, module: str) -> None:
    Path(f"{module}.py").write_text(JOBS)
    folder = trained_job_folder(Path("runs"), f"{module}.py:padded").path
    with pytest.raises(ExportError) as refused:
        export(folder, Path("model.pt"))
    assert f"TorchScript cannot hold Padded of module '{module}'" in str(refused.value)
    assert str(refused.value).endswith("export to model.onnx or model.pth, or rename the file and train again")


def test_a_trace_of_a_file_with_a_dash_in_its_name_loads(trained: Any) -> None:
    import torch

    Path("my-jobs.py").write_text(JOBS)
    export(trained_job_folder(Path("runs"), "my-jobs.py:padded").path, Path("model.pt"))
    torch.jit.load("model.pt")


def test_an_export_into_the_folder_of_the_job_changes_nothing_of_it(trained: Any) -> None:
    folder = trained("lazy")
    before = find_job("jobs.py:lazy")
    for path in ("model.pth", "model.safetensors", "model.pt"):
        export(folder, Path(path))
    after = find_job("jobs.py:lazy")
    assert (after.fingerprint, after.project.files) == (before.fingerprint, before.project.files)


def test_the_generators_are_seeded_as_in_the_run(trained: Any) -> None:
    """A buffer of whole numbers may be drawn, and is in no checkpoint."""
    import torch

    export(trained("words", seed=5), Path("model.pth"))
    torch.manual_seed(5)
    assert loaded("model.pth")["order"].tolist() == fresh("words").order.tolist()
