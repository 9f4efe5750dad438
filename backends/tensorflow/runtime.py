"""TensorFlow itself: its version, what it computes on, and on how many threads."""

import platform
from typing import Tuple

import tensorflow as tf

from backends.frameworks.base import usable_threads
from profilers import cores, facts
from profilers.file_tree import FileTree


def version() -> str:
    """Version of tensorflow."""
    return str(tf.__version__)


def accelerator() -> Tuple[str, str]:
    """("cuda", GPU name) or ("cpu", processor name). Initialises a GPU, which takes seconds."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "cpu", facts.processor(FileTree("/")) or platform.machine()
    use_threads(usable_threads(cores.usable_cores()))  # now or never: the runtime starts here
    tf.zeros(()).numpy()
    details = tf.config.experimental.get_device_details(gpus[0])
    return "cuda", str(details.get("device_name", gpus[0].name))


def use_threads(threads: int) -> None:
    """Compute each operation on so many CPU threads, one operation at a time.

    The runtime takes the number once, when it starts: later calls in the same process change
    nothing.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pass
