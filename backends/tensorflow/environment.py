"""This module sets TensorFlow's environment variables; import it before TensorFlow."""

import logging
import os

# Errors only: else TensorFlow logs much to standard error, and warns of retracing when the next
# model is built.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
logging.getLogger("tensorflow").setLevel(logging.ERROR)
# Allocate GPU memory as needed: else all of it is reserved, which on a Jetson is also the main
# memory.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
# Keras 3 has other backends too, whose variables are not TensorFlow's.
os.environ["KERAS_BACKEND"] = "tensorflow"
