"""Time to an accuracy, and buffers, where samples arrive while the devices train (ScaDLES).

    python benchmarks/stream_training.py --data /usr/share/datasets/fashion-mnist --seeds 3

Devices have streams with the paper's four sets of rates. The conventional training takes a fixed
batch of 64 on each and waits until it is there; ScaDLES takes what arrives in a second, weighs
gradients by it and scales the learning rate, by the project's own rules. Both are synchronous.
Gradients, streams, buffers and files are real; only time is computed: a step ends when the slowest
device has had its batch, then --sample-ms for each of its samples and --exchange-ms. So a run needs
no hours, and no machine disturbs it. A run is a JSON line; those that are in the file already are
not made again.
"""

import argparse
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

from reporting import Spread, show
from synchronous_workers import SynchronousWorkers
from trainings import DEPTHWISE, Setting, add_options, make_missing

from backends.data import dataset
from backends.data.loader import ArraySamples
from backends.strategies.aggregation_rules import FACTORS
from backends.strategies.sample_streams import DISTRIBUTIONS, draw_rate
from backends.streams.arriving import TICK_S, ArrivingSamples
from backends.streams.buffer import PERSIST, TRUNCATE, PersistingBuffer, SampleBuffer, TruncatingBuffer
from backends.streams.replay import ReplaySettings, ReplaySource
from backends.streams.sample_codec import ArrayCodec
from backends.streams.segments import SegmentFolder
from backends.streams.spec import StreamSpec
from backends.streams.stream_batches import ArrivingBatchSource
from backends.training.batch_size import ArrivingBatches, BatchPolicy

WAITING, SCADLES = "waiting", "scadles"
#: Trainings: batches, and what becomes of samples that are not used in time.
TRAININGS = ((WAITING, PERSIST), (SCADLES, PERSIST), (SCADLES, TRUNCATE))
#: Longer than any run: no stream ends.
PATIENCE_S = 1e9


class Case(NamedTuple):
    """One run.

    rates: a set of the paper's. sample_ms, exchange_ms: of every device. target: accuracy.
    """

    rates: str
    batches: str
    policy: str
    sample_ms: float
    exchange_ms: float
    target: float
    seed: int


