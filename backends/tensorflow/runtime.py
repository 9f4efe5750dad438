"""The TensorFlow runtime has a version, an accelerator and a number of threads."""

import platform
from typing import Tuple

import tensorflow as tf

from backends.frameworks.base import usable_threads
from profilers import cores, device_facts
from profilers.file_tree import FileTree


def version() -> str:
    return str(tf.__version__)


def accelerator() -> Tuple[str, str]:
    """("cuda", GPU name) or ("cpu", processor name). Initialises a GPU, which takes seconds."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "cpu", device_facts.processor(FileTree("/")) or platform.machine()
    use_threads(usable_threads(cores.usable_cores()))  # the runtime starts here, and takes no other number later
    tf.zeros(()).numpy()
    details = tf.config.experimental.get_device_details(gpus[0])
    return "cuda", str(details.get("device_name", gpus[0].name))


def use_threads(threads: int) -> None:
    """Compute each operation on so many CPU threads, one operation at a time.

    The runtime reads the number once; later calls in the same process have no effect.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pass
