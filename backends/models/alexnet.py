"""AlexNet: Krizhevsky's single-tower form of 2014."""

from backends.models.layers import Conv, Dense, Dropout, Flatten, MaxPool, Model, Published, Relu, Shape

SOURCE = "A. Krizhevsky, One weird trick for parallelizing CNNs, arXiv:1404.5997, 2014; torchvision alexnet"


def alexnet(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """From 64 pixels on, the published network. Below, its first convolution (11x11, stride 4) is
    replaced by 3x3 at stride 1, so that 32x32 reaches the dense layers as 3x3; the rest
    stays, dense layers of 4096 units included."""
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
