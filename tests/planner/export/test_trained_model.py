"""What a file tells of its model: classes in the order of outputs, and its input."""

from pathlib import Path

from backends.frameworks.batch_axes import TensorLike
from planner.export.trained_model import TrainedModel, metadata
from planner.export.trained_run import TrainedRun
from planner.paths import RunFolder


def test_texts_by_name_tell_classes_model_steps_and_inputs() -> None:
    run = TrainedRun(RunFolder(Path("run")), "cipher", 60, None)
    images = TensorLike("images", "uint8", (None, 28, 28, 1), (1, 28, 28, 1))
    model = TrainedModel(run, None, ("small dog", "cat, old"), (images,), ())
    assert metadata(model) == {
        "about": "Written by `planner export`",
        "classes": "small dog\ncat, old",
        "model": "cipher",
        "step": "60",
        "inputs": "images: uint8 (batch, 28, 28, 1)",
    }
