"""Audits of fleets that are drawn at random, to test predictions and their intervals.

    python benchmarks/audit_fleets.py --fleets 10 --out audits --minutes 60

Each fleet leaves its profile.json and, of each repetition, the JSON of `planner audit`. A fleet
has 2 to 6 devices, shares of a core that two cores can grant, links of 10 to 1000 Mbit/s and one
network of 50 kB to 25 MB. Some hide their quotas. It is profiled once and audited with two
strategies: the asynchronous parameter server, and one that is drawn. A lab is built for each in
turn (root). Nothing may run beside it. The same command goes on where it was stopped.
"""

import argparse
import random
import sys
import time
from pathlib import Path
from typing import NamedTuple

from commands import Failed, lab_in

HERE = Path(__file__).parent
DATA = HERE.parent / "examples/fashion-mnist"
SMALL = (f"{HERE.parent / 'examples/tiny.py'}:tiny", f"{HERE / 'racing/depthwise.py'}:depthwise", "resnet", "cipher")
#: They take turns; a network has another strategy each time.
MODELS = (*SMALL, "cifar10", *SMALL, f"{HERE / 'racing/wide.py'}:wide")
#: The first fleets were audited before a lab could hide quotas; then every third one hides them.
FIRST_HIDDEN, EVERY_HIDDEN = 5, 3
STRATEGIES = ("parameter-server:sync=synchronous", "allreduce", "local-sgd", "dlion", "ad-psgd")
#: Cores of all devices together, and of one.
CORES, LEAST_CORES, MOST_CORES = 1.5, 0.15, 0.9
RATES_MBIT = (10.0, 1000.0)


class Drawn(NamedTuple):
    """One fleet. cpus, rates: of its devices, in cores and Mbit/s."""

    model: str
    strategy: str
    cpus: tuple[float, ...]
    rates: tuple[int, ...]
    quota_visible: bool

    @property
    def names(self) -> list[str]:
        return [f"d{number}" for number in range(len(self.cpus))]

    @property
    def spec(self) -> str:
        entries = zip(self.names, self.cpus, self.rates, strict=True)
        visible = "" if self.quota_visible else "quota_visible = false\n"
        return "\n".join(
            f'[devices.{name}]\nkind = "pc"\ncpus = {cpus:.2f}\nrate = "{rate}mbit"\n{visible}'
            for name, cpus, rate in entries
        )


def drawn(seed: int, number: int) -> Drawn:
    """The fleet of that number, whatever others there are. Networks and strategies take turns."""
    draw = random.Random(f"{seed}-{number}")
    count = draw.randint(2, 6)
    while True:
        cpus = tuple(round(draw.uniform(LEAST_CORES, MOST_CORES), 2) for _ in range(count))
        if sum(cpus) <= CORES:
            break
    low, high = RATES_MBIT
    rates = tuple(round(low * (high / low) ** draw.random()) for _ in range(count))
    turn = number + number // len(STRATEGIES)
    hidden = number >= FIRST_HIDDEN and (number - FIRST_HIDDEN) % EVERY_HIDDEN == 0
    return Drawn(MODELS[number % len(MODELS)], STRATEGIES[turn % len(STRATEGIES)], cpus, rates, not hidden)


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--fleets", type=int, default=10)
    made.add_argument("--first", type=int, default=0, help="number of the first one")
    made.add_argument("--seed", type=int, default=20261126)
    made.add_argument("--out", type=Path, default=Path("audits"))
    made.add_argument("--clusters", type=int, default=8, help="of each strategy, the best predicted first")
    made.add_argument("--seconds", type=float, default=10.0, help="of each run")
    made.add_argument("--repetitions", type=int, default=1, help="runs of each configuration")
    made.add_argument("--minutes", type=float, default=float("inf"), help="begin no fleet later")
    options = made.parse_args()
    end_s = time.monotonic() + 60 * options.minutes
    for number in range(options.first, options.first + options.fleets):
        if time.monotonic() > end_s:
            sys.exit("the time is over; the same command goes on")
        fleet = drawn(options.seed, number)
        try:
            _audit(fleet, options.out / f"fleet-{number:02d}", options)
        except Failed as error:
            print(error, file=sys.stderr)


def _audit(fleet: Drawn, folder: Path, options: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "done").exists():
        return
    began_s = time.monotonic()
    with lab_in(folder, fleet.names, fleet.spec) as lab:
        lab.run("profile", "--model", fleet.model, "--batch-size", "16", "--data", str(DATA))
        for label, strategy in (("server", "parameter-server"), ("other", fleet.strategy)):
            for repetition in range(options.repetitions):
                made = lab.run(
                    "audit", "--strategy", strategy, "--data", str(DATA), "--clusters", str(options.clusters),
                    "--seconds", str(options.seconds), "--metric", "time", "--json",
                )  # fmt: skip
                (folder / f"audit-{label}-{repetition}.json").write_text(made.stdout)
    (folder / "done").touch()
    print(f"{folder.name}: {fleet}; {time.monotonic() - began_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
