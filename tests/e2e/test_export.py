"""The lines that `planner export` prints run its file where only the framework is installed."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.e2e.clean_environments import CleanPython
from tests.installed import computes_with, needs
from tests.running import HANG_S, ROOT, run
from tests.trained_runs import images, probabilities, trained_folder, trained_job_folder

pytestmark = computes_with("torch")
IMAGES = 8


class Trained(NamedTuple):
    """A run folder, its model, and what its replica gives for some images, (count, classes)."""

    folder: Path
    model: str
    probabilities: np.ndarray


def exported(folder: Path, run_folder: Path, to: str) -> dict[str, Any]:
    """What the command prints as JSON."""
    command = run(folder, "export", str(run_folder), "--to", to, "--classes", ",".join(CLASSES), "--json")
    assert command.popen.returncode == 0, command.errors
    answer: dict[str, Any] = json.loads(command.output)
    return answer


def run_lines(python: Path, folder: Path, lines: list[str], then: str) -> tuple[str, Any]:
    """What the printed lines print, and the JSON that ``then`` prints after them."""
    script = folder / "use.py"
    script.write_text("\n".join([*lines, "import json", then]) + "\n")
    done = subprocess.run(
        [python, "-I", script], cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    printed, answer = done.stdout.strip("\n").rpartition("\n")[::2]
    return printed, json.loads(answer)


#: A model of each kind of layer, with the images it is made for.
KNOWN = {"cipher": (28, 28, 1), "resnet": (32, 32, 3), "nin": (32, 32, 3), "cifar10": (32, 32, 3)}
KNOWN |= {"squeezenet": (32, 32, 3), "mobilenet": (32, 32, 3)}
CLASSES = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
OWN = f"{ROOT}/examples/tiny.py:tiny"


@pytest.fixture(params=[OWN, *KNOWN])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> Trained:
    """A model with its run folder; a file of images for programs that know no numpy arrays."""
    shape = KNOWN.get(request.param, (28, 28, 1))
    folder, replica = trained_folder(tmp_path / "run", request.param, "torch", shape)
    some = images(shape).test_images[:IMAGES]
    (tmp_path / "images.json").write_text(json.dumps(some.tolist()))
    return Trained(folder.path, request.param, probabilities(replica, some))


def test_torchscript_loads_where_only_torch_is_installed(
    trained: Trained, tmp_path: Path, clean_python: CleanPython
) -> None:
    made = exported(tmp_path, trained.folder, "model.pt")
    assert made["loads_with"] == ["torch"]
    then = (
        "some = torch.tensor(json.load(open('images.json')), dtype=torch.uint8)\n"
        "print(json.dumps([model(some).tolist(), model(some.float()).tolist(), extra['classes.txt'].decode()]))"
    )
    printed, (outputs, of_floats, names) = run_lines(clean_python("torch"), tmp_path, made["lines"], then)
    assert printed in CLASSES and names.split("\n") == CLASSES == made["classes"]
    np.testing.assert_allclose(outputs, trained.probabilities, atol=1e-4)
    assert of_floats == outputs


def test_safetensors_load_where_only_torch_and_safetensors_are_installed(
    trained: Trained, tmp_path: Path, clean_python: CleanPython
) -> None:
    made = exported(tmp_path, trained.folder, "my-model.safetensors")
    assert made["loads_with"] == ["torch", "safetensors"]
    scaled = "torch.softmax(model(some.permute(0, 3, 1, 2) * (2 / 255) - 1), 1)"  # one's own module gives logits
    then = (
        "some = torch.tensor(json.load(open('images.json')), dtype=torch.uint8)\n"
        f"outputs = {scaled if trained.model == OWN else 'model(some)'}\n"
        "metadata = safetensors.safe_open('my-model.safetensors', 'pt').metadata()\n"
        "print(json.dumps([outputs.tolist(), metadata]))"
    )
    python = clean_python("torch", "safetensors")
    printed, (outputs, metadata) = run_lines(python, tmp_path, made["lines"], then)
    assert printed in CLASSES and metadata["classes"].split("\n") == CLASSES
    assert (tmp_path / "my_model.py").exists() == (trained.model != OWN)
    np.testing.assert_allclose(outputs, trained.probabilities, atol=1e-4)


def test_onnx_loads_where_only_onnxruntime_is_installed(
    trained: Trained, tmp_path: Path, clean_python: CleanPython
) -> None:
    made = exported(tmp_path, trained.folder, "model.onnx")
    assert made["loads_with"] == ["onnxruntime"]
    then = (
        "some = numpy.array(json.load(open('images.json')), numpy.uint8)\n"
        "print(json.dumps(session.run(None, {'images': some})[0].tolist()))"
    )
    printed, outputs = run_lines(clean_python("onnxruntime"), tmp_path, made["lines"], then)
    assert printed in CLASSES
    np.testing.assert_allclose(outputs, trained.probabilities, atol=1e-4)


#: Every kind of layer; the user's own model of this file is one of torch.
@pytest.mark.parametrize("trained", [*KNOWN], indirect=True)
@needs("tensorflow")
def test_keras_files_load_where_only_tensorflow_is_installed(
    trained: Trained, tmp_path: Path, clean_python: CleanPython
) -> None:
    made = exported(tmp_path, trained.folder, "model.keras")
    assert made["loads_with"] == ["tensorflow"]
    then = (
        "some = tf.constant(json.load(open('images.json')), tf.uint8)\n"
        "print(json.dumps([model(some).numpy().tolist(), classes]))"
    )
    printed, (outputs, classes) = run_lines(clean_python("tensorflow"), tmp_path, made["lines"], then)
    assert printed in CLASSES and classes == CLASSES
    np.testing.assert_allclose(outputs, trained.probabilities, atol=1e-4)


#: As in a language model: words are (time, batch), and a hidden state is passed on.
WORDS = """
from types import SimpleNamespace
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.rnn, self.decoder = nn.Embedding(20, 6), nn.LSTM(6, 6), nn.Linear(6, 20)
        self.decoder.weight = self.encoder.weight

    def forward(self, words, hidden):
        found, hidden = self.rnn(self.encoder(words), hidden)
        return self.decoder(found), hidden

