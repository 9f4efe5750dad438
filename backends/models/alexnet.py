"""AlexNet is described in the single-tower form of Krizhevsky (2014)."""

from backends.models.layers import Conv, Dense, Dropout, Flatten, MaxPool, Model, Published, Relu, Shape

SOURCE = "A. Krizhevsky, One weird trick for parallelizing CNNs, arXiv:1404.5997, 2014; torchvision alexnet"


def alexnet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """The published network for images of 64 pixels or more.

    For smaller images a 3x3 convolution of stride 1 replaces the first one (11x11, stride 4). A
    32x32 image then reaches the dense layers as 3x3. The other layers stay the same, including the
    dense layers of 4096 units.
    """
    stem = Conv(64, 11, 4, 2) if min(input_shape[:2]) >= 64 else Conv(64, 3, 1, 1)
    layers = (
        stem,
        Relu(),
        MaxPool(3, 2),
        Conv(192, 5, 1, 2),
        Relu(),
        MaxPool(3, 2),
        Conv(384, 3, 1, 1),
        Relu(),
        Conv(256, 3, 1, 1),
        Relu(),
        Conv(256, 3, 1, 1),
        Relu(),
        MaxPool(3, 2),
        Flatten(),
        Dropout(0.5),
        Dense(4096),
        Relu(),
        Dropout(0.5),
        Dense(4096),
        Relu(),
        Dense(classes),
    )
    return Model("alexnet", input_shape, classes, layers, SOURCE, Published(61100840, (224, 224, 3), 1000))
