"""Models are data: named descriptions that every framework builds with its own layers."""

import difflib
import hashlib
from typing import Callable, Dict, Optional, Union

from backends.models import zoo
from backends.models.layers import Model, Shape
from backends.models.shapes import initial_weights, size, trace
from backends.models.user import is_user_model
from backends.models.user_source import locate, source_files

__all__ = [
    "MODELS",
    "Model",
    "agree",
    "described",
    "fingerprint",
    "initial_weights",
    "is_user_model",
    "model",
    "multiply_adds",
    "parameter_count",
]

#: Command-line name -> function of (input_shape, classes), each with the defaults of its source.
MODELS: Dict[str, Callable[..., Model]] = {
    "alexnet": zoo.alexnet,
    "cifar10": zoo.cifar10,
    "cipher": zoo.cipher,
    "mobilenet": zoo.mobilenet,
    "nin": zoo.nin,
    "resnet": zoo.resnet,
    "resnet50": zoo.resnet50,
    "resnet152": zoo.resnet152,
    "squeezenet": zoo.squeezenet,
    "vgg19": zoo.vgg19,
}


def model(name: str, input_shape: Optional[Shape] = None, classes: Optional[int] = None) -> Model:
    """The description of a named model, for a data set's input shape and classes where given.

    Raises ValueError for an unknown name or an input too small for the model.
    """
    if name not in MODELS:
        near = difflib.get_close_matches(name.lower(), MODELS, 1)
        raise ValueError(
            "unknown model %r%s; known: %s, or path/to/file.py:function"
            % (name, ", did you mean %r?" % near[0] if near else "", ", ".join(MODELS))
        )
    given = {"input_shape": input_shape and tuple(input_shape), "classes": classes}
    description = MODELS[name](**{key: value for key, value in given.items() if value is not None})
    trace(description)
    return description


def described(name: Union[str, Model], input_shape: Optional[Shape], classes: Optional[int]) -> Model:
    """A model by its name, or a description as it is. Raises ValueError where data do not fit."""
    found = model(name, input_shape, classes) if isinstance(name, str) else name
    agree(found.name, found.input_shape, found.classes, input_shape, classes)
    return found


def agree(name: str, own_shape: Shape, own_classes: int, input_shape: Optional[Shape], classes: Optional[int]) -> None:
    """Raise ValueError where a model's input shape or classes differ from the data's.

    input_shape, classes: of the data; None where not known, which agrees with every model.
    """
    if input_shape is not None and tuple(input_shape) != own_shape:
        raise ValueError("model %s takes images of %s, the data are %s" % (name, own_shape, tuple(input_shape)))
    if classes is not None and own_classes != classes:
        raise ValueError("model %s has %d outputs, the data %d classes" % (name, own_classes, classes))


def parameter_count(model: Model) -> int:
    """Number of trained values."""
    return sum(size(shape) for _, shape in trace(model).variables)


def multiply_adds(model: Model) -> int:
    """Multiply-adds of one forward pass of one image, in convolutions and dense layers."""
    return trace(model).multiply_adds


def fingerprint(model: Union[Model, str]) -> str:
    """Twelve hexadecimal digits that identify the computation of a model.

    They depend on the description's input, classes and layers, or on the source of the user's file
    and of the files in its folder that it imports. Raises ValueError as ``source_files`` does.
    """
    if isinstance(model, str):
        own, *others = source_files(model)
        content = locate(model)[1].encode() + b"\n" + own.content
        for each in others:
            content += b"\n" + each.name.encode() + b"\n" + each.content
    else:
        content = repr((model.input_shape, model.classes, model.layers)).encode()
    return hashlib.sha256(content).hexdigest()[:12]
