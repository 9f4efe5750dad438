"""What formats that hold texts by name tell of a model."""

from planner.export.trained_model import TrainedModel

#: The names of the classes, a line each, in the order of the outputs.
CLASSES = "classes"


def metadata(model: TrainedModel) -> dict[str, str]:
    """The classes; for people also the model, its steps, and its input."""
    shapes = (f"{each.name}: {each.dtype} {('batch', *each.shape[1:])}".replace("'", "") for each in model.inputs)
    return {
        CLASSES: "\n".join(model.classes),
        "model": model.run.model,
        "step": str(model.run.step),
        "inputs": "\n".join(shapes),
    }
