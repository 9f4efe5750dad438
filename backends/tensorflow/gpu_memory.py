"""Memory that TensorFlow's arrays take on the GPU, and errors for want of memory."""

import gc
from typing import Any, Optional

import tensorflow as tf

from backends.frameworks.base import AcceleratorMemory
from profilers import tegra
from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml

GPU = "GPU:0"


def forget_peak_memory() -> None:
    """Begin anew with the peak; TensorFlow keeps the memory that its pool has grown to."""
    gc.collect()
    experimental: Any = tf.config.experimental
    if tf.config.list_physical_devices("GPU") and hasattr(experimental, "reset_memory_stats"):  # of 2.6
        experimental.reset_memory_stats(GPU)


def accelerator_memory() -> Optional[AcceleratorMemory]:
    """Memory of the first GPU; None without one. TensorFlow before 2.6 tells none."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    experimental: Any = tf.config.experimental
    if not hasattr(experimental, "reset_memory_stats"):
        return AcceleratorMemory(None, None, tegra.is_tegra(FileTree("/")))
    told = experimental.get_memory_info(GPU)
    return AcceleratorMemory(int(told["peak"]), _available_bytes(int(told["current"])), tegra.is_tegra(FileTree("/")))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the GPU's or the host's memory was short."""
    return isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError))


def _available_bytes(own_bytes: int) -> Optional[int]:
    """What is free, and what TensorFlow has already; its pool beyond its arrays is left out."""
    try:
        return nvml.gpus(FileTree("/"))[0].free_bytes() + own_bytes
    except Unavailable:
        return None
