"""This view lists the known models with their sizes and sources."""

from typing import Any

from rich.console import RenderableType

from backends import models
from planner.units import bytes_text, number
from planner.views.tables import TextTable

#: Weights are kept and sent as float32.
BYTES_EACH = 4


def to_json() -> dict[str, Any]:
    """{"models": [{"name", "input_shape", "classes", "parameters", "bytes", "multiply_adds",
    "source"}]}.

    Each with the input and classes of its source; multiply_adds: of one forward pass of one image.
    """
    return {"models": [_row(models.model(name)) for name in models.MODELS]}


def render() -> RenderableType:
    """The same as a table."""
    columns = ("model", "input", "parameters", "bytes", "multiply-adds", "source")
    made = TextTable("models", columns, left=("model", "input", "source"), optional=("bytes", "input"))
    for row in to_json()["models"]:
        made.add_row(
            row["name"], "x".join(map(str, row["input_shape"])), f"{row['parameters']:,}",
            bytes_text(row["bytes"]), number(row["multiply_adds"]), row["source"],
        )  # fmt: skip
    return made


def _row(model: models.Model) -> dict[str, Any]:
    parameters = models.parameter_count(model)
    return {
        "name": model.name,
        "input_shape": list(model.input_shape),
        "classes": model.classes,
        "parameters": parameters,
        "bytes": BYTES_EACH * parameters,
        "multiply_adds": models.multiply_adds(model),
        "source": model.source,
    }
