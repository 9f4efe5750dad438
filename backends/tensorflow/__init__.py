"""The TensorFlow backend builds described models, and users' Keras models (from 2.4 on)."""

import logging
import os
import platform
from typing import Any, Callable, Optional, Tuple, Union

# These variables are read when TensorFlow is imported.
# Errors only: else it logs much to standard error, and warns of retracing when a model is built.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Allocate GPU memory as needed: else all of it is reserved, which on a Jetson is main memory too.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
# Keras 3 has other backends too, whose variables are not TensorFlow's.
os.environ["KERAS_BACKEND"] = "tensorflow"

import tensorflow as tf

from backends import models
from backends.frameworks.base import usable_threads
from backends.frameworks.device import CPU, CUDA, chosen
from backends.jobs.job import Job, LoadedJob
from backends.jobs.user_job import UserJob
from backends.models.layers import Model, Shape
from backends.tensorflow import jobs, layers, user_model
from backends.tensorflow.gpu_memory import accelerator_memory as accelerator_memory
from backends.tensorflow.gpu_memory import forget_peak_memory as forget_peak_memory
from backends.tensorflow.gpu_memory import is_out_of_memory as is_out_of_memory
from backends.tensorflow.images import image_job
from backends.tensorflow.replica import TensorFlowReplica
from profilers import cpu_quota, device_facts
from profilers.file_tree import FileTree

logging.getLogger("tensorflow").setLevel(logging.ERROR)


def version() -> str:
    """Version of TensorFlow."""
    return str(tf.__version__)


def accelerator() -> Tuple[str, str]:
    """("cuda", GPU name) or ("cpu", processor name). Initialises a GPU, which takes seconds."""
    gpus = tf.config.list_physical_devices("GPU")
    if chosen("TensorFlow", [CUDA, CPU] if gpus else [CPU]) == CPU:
        return CPU, device_facts.processor(FileTree("/")) or platform.machine()
    _use_threads(usable_threads(cpu_quota.usable_cores()))  # the runtime starts here, and takes no other number later
    tf.zeros(()).numpy()
    details = tf.config.experimental.get_device_details(gpus[0])
    return CUDA, str(details.get("device_name", gpus[0].name))


def collectives() -> Tuple[str, ...]:
    """Backends of torch.distributed: none."""
    return ()


def known_job(
    model: Union[str, Model],
    input_shape: Optional[Shape] = None,
    classes: Optional[int] = None,
    seed: int = 0,
    threads: int = 1,
) -> Job:
    """The job of a model of images, see ``frameworks.base.framework``.

    A user's function returns (Keras model or tf.Module, (height, width, channels)). The model maps
    float32 (batch, height, width, channels) to (batch, classes).
    """
    _use_threads(threads)
    accelerator()
    if isinstance(model, str) and models.is_user_model(model):
        own, shape, outputs = user_model.build(model, seed)
        models.agree(model, shape, outputs, input_shape, classes)
        return image_job(own, shape, outputs)
    description = models.described(model, input_shape, classes)
    job = image_job(layers.Described(description, seed), description.input_shape, description.classes)
    return job._replace(initial_weights=models.initial_weights(description, seed))


def load_job(load: Callable[[], UserJob], seed: int, threads: int) -> LoadedJob:
    """A user's job for ``replica``, see ``frameworks.base.framework``."""
    _use_threads(threads)
    accelerator()
    user_model.seed_everything(seed)
    return jobs.load_job(load())


def replica(job: Job) -> TensorFlowReplica:
    """A replica of a job on the first GPU or else on the CPU."""
    return TensorFlowReplica(job, accelerator()[0])


def build(*arguments: Any, **named: Any) -> TensorFlowReplica:
    """A replica of a ``known_job``, with the arguments of that."""
    return replica(known_job(*arguments, **named))


def require_process_group() -> None:
    """Raises ValueError: only PyTorch's replicas average their gradients themselves."""
    raise ValueError("it computes with TensorFlow, and --engine torch needs PyTorch; plan with --framework torch")


def _use_threads(threads: int) -> None:
    """Compute each operation on so many CPU threads, one operation at a time.

    The runtime reads the number once; later calls in the same process have no effect.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pass
