"""MobileNet v1 is described here at width 1.0."""

from typing import Any, Tuple

from backends.models.layers import BatchNorm, Conv, Dense, Depthwise, GlobalAveragePool, Model, Published, Relu, Shape

SOURCE = "A. Howard et al., MobileNets, 2017; trainable parameters of keras.applications.MobileNet"

#: Output channels and stride of each depthwise separable block (table 1).
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)) + ((512, 1),) * 5 + ((1024, 2), (1024, 1))


def mobilenet(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """28 layers, where depthwise and pointwise convolutions count separately."""
    layers: Tuple[Any, ...] = (Conv(32, 3, 2, 1, bias=False), BatchNorm(), Relu())
    for channels, stride in BLOCKS:
        layers += (Depthwise(3, stride, 1), BatchNorm(), Relu())
        layers += (Conv(channels, 1, bias=False), BatchNorm(), Relu())
    layers += (GlobalAveragePool(), Dense(classes))
    return Model("mobilenet", input_shape, classes, layers, SOURCE, Published(4231976, (224, 224, 3), 1000))
