"""A network that classifies images becomes a job with TensorFlow's operations."""

from typing import Any, Tuple

import tensorflow as tf

from backends.jobs.job import ACCURACY, Job, Metric
from backends.models.layers import Shape


def image_job(network: Any, input_shape: Shape, classes: int) -> Job:
    """A job of images and labels, for a network that maps scaled images to (batch, classes)."""
    return Job(network, _forward, _loss, {ACCURACY: Metric(_accuracy)}, input_shape, classes)


def scaled(images: tf.Tensor) -> tf.Tensor:
    """(batch, height, width, channels) -> float32: bytes as -1 to 1, floats as they are."""
    floats = tf.cast(images, tf.float32)
    return floats if images.dtype.is_floating else floats * (2 / 255.0) - 1.0


def _forward(network: Any, batch: Any, training: bool, step: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    images, labels = batch
    return network(scaled(images), training, step), labels


def _loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def _accuracy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
