"""Cipher is the small network of DLion and Ako."""

from backends.models.layers import Conv, Dense, Flatten, MaxPool, Model, Relu, Shape

SOURCE = "R. Hong and A. Chandra, DLion, HPDC 2021, section 5.1.1"


def cipher(input_shape: Shape = (28, 28, 1), classes: int = 10) -> Model:
    """Three convolutions of 10, 20 and 100 kernels, 200 dense neurons, ReLU, max-pooling, "5 MB".

    Kernel sizes and pools are not printed. Unpadded 5x5 kernels and one 2x2 pool before the dense
    layers give 5.35 MB (5.10 MiB) on 28x28x1, the nearest simple arrangement: with a pool
    after each padded convolution it would be 0.95 MB.
    """
    layers = (
        Conv(10, 5),
        Relu(),
        Conv(20, 5),
        Relu(),
        Conv(100, 5),
        Relu(),
        MaxPool(2, 2),
        Flatten(),
        Dense(200),
        Relu(),
        Dense(classes),
    )
    return Model("cipher", input_shape, classes, layers, SOURCE)
