"""The networks of the papers are described here by their layers.

Each is a function of an input shape and a number of classes, with the defaults of its source.
"""

from typing import Any, Tuple

from backends.models.layers import (
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Depthwise,
    Dropout,
    Flatten,
    GlobalAveragePool,
    LocalResponseNorm,
    MaxPool,
    Model,
    Relu,
    Residual,
    Shape,
    Subsample,
)

RESNET = "K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016"
#: Output channels and stride of each depthwise separable block of MobileNet (table 1).
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)) + ((512, 1),) * 5 + ((1024, 2), (1024, 1))


def alexnet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """The single-tower network, for images of 64 pixels or more.

    For smaller images a 3x3 convolution of stride 1 replaces the first one (11x11, stride 4); a
    32x32 image then reaches the dense layers as 3x3.
    """
    stem = Conv(64, 11, 4, 2) if min(input_shape[:2]) >= 64 else Conv(64, 3, 1, 1)
    source = "A. Krizhevsky, One weird trick for parallelizing CNNs, arXiv:1404.5997, 2014; torchvision alexnet"
    layers = (
        (stem, Relu(), MaxPool(3, 2))
        + (Conv(192, 5, 1, 2), Relu(), MaxPool(3, 2))
        + (Conv(384, 3, 1, 1), Relu(), Conv(256, 3, 1, 1), Relu(), Conv(256, 3, 1, 1), Relu(), MaxPool(3, 2))
        + (Flatten(), Dropout(0.5), Dense(4096), Relu(), Dropout(0.5), Dense(4096), Relu(), Dense(classes))
    )
    return Model("alexnet", input_shape, classes, layers, source)


