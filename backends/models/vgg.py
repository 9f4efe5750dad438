"""VGG-19 is described here."""

from typing import Any, Tuple

from backends.models.layers import Conv, Dense, Dropout, Flatten, MaxPool, Model, Published, Relu, Shape

SOURCE = "K. Simonyan and A. Zisserman, Very Deep Convolutional Networks, ICLR 2015; torchvision vgg19"


def vgg19(input_shape: Shape = (224, 224, 3), classes: int = 1000) -> Model:
    """Configuration E: 16 3x3 convolutions and 3 dense layers, for images of 32 pixels or more."""
    layers: Tuple[Any, ...] = ()
    for channels, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        layers += (Conv(channels, 3, 1, 1), Relu()) * count + (MaxPool(2, 2),)
    layers += (Flatten(),) + (Dense(4096), Relu(), Dropout(0.5)) * 2 + (Dense(classes),)
    return Model("vgg19", input_shape, classes, layers, SOURCE, Published(143667240, (224, 224, 3), 1000))
