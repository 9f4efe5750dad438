"""The lines that `planner export` prints run its file where only the framework is installed."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.e2e.clean_environments import CleanPython
from tests.installed import computes_with, needs
from tests.running import HANG_S, ROOT, run
from tests.trained_runs import images, probabilities, trained_folder

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
    printed, answer = done.stdout.strip().splitlines()
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