def forward(model, batch):
    hidden = tuple(torch.zeros(2, 1, len(batch[0]), 6))
    return model(batch[0].T, hidden)[0].flatten(0, 1), batch[1].T.flatten()

def job():
    texts = TensorDataset(*torch.randint(0, 20, (2, 12, 7)))
    return SimpleNamespace(model=Words(), train=texts, test=texts, loss=nn.functional.cross_entropy, forward=forward)
"""


def test_weights_of_a_recurrent_job_load_into_its_own_class_in_a_fresh_process(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(WORDS)
    with contextlib.chdir(tmp_path):
        folder = trained_job_folder(Path("run"), "words.py:job").path
    command = run(tmp_path, "export", str(folder), "--to", "model.pth", "--json")
    assert command.popen.returncode == 0, command.errors
    own = "import sys; sys.path.insert(0, '.')\nimport torch\nfrom words import Words\nmodel = Words()"
    strictly = "print(model.load_state_dict(torch.load('model.pth', weights_only=True)))"
    then = "print(json.dumps(model.decoder.weight.tolist()))"
    printed, weights = run_lines(Path(sys.executable), tmp_path, [own, strictly], then)
    assert printed == "<All keys matched successfully>"
    with np.load(tmp_path / "run/checkpoint.npz") as saved:
        assert (np.float32(weights) == saved["weights/encoder.weight"]).all()
    printed, _ = run_lines(Path(sys.executable), tmp_path, json.loads(command.output)["lines"], "print(0)")
    assert "tensor" in printed


KERAS = """
from types import SimpleNamespace
import tensorflow as tf

class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)

    def call(self, given):
        return self.dense(given["x"])

def job():
    data = tf.data.Dataset.from_tensor_slices(({"x": tf.random.normal((12, 8))}, tf.random.normal((12, 1))))
    return SimpleNamespace(model=Net(), train=data, test=data, loss=tf.keras.losses.MeanSquaredError())
"""


@needs("tensorflow")
def test_weights_of_a_keras_class_load_into_it_in_a_fresh_process(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(KERAS)
    with contextlib.chdir(tmp_path):
        folder = trained_job_folder(Path("run"), "net.py:job", "tensorflow").path
    whole = run(tmp_path, "export", str(folder), "--to", "model.keras")
    assert whole.popen.returncode == 1
    assert "its file does not load: TypeError: Could not locate class 'Net'" in whole.last_line
    assert whole.last_line.endswith("export its weights to model.weights.h5")
    command = run(tmp_path, "export", str(folder), "--to", "model.weights.h5", "--json")
    assert command.popen.returncode == 0, command.errors
    lines = [*json.loads(command.output)["lines"][:-1], "print()"]
    _, weights = run_lines(
        Path(sys.executable), tmp_path, lines, "print(json.dumps(model.dense.kernel.numpy().tolist()))"
    )
    with np.load(tmp_path / "run/checkpoint.npz") as saved:
        assert (np.float32(weights) == saved["weights/0_kernel"]).all()