class Clock:
    """A time that is set."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Device:
    """One device with its stream.

    rate: samples that arrive in a second.
    """

    def __init__(self, setting: Setting, case: Case, name: str, samples: ArraySamples, classes: int, path: str) -> None:
        self._clock, self._sample_s = Clock(), case.sample_ms / 1000
        self.name, self.rate = name, draw_rate(case.rates, name, case.seed)
        codec = ArrayCodec.of(samples, classes)
        images, labels = samples.arrays
        folder = SegmentFolder(path)
        self._buffer: SampleBuffer = TruncatingBuffer() if case.policy == TRUNCATE else PersistingBuffer(4096, folder)
        source = ReplaySource(
            len(samples), lambda at: codec.encode((images[at], labels[at])), ReplaySettings(self.rate),
            case.seed, self._clock, pause=lambda seconds: None,
        )  # fmt: skip
        self.arrivals = ArrivingSamples(source, codec, self._buffer, PATIENCE_S, folder.set_aside, self._clock)
        self.arrivals.prepare(0)
        self.batches = ArrivingBatchSource(self.arrivals, codec, setting.batch)

    def wait(self, batch: int) -> float:
        """Let time pass until the buffer holds a batch; return when that has been computed."""
        self.batches.batch = batch
        self._buffer.reserve(batch)
        missing = batch - len(self._buffer)
        if missing > 0:  # the n-th sample arrives after n / rate
            self.receive((self.arrivals.statistics().arrived + missing) / self.rate)
        return self._clock.now_s + batch * self._sample_s

    def receive(self, until_s: float) -> None:
        """Let time pass, during which samples arrive."""
        while self._clock.now_s < until_s:
            self._clock.now_s = min(until_s, self._clock.now_s + TICK_S)
            before = -1
            while before != (before := self.arrivals.statistics().arrived):
                self.arrivals.receive(0.0)


def main() -> None:
    options = _arguments()
    setting = Setting(*(getattr(options, name) for name in Setting._fields))
    times = (options.sample_ms, options.exchange_ms, options.target)
    cases = [
        Case(rates, *training, *times, seed)
        for seed in range(options.seeds)
        for rates in DISTRIBUTIONS
        for training in TRAININGS
    ]
    runs = make_missing(run, setting, cases, options.out, options.processes)
    known = {Case(**found["case"]): found for found in runs}
    rows = [_row(rates, [known[case] for case in cases if case.rates == rates]) for rates in DISTRIBUTIONS]
    show(f"{setting.workers} devices up to {100 * options.target:g} %", rows, options.json)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(
        made, "stream-training.jsonl",
        model=DEPTHWISE, workers=8, batch=64, rate=0.08, momentum=0.9, steps=400, every=5, test_images=2000,
    )  # fmt: skip
    made.add_argument("--sample-ms", type=float, default=2.0, help="of computing a sample")
    made.add_argument("--exchange-ms", type=float, default=100.0, help="of a step")
    made.add_argument("--target", type=float, default=0.85, help="accuracy")
    return made.parse_args()


def run(setting: Setting, case: Case) -> dict[str, Any]:
    """Train up to the target, or for all steps."""
    whole = dataset.load(setting.data)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        devices = _devices(setting, case, whole, folder)
        for device in devices:
            stack.callback(device.arrivals.close)
        policy = _policy(setting, case)
        workers = SynchronousWorkers(setting, whole, case.seed, [device.name for device in devices])
        now_s, samples, curve = 0.0, 0, []
        for made in range(1, setting.steps + 1):
            chosen = {device.name: policy.batch(device.name) for device in devices}
            ends_s = max(device.wait(chosen[device.name]) for device in devices) + case.exchange_ms / 1000
            total: Any = 0.0
            for device in devices:
                gradient = workers.gradient(device.name, device.batches)
                total = total + _factor(case, chosen[device.name], setting) * gradient
                device.receive(ends_s)
                policy.record_rate(device.name, device.arrivals.position().rate)
            now_s, samples = ends_s, samples + sum(chosen.values())
            workers.apply(total)
            if made % setting.every == 0 or made == setting.steps:
                curve.append((made, now_s, workers.accuracy()))
                if curve[-1][2] >= case.target:
                    break
        streams = [device.arrivals.statistics() for device in devices]
    return {
        "setting": setting._asdict(), "case": case._asdict(), "rates": [device.rate for device in devices],
        "steps": made, "time_s": now_s, "samples": samples, "reached": curve[-1][2] >= case.target,
        "buffered": [each.buffered for each in streams], "peaks": [each.peak_buffered for each in streams],
        "dropped": [each.dropped for each in streams], "curve": curve,
    }  # fmt: skip


def _devices(setting: Setting, case: Case, whole: dataset.Dataset, folder: str) -> list[Device]:
    parts = dataset.shards(len(whole.train_labels), [1.0] * setting.workers, case.seed)
    return [
        Device(
            setting, case, f"d{number}", ArraySamples(whole.train_images[part], whole.train_labels[part]),
            whole.classes, f"{folder}/{number}",
        )
        for number, part in enumerate(parts)
    ]  # fmt: skip


def _policy(setting: Setting, case: Case) -> BatchPolicy:
    if case.batches == WAITING:
        return BatchPolicy(setting.batch)
    return ArrivingBatches(setting.batch, StreamSpec.from_text(f"replay:{case.rates}"))


def _factor(case: Case, batch: int, setting: Setting) -> float:
    rule = FACTORS["mean" if case.batches == WAITING else "rates"]
    return rule(batch, batch, setting.batch, setting.workers)


def _row(rates: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the seeds with which all trainings reached the target."""

    def of(training: tuple[str, str]) -> list[dict[str, Any]]:
        return [each for each in runs if (each["case"]["batches"], each["case"]["policy"]) == training]

    seeds = [each for each in zip(*map(of, TRAININGS), strict=True) if all(run["reached"] for run in each)]
    waiting, persisted, truncated = ([each[at] for each in seeds] for at in range(len(TRAININGS)))
    return {
        "rates": rates,
        "seeds": len(seeds),
        "waiting: s": _spread(each["time_s"] for each in waiting),
        "ScaDLES: s": _spread(each["time_s"] for each in truncated),
        "faster": _spread(one["time_s"] / other["time_s"] for one, other in zip(waiting, truncated, strict=True)),
        "waiting: steps": _spread(each["steps"] for each in waiting),
        "ScaDLES: steps": _spread(each["steps"] for each in truncated),
        "waiting: buffered": _spread(sum(each["buffered"]) for each in waiting),
        "persisted": _spread(sum(each["buffered"]) for each in persisted),
        "truncated, at most": _spread(sum(each["peaks"]) for each in truncated),
    }


def _spread(values: Iterable[float]) -> Spread | None:
    found = list(values)
    return Spread.of(found) if found else None


if __name__ == "__main__":
    main()
