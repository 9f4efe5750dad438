"""A table to learn from: Friedman's first regression problem (1991), with a little noise."""

import numpy as np


def table(rows: int, seed: int) -> tuple:
    """Features, (rows, 10) float32, of which five count, and targets, (rows, 1) float32."""
    random = np.random.default_rng(seed)
    x = random.random((rows, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y = (y + random.normal(0, 0.1, rows) - 14.4) / 4.9  # to mean 0 and variance 1
    return x.astype(np.float32), y[:, None].astype(np.float32)