def cifar10(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """The tutorial's network for 32x32 images, as in the paper.

    The tutorial crops images to 24x24; its parameter count holds for that size.
    """
    norm = LocalResponseNorm(9, 0.001 / 9.0, 0.75, 1.0)
    source = "TensorFlow tutorials, Advanced Convolutional Neural Networks (deep_cnn)"
    layers = (
        (Conv(64, 5, 1, 2), Relu(), MaxPool(3, 2, 1), norm)
        + (Conv(64, 5, 1, 2), Relu(), norm, MaxPool(3, 2, 1))
        + (Flatten(), Dense(384), Relu(), Dense(192), Relu(), Dense(classes))
    )
    return Model("cifar10", input_shape, classes, layers, source)


def cipher(input_shape: Shape = (28, 28, 1), classes: int = 10) -> Model:
    """Three convolutions of 10, 20 and 100 kernels, 200 dense neurons, ReLU, max-pooling, "5 MB".

    Kernel sizes and pools are not printed. Unpadded 5x5 kernels and one 2x2 pool before the dense
    layers give 5.35 MB (5.10 MiB) on 28x28x1, the nearest simple arrangement: with a pool
    after each padded convolution it would be 0.95 MB.
    """
    source = "R. Hong and A. Chandra, DLion, HPDC 2021, section 5.1.1"
    convolutions = (Conv(10, 5), Relu(), Conv(20, 5), Relu(), Conv(100, 5), Relu(), MaxPool(2, 2))
    layers = convolutions + (Flatten(), Dense(200), Relu(), Dense(classes))
    return Model("cipher", input_shape, classes, layers, source)


def mobilenet(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """28 layers, where depthwise and pointwise convolutions count separately."""
    source = "A. Howard et al., MobileNets, 2017; trainable parameters of keras.applications.MobileNet"
    layers: Tuple[Any, ...] = (Conv(32, 3, 2, 1, bias=False), BatchNorm(), Relu())
    for channels, stride in BLOCKS:
        layers += (Depthwise(3, stride, 1), BatchNorm(), Relu())
        layers += (Conv(channels, 1, bias=False), BatchNorm(), Relu())
    layers += (GlobalAveragePool(), Dense(classes))
    return Model("mobilenet", input_shape, classes, layers, source)


def nin(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """Three blocks of a convolution and two 1x1 convolutions.

    The class maps are averaged without the last ReLU of the authors' code. With it, training stalls
    as soon as all class maps are negative.
    """
    source = "M. Lin et al., Network in Network, 2014; size: J. Springenberg et al., All-CNN, 2015"
    layers = (
        _nin_block(5, 192, 160, 96)
        + (MaxPool(3, 2, 1), Dropout(0.5))
        + _nin_block(5, 192, 192, 192)
        + (AveragePool(3, 2, 1), Dropout(0.5))
        + _nin_block(3, 192, 192, classes)[:-1]
        + (GlobalAveragePool(),)
    )
    return Model("nin", input_shape, classes, layers, source)


def _nin_block(kernel: int, first: int, second: int, third: int) -> Tuple[Any, ...]:
    return (Conv(first, kernel, 1, kernel // 2), Relu(), Conv(second, 1), Relu(), Conv(third, 1), Relu())


def resnet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """ResNet-20 of section 4.2 with shortcuts of type A (no parameters), as in the paper."""
    layers: Tuple[Any, ...] = (Conv(16, 3, 1, 1, bias=False), BatchNorm(), Relu())
    for channels in (16, 32, 64):
        for index in range(3):
            shrinks = channels > 16 and index == 0
            layers += _basic(channels, 2 if shrinks else 1, (Subsample(channels, 2),) if shrinks else ())
    layers += (GlobalAveragePool(), Dense(classes))
    return Model("resnet", input_shape, classes, layers, RESNET)


def resnet50(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """Bottleneck blocks 3, 4, 6, 3 with the stride in the 3x3 convolution, as in torchvision."""
    return _imagenet("resnet50", (3, 4, 6, 3), input_shape, classes)


def resnet152(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """Bottleneck blocks 3, 8, 36, 3 with the stride in the 3x3 convolution, as in torchvision."""
    return _imagenet("resnet152", (3, 8, 36, 3), input_shape, classes)


def _imagenet(name: str, blocks: Tuple[int, ...], input_shape: Shape, classes: int) -> Model:
    layers: Tuple[Any, ...] = (Conv(64, 7, 2, 3, bias=False), BatchNorm(), Relu(), MaxPool(3, 2, 1))
    for stage, count in enumerate(blocks):
        for index in range(count):
            layers += _bottleneck(64 << stage, 2 if stage and not index else 1, projected=not index)
    layers += (GlobalAveragePool(), Dense(classes))
    return Model(name, input_shape, classes, layers, RESNET + "; torchvision " + name)


def _basic(channels: int, stride: int, shortcut: Tuple[Any, ...]) -> Tuple[Any, ...]:
    first = (Conv(channels, 3, stride, 1, bias=False), BatchNorm(), Relu())
    branch = first + (Conv(channels, 3, 1, 1, bias=False), BatchNorm())
    return (Residual(branch, shortcut), Relu())


def _bottleneck(channels: int, stride: int, projected: bool) -> Tuple[Any, ...]:
    narrow = (Conv(channels, 1, bias=False), BatchNorm(), Relu())
    middle = (Conv(channels, 3, stride, 1, bias=False), BatchNorm(), Relu())
    branch = narrow + middle + (Conv(4 * channels, 1, bias=False), BatchNorm())
    shortcut = (Conv(4 * channels, 1, stride, bias=False), BatchNorm()) if projected else ()
    return (Residual(branch, shortcut), Relu())


def squeezenet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """The published network for images of 64 pixels or more.

    For smaller images the first convolution has stride 1 and padding 1, with the same number of
    weights. A 32x32 image then ends as 3x3.
    """
    stem = Conv(64, 3, 2) if min(input_shape[:2]) >= 64 else Conv(64, 3, 1, 1)
    source = "F. Iandola et al., SqueezeNet, 2016, release v1.1; torchvision squeezenet1_1"
    layers = (
        (stem, Relu(), MaxPool(3, 2))
        + _fire(16, 64) * 2
        + (MaxPool(3, 2),)
        + _fire(32, 128) * 2
        + (MaxPool(3, 2),)
        + _fire(48, 192) * 2
        + _fire(64, 256) * 2
        + (Dropout(0.5), Conv(classes, 1), Relu(), GlobalAveragePool())
    )
    return Model("squeezenet", input_shape, classes, layers, source)


def _fire(squeeze: int, expand: int) -> Tuple[Any, ...]:
    one, three = (Conv(expand, 1), Relu()), (Conv(expand, 3, 1, 1), Relu())
    return (Conv(squeeze, 1), Relu(), Concat((one, three)))


def vgg19(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """Configuration E: 16 3x3 convolutions and 3 dense layers, for images of 32 pixels or more."""
    source = "K. Simonyan and A. Zisserman, Very Deep Convolutional Networks, ICLR 2015; torchvision vgg19"
    layers: Tuple[Any, ...] = ()
    for channels, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        layers += (Conv(channels, 3, 1, 1), Relu()) * count + (MaxPool(2, 2),)
    layers += (Flatten(),) + (Dense(4096), Relu(), Dropout(0.5)) * 2 + (Dense(classes),)
    return Model("vgg19", input_shape, classes, layers, source)
