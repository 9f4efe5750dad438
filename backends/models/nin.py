"""Network in Network is described in its form for CIFAR-10."""

from typing import Any, Tuple

from backends.models.layers import AveragePool, Conv, Dropout, GlobalAveragePool, MaxPool, Model, Published, Relu, Shape

SOURCE = "M. Lin et al., Network in Network, 2014; size: J. Springenberg et al., All-CNN, 2015"


def nin(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """Three blocks of a convolution and two 1x1 convolutions.

    The class maps are averaged without the last ReLU of the authors' code. With it, training stalls
    as soon as all class maps are negative.
    """
    layers = (
        _block(5, 192, 160, 96)
        + (MaxPool(3, 2, 1), Dropout(0.5))
        + _block(5, 192, 192, 192)
        + (AveragePool(3, 2, 1), Dropout(0.5))
        + _block(3, 192, 192, classes)[:-1]
        + (GlobalAveragePool(),)
    )
    return Model("nin", input_shape, classes, layers, SOURCE, Published(1000000, (32, 32, 3), 10))


def _block(kernel: int, first: int, second: int, third: int) -> Tuple[Any, ...]:
    return (Conv(first, kernel, 1, kernel // 2), Relu(), Conv(second, 1), Relu(), Conv(third, 1), Relu())
