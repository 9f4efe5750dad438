"""Import this before TensorFlow: it sets the variables that TensorFlow reads."""

import logging
import os

# Errors only: it tells much of itself on standard error, and warns of tracing again where the
# next model is built.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
logging.getLogger("tensorflow").setLevel(logging.ERROR)
# Memory as it is needed: else a GPU is taken whole, which on a Jetson is all the memory there is.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
# Keras 3 has other backends too, whose variables are none of TensorFlow's.
os.environ["KERAS_BACKEND"] = "tensorflow"
