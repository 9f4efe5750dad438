"""SqueezeNet is described here in version 1.1."""

from typing import Any, Tuple

from backends.models.layers import Concat, Conv, Dropout, GlobalAveragePool, MaxPool, Model, Published, Relu, Shape

SOURCE = "F. Iandola et al., SqueezeNet, 2016, release v1.1; torchvision squeezenet1_1"


def squeezenet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """The published network for images of 64 pixels or more.

    For smaller images the first convolution has stride 1 and padding 1, with the same number of
    weights. A 32x32 image then ends as 3x3.
    """
    stem = Conv(64, 3, 2) if min(input_shape[:2]) >= 64 else Conv(64, 3, 1, 1)
    layers = (
        (stem, Relu(), MaxPool(3, 2))
        + _fire(16, 64)
        + _fire(16, 64)
        + (MaxPool(3, 2),)
        + _fire(32, 128)
        + _fire(32, 128)
        + (MaxPool(3, 2),)
        + _fire(48, 192)
        + _fire(48, 192)
        + _fire(64, 256)
        + _fire(64, 256)
        + (Dropout(0.5), Conv(classes, 1), Relu(), GlobalAveragePool())
    )
    return Model("squeezenet", input_shape, classes, layers, SOURCE, Published(1235496, (224, 224, 3), 1000))


def _fire(squeeze: int, expand: int) -> Tuple[Any, ...]:
    one, three = (Conv(expand, 1), Relu()), (Conv(expand, 3, 1, 1), Relu())
    return (Conv(squeeze, 1), Relu(), Concat((one, three)))
