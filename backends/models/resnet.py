"""Residual networks are described here: ResNet-20 for 32x32 images, 50 and 152 for ImageNet."""

from typing import Any, Tuple

from backends.models.layers import (
    BatchNorm,
    Conv,
    Dense,
    GlobalAveragePool,
    MaxPool,
    Model,
    Published,
    Relu,
    Residual,
    Shape,
    Subsample,
)

SOURCE = "K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016"


def resnet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """ResNet-20 of section 4.2 with shortcuts of type A (no parameters), as in the paper."""
    layers: Tuple[Any, ...] = (Conv(16, 3, 1, 1, bias=False), BatchNorm(), Relu())
    for channels in (16, 32, 64):
        for index in range(3):
            shrinks = channels > 16 and index == 0
            layers += _basic(channels, 2 if shrinks else 1, (Subsample(channels, 2),) if shrinks else ())
    layers += (GlobalAveragePool(), Dense(classes))
    return Model("resnet", input_shape, classes, layers, SOURCE, Published(270000, (32, 32, 3), 10))


def resnet50(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """Bottleneck blocks 3, 4, 6, 3 with the stride in the 3x3 convolution, as in torchvision."""
    return _imagenet("resnet50", (3, 4, 6, 3), input_shape, classes, 25557032)


def resnet152(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """Bottleneck blocks 3, 8, 36, 3 with the stride in the 3x3 convolution, as in torchvision."""
    return _imagenet("resnet152", (3, 8, 36, 3), input_shape, classes, 60192808)


def _imagenet(name: str, blocks: Tuple[int, ...], input_shape: Shape, classes: int, parameters: int) -> Model:
    layers: Tuple[Any, ...] = (Conv(64, 7, 2, 3, bias=False), BatchNorm(), Relu(), MaxPool(3, 2, 1))
    for stage, count in enumerate(blocks):
        for index in range(count):
            layers += _bottleneck(64 << stage, 2 if stage and not index else 1, projected=not index)
    layers += (GlobalAveragePool(), Dense(classes))
    published = Published(parameters, (224, 224, 3), 1000)
    return Model(name, input_shape, classes, layers, SOURCE + "; torchvision " + name, published)


def _basic(channels: int, stride: int, shortcut: Tuple[Any, ...]) -> Tuple[Any, ...]:
    branch = (
        Conv(channels, 3, stride, 1, bias=False),
        BatchNorm(),
        Relu(),
        Conv(channels, 3, 1, 1, bias=False),
        BatchNorm(),
    )
    return (Residual(branch, shortcut), Relu())


def _bottleneck(channels: int, stride: int, projected: bool) -> Tuple[Any, ...]:
    branch = (
        Conv(channels, 1, bias=False),
        BatchNorm(),
        Relu(),
        Conv(channels, 3, stride, 1, bias=False),
        BatchNorm(),
        Relu(),
        Conv(4 * channels, 1, bias=False),
        BatchNorm(),
    )
    shortcut = (Conv(4 * channels, 1, stride, bias=False), BatchNorm()) if projected else ()
    return (Residual(branch, shortcut), Relu())
