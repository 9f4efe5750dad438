"""A process of TensorFlow's ParameterServerStrategy: a system, run on the devices of a lab.

Speaks as ``ddp_member`` does. Roles: a server and workers, which wait for orders of their own
protocol, and the chief, which hands out steps, keeps a few of each worker waiting, and evaluates.
The network is that of ``small_cipher``, written anew, from the same initial weights. Workers draw
from all images, each in an order of its own.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402 - which would write before it is told not to

from backends.data import dataset  # noqa: E402
from profilers.records.json_values import json_value  # noqa: E402
from profilers.sampling import Sampler  # noqa: E402

#: Steps that wait at the coordinator for each worker: enough that none is idle.
AHEAD = 4
POLL_S = 0.02
CONVOLUTIONS = 3


def main() -> None:
    orders = json.loads(sys.stdin.readline())
    tf.config.threading.set_intra_op_parallelism_threads(1)
    if orders["role"] != "chief":
        spec = tf.train.ClusterSpec(orders["cluster"])
        # A step waits in one of these threads for what it gets from elsewhere; on one core there
        # would be one alone.
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=orders["members"] + 1
        )
        server = tf.distribute.Server(spec, job_name=orders["role"], task_index=orders["index"], config=config)
        assert server.target, "it serves as long as it is kept"
        say({"ready": True})
        sampled(orders, sys.stdin.readline)
        os._exit(0)  # which a server does not do of itself
    chief = Chief(orders)
    chief.rehearse()
    say({"ready": True})
    sys.stdin.readline()
    if "steps" in orders:
        chief.make(orders["steps"])
    else:
        chief.train()
    sys.stdin.readline()
    os._exit(0)  # its threads wait for workers that are gone


def sampled(orders: dict[str, Any], wait: Callable[[], object]) -> None:
    """Wait for the run to begin and end, and report sensor readings where this is asked for."""
    wait()
    sampler = Sampler()
    if orders["samples"]:
        sampler.start()
    wait()
    if orders["samples"]:
        say({"window": json_value(sampler.stop())})


class Chief:
    """The coordinator of a cluster."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self._orders = orders
        spec = tf.train.ClusterSpec(orders["cluster"])
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            spec, rpc_layer="grpc", task_type="chief", task_id=0
        )
        self._strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        with open(orders["whole"], "rb") as train, open(orders["test"], "rb") as test:
            images, self._tests = dataset.unpack(train.read()), dataset.unpack(test.read())
        with np.load(orders["initial"]) as initial:
            arrays = [tensorflows(initial[name]) for name in initial.files]
        with self._strategy.scope():
            self._weights = [tf.Variable(array) for array in arrays]
            self._velocities = [tf.Variable(np.zeros_like(array), trainable=False) for array in arrays]
            self._done = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._iterator = iter(self._coordinator.create_per_worker_dataset(lambda: self._batches(images)))
        self._step = tf.function(self._one_step)
        self._scores = tf.function(self._judge)

    def rehearse(self) -> None:
        """A step of each worker that changes no weight: tracing it is no part of a run."""
        for _ in self._orders["cluster"]["worker"]:
            self._coordinator.schedule(self._step, args=(self._iterator, tf.constant(0.0)))
        self._coordinator.join()
        for velocity in self._velocities:
            velocity.assign(tf.zeros_like(velocity))
        self._done.assign(0)
        self._evaluate()

    def train(self) -> None:
        """Until the seconds are over; what is still waiting then is not waited for."""
        orders, workers = self._orders, len(self._orders["cluster"]["worker"])
        began_s, rate = time.monotonic(), tf.constant(self._orders["rate"])
        scheduled, evaluated_s = 0, 0.0
        while (now_s := time.monotonic() - began_s) < orders["seconds"]:
            done = int(self._done.numpy())
            while scheduled < done + AHEAD * workers:
                self._coordinator.schedule(self._step, args=(self._iterator, rate))
                scheduled += 1
            if now_s - evaluated_s >= orders["evaluate_s"]:
                evaluated_s = now_s
                say({"evaluated": {**self._evaluate(), "step": done, "worker": orders["name"]}})
            time.sleep(POLL_S)
        done = int(self._done.numpy())
        np.save(orders["weights"], np.concatenate([canonical(each.numpy()).ravel() for each in self._weights]))
        say({"account": {"steps": done, "time_s": time.monotonic() - began_s, "weights": orders["weights"]}})

    def make(self, steps: int) -> None:
        """Make so many steps and report twice a second how many are done."""
        rate = tf.constant(self._orders["rate"])
        for _ in range(steps):
            self._coordinator.schedule(self._step, args=(self._iterator, rate))
        while not self._coordinator.done():
            say({"done": int(self._done.numpy())})
            time.sleep(0.5)
        say({"account": {"steps": int(self._done.numpy())}})

    def _batches(self, images: tuple[np.ndarray, np.ndarray]) -> Any:
        made = tf.data.Dataset.from_tensor_slices(images)
        return made.shuffle(len(images[1]), reshuffle_each_iteration=True).repeat().batch(self._orders["batch"])

    def _one_step(self, iterator: Any, rate: Any) -> None:
        images, labels = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(losses(self._weights, images, labels)[0])
        for weight, velocity, gradient in zip(
            self._weights, self._velocities, tape.gradient(loss, self._weights), strict=True
        ):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=velocity.handle, lr=rate, grad=gradient,
                momentum=self._orders["momentum"], use_locking=True,
            )  # fmt: skip
        self._done.assign_add(1)

    def _judge(self, images: Any, labels: Any) -> Any:
        found, right = losses(self._weights, images, labels)
        return tf.reduce_sum(found), tf.reduce_sum(tf.cast(right, tf.int32))

    def _evaluate(self) -> dict[str, float]:
        began_s = time.perf_counter()
        loss, right = self._scores(*map(tf.constant, self._tests))
        count = len(self._tests[1])
        seconds = time.perf_counter() - began_s
        return {"loss": float(loss) / count, "metrics": {"accuracy": int(right) / count}, "seconds": seconds}


def losses(weights: Sequence[Any], images: Any, labels: Any) -> tuple[Any, Any]:
    """Each image's loss, and whether it is right; images uint8 (batch, height, width, channels)."""
    x = tf.cast(images, tf.float32) * (2.0 / 255.0) - 1.0
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    for kernel, bias in pairs[:CONVOLUTIONS]:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + bias)
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (tf.shape(x)[0], -1))
    for kernel, bias in pairs[CONVOLUTIONS:-1]:
        x = tf.nn.relu(tf.matmul(x, kernel, transpose_b=True) + bias)
    kernel, bias = pairs[-1]
    x = tf.matmul(x, kernel, transpose_b=True) + bias
    found = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
    return found, tf.equal(tf.argmax(x, 1), labels)


def tensorflows(array: np.ndarray) -> np.ndarray:
    """A kernel (outputs, inputs, height, width) as TensorFlow has it; others as they are."""
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array


def canonical(array: np.ndarray) -> np.ndarray:
    """The way back."""
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array


def say(event: dict[str, Any]) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
