"""Images of floats, from the files to the exported model, train what the same bytes do."""

import json
from pathlib import Path

import numpy as np
import pytest

from backends import models
from backends.training import checkpoint
from planner.train.training_data import load_dataset
from tests.installed import needs
from tests.planner.plans import replan
from tests.running import FASHION, Command, fleet_file, gone, plan_file, run

STEPS, COUNT = 6, 64
ONE_THREAD = {"environment": {"OMP_NUM_THREADS": "1"}}
#: Both members wait for one another, so that only rounding differs.
ENGINES = {
    "planner": {"strategy": "allreduce"},
    "torch": {"engine": "torch", "strategy": "allreduce"},
}


def succeeded(folder: Path, *arguments: str) -> Command:
    command = run(folder, *arguments)
    assert command.popen.returncode == 0, command.errors
    return command


def saved(folder: Path, scaled: bool) -> str:
    """A directory with the first images, as bytes in an .npz or scaled in .npy files."""
    found = load_dataset(str(FASHION))
    images = [each[:COUNT] for each in (found.train_images, found.test_images)]
    labels = [each[:COUNT] for each in (found.train_labels, found.test_labels)]
    (folder / "data").mkdir(parents=True)
    if scaled:
        images = [each / 127.5 - 1 for each in images]  # float64
    arrays = {"x_train": images[0], "y_train": labels[0], "x_test": images[1], "y_test": labels[1]}
    if not scaled:
        np.savez(folder / "data" / "set.npz", **arrays)
    for name, values in arrays.items() if scaled else ():
        np.save(folder / "data" / f"{name}.npy", values)
    return str(folder / "data")


@needs("torch", "tensorflow")
@pytest.mark.parametrize("engine", ENGINES)
def test_floats_train_and_export_as_the_bytes_do(tmp_path: Path, engine: str) -> None:
    left = []
    other = "tensorflow" if engine == "planner" else "torch"
    cipher = models.fingerprint(models.model("cipher", (28, 28, 1), 10))
    for scaled in (False, True):
        folder = tmp_path / ("floats" if scaled else "bytes")
        data = saved(folder, scaled)
        fleet_file(folder, {"desktop": ONE_THREAD, "tx2": ONE_THREAD})
        plan_file(folder / "plan.json", "cipher", ["desktop", "tx2"], STEPS, cipher, {"tx2": other})
        replan(folder, **ENGINES[engine])
        told = succeeded(folder, "train", "--data", data, "--heartbeat", "60", "--momentum", "0.5", "--json")
        (run_folder,) = (folder / "runs").iterdir()
        kept = checkpoint.read(str(run_folder / "checkpoint.npz"))
        left.append((kept.weights, json.loads(told.output)["evaluations"][-1]["loss"]))
        assert kept.meta["image_dtype"] == ("float32" if scaled else "uint8")
        gone(folder)
    (of_bytes, loss), (of_floats, floats_loss) = left
    np.testing.assert_allclose(of_floats, of_bytes, atol=1e-5)
    assert floats_loss == pytest.approx(loss, rel=1e-4)

    made = json.loads(succeeded(folder, "export", str(run_folder), "--to", "model.pt", "--json").output)
    (images,) = made["inputs"]
    assert (images["name"], images["dtype"], images["shape"]) == ("images", "float32", [None, 28, 28, 1])
    assert "images = torch.zeros((1, 28, 28, 1), dtype=torch.float32)  # put yours here" in made["lines"]
