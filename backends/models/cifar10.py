"""The convolutional network of TensorFlow's CIFAR-10 tutorial is described here."""

from backends.models.layers import Conv, Dense, Flatten, LocalResponseNorm, MaxPool, Model, Published, Relu, Shape

SOURCE = "TensorFlow tutorials, Advanced Convolutional Neural Networks (deep_cnn)"


def cifar10(input_shape: Shape = (32, 32, 3), classes: int = 10) -> Model:
    """The tutorial's network for 32x32 images, as in the paper.

    The tutorial crops images to 24x24; its parameter count holds for that size.
    """
    norm = LocalResponseNorm(9, 0.001 / 9.0, 0.75, 1.0)
    layers = (
        Conv(64, 5, 1, 2),
        Relu(),
        MaxPool(3, 2, 1),
        norm,
        Conv(64, 5, 1, 2),
        Relu(),
        norm,
        MaxPool(3, 2, 1),
        Flatten(),
        Dense(384),
        Relu(),
        Dense(192),
        Relu(),
        Dense(classes),
    )
    return Model("cifar10", input_shape, classes, layers, SOURCE, Published(1068298, (24, 24, 3), 10))
