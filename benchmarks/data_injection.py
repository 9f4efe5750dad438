"""This measures what data injection does to accuracy where each device has few labels.

    python benchmarks/data_injection.py --data /usr/share/datasets/fashion-mnist --seeds 3

As in ScaDLES (Tyagi and Swany), ten devices have one label each, and in every step a share alpha of
them gives a share beta of their samples to all others: 0.05, 0.1, 0.25 and 0.5, both. Beside these
are the same devices without injection, and devices that have samples of all labels. There is no
network: every step is the mean of all gradients, and the momentum is the server's. Batch
normalisation keeps each device's own statistics, whose mean is evaluated. A run is a JSON line with
its curve of (step, accuracy) and the samples that were given; those that are in the file already
are not made again.
"""

import argparse
import statistics
from typing import Any, NamedTuple

from reporting import Spread, show
from synchronous_workers import SynchronousWorkers
from trainings import DEPTHWISE, Setting, add_options, make_missing

from backends.data import dataset
from backends.data.loader import ArraySamples, BatchLoader
from backends.data.partition import IID, Partition
from backends.strategies.data_injection import InjectionSpec, share_of
from backends.streams.injection import InjectedBatches, SampleInjection, codec_of

SHARES = (0.05, 0.1, 0.25, 0.5)
NONE = "none"


class Case(NamedTuple):
    """One run. partition: a text of ``--partition``; injection: of ``--inject``, or NONE."""

    partition: str
    injection: str
    seed: int


def main() -> None:
    options = _arguments()
    setting = Setting(*(getattr(options, name) for name in Setting._fields))
    pairs = [("labels=1", f"alpha={share},beta={share}") for share in SHARES]
    cases = [Case(*each, seed) for seed in range(options.seeds) for each in [(IID, NONE), ("labels=1", NONE), *pairs]]
    runs = make_missing(run, setting, cases, options.out, options.processes)
    rows = [_row(partition, injection, runs) for partition, injection in dict.fromkeys(case[:2] for case in cases)]
    show(f"{setting.steps} steps of {setting.workers} devices", rows, options.json)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(
        made, "data-injection.jsonl",
        model=DEPTHWISE, workers=10, batch=32, rate=0.04, momentum=0.9, steps=400, every=100, test_images=2000,
    )  # fmt: skip
    return made.parse_args()


def run(setting: Setting, case: Case) -> dict[str, Any]:
    """Train for all steps."""
    whole = dataset.load(setting.data)
    spec = None if case.injection == NONE else InjectionSpec.from_text(case.injection)
    names = [f"d{number}" for number in range(setting.workers)]
    sources = {name: _batches(setting, case, whole, name, names, spec) for name in names}
    workers = SynchronousWorkers(setting, whole, case.seed, names)
    given, curve = 0, []
    for made in range(setting.steps):
        total: Any = 0.0
        for name, source in sources.items():
            if spec is not None:
                source.injection.begin_step(share_of(spec, names, name, setting.batch, case.seed, made))
            total = total + workers.gradient(name, source)
        for source in sources.values():
            shared = source.injection.take_given(through_server=True)
            given += len(shared.payloads)
            for name in shared.receivers:
                sources[name].injection.receive(shared.payloads)
        workers.apply(total / len(names))
        if (made + 1) % setting.every == 0:
            curve.append((made + 1, workers.accuracy()))
    return {"setting": setting._asdict(), "case": case._asdict(), "given": given, "curve": curve}


def _batches(
    setting: Setting, case: Case, whole: dataset.Dataset, name: str, names: list[str], spec: InjectionSpec | None
) -> Any:
    if case.partition == IID:
        parts = dataset.shards(len(whole.train_labels), [1.0] * len(names), case.seed)
        positions = parts[names.index(name)]
    else:
        divided = Partition.from_text(case.partition).divide(whole.train_labels, dict.fromkeys(names, 1.0), case.seed)
        positions = divided.positions(name)
    samples = ArraySamples(whole.train_images[positions], whole.train_labels[positions])
    own_seed = 1009 * case.seed + names.index(name)
    loader = BatchLoader(samples, setting.batch, own_seed)
    if spec is None:
        return loader
    injection = SampleInjection(codec_of(samples, whole.classes), setting.batch, spec.beta, own_seed, lambda _: "")
    return InjectedBatches(loader, injection)


def _row(partition: str, injection: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    found = [each for each in runs if (each["case"]["partition"], each["case"]["injection"]) == (partition, injection)]
    return {
        "partition": partition,
        "injection": injection,
        "seeds": len(found),
        "samples given": statistics.mean(each["given"] for each in found),
        "accuracy": Spread.of(each["curve"][-1][1] for each in found),
    }


if __name__ == "__main__":
    main()
