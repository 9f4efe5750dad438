"""What a file tells of its model: classes in the order of outputs, and its input."""

from pathlib import Path

from planner.export.trained_model import TensorDescription, TrainedModel, TrainedRun, metadata
from planner.paths import RunFolder


def test_texts_by_name_tell_classes_model_steps_and_inputs() -> None:
    run = TrainedRun(RunFolder(Path("run")), "cipher", 60, None)
    images = TensorDescription("images", "uint8", (None, 28, 28, 1))
    output = TensorDescription("probabilities", "float32", (None, 2))
    model = TrainedModel(run, None, None, ("small dog", "cat, old"), (images,), output)  # type: ignore[arg-type]
    assert metadata(model) == {
        "classes": "small dog\ncat, old",
        "model": "cipher",
        "step": "60",
        "inputs": "images: uint8 (batch, 28, 28, 1)",
    }
