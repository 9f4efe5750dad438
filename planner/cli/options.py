"""The options and arguments of the command line: their types, and what they are read as.

Like ``cli``, it imports what is heavy only where it is used.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from planner.errors import PlanError, PlannerError

if TYPE_CHECKING:
    from planner.fleet.device import Device

# -- of several commands ---------------------------------------------------------------------------

FleetPath = Annotated[Path, Option("--fleet", "-f", help="The fleet file.")]
FleetOfPlan = Annotated[Path | None, Option("--fleet", "-f", help="The fleet file; the plan's if not given.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]
Framework = Annotated[
    str | None, Option(help="What to compute with: torch or tensorflow; on each device the first it has if not given.")
]
Metric = Annotated[str | None, Option("--metric", help="time, power, energy or edp [edp].")]
Steps = Annotated[
    int,
    Option("--steps", "-s", min=1, help="Training steps planned; timing ends where it would cost a hundredth of them."),
]
BatchSize = Annotated[int, Option("--batch-size", min=1, help="Images a step.")]
Data = Annotated[Path | None, Option("--data", "-d", help="A directory with CIFAR-10 or (Fashion-)MNIST files.")]
Version = Annotated[bool, Option("--version", help="Print the version.")]

# -- init, trust -----------------------------------------------------------------------------------

NewFleet = Annotated[Path, Argument(help="Where to write it.")]
Host = Annotated[str, Argument(help="A device of the fleet, or [user@]host[:port].")]
Yes = Annotated[bool, Option("--yes", help="Store a new key without asking: its fingerprint was checked before.")]
Replace = Annotated[bool, Option("--replace", help="Store a changed key in place of the old one, without asking.")]

# -- profile ---------------------------------------------------------------------------------------

Models = Annotated[
    list[str] | None,
    Option("--model", "-m", help="A known model or path/to/file.py:function; may be repeated."),
]
Protocol = Annotated[str, Option(help="adaptive, or paper (300 + 100 + 100 steps).")]
Devices = Annotated[list[str] | None, Option("--device", help="Only this device; may be repeated.")]
ProfileOut = Annotated[Path, Option("--out", "-o", help="The profile; what it holds and is still valid is kept.")]
Fresh = Annotated[bool, Option("--fresh", help="Measure everything again.")]

# -- recommend -------------------------------------------------------------------------------------

ProfilePath = Annotated[Path | None, Argument(metavar="[PROFILE]", help="The newest profile*.json here if not given.")]
Weights = Annotated[str | None, Option(help="Several metrics, in place of --metric: time=0.3,energy=0.7.")]
ProfiledModel = Annotated[str | None, Option("--model", "-m", help="Which model, where the profile holds several.")]
ProfiledFramework = Annotated[
    str | None, Option("--framework", help="torch or tensorflow; on each device its fastest if not given.")
]
PlannedSteps = Annotated[
    int | None,
    Option(
        "--steps",
        "-s",
        min=1,
        help="Training steps in all; what was profiled for if not given; of one device alone with --strategy auto.",
    ),
]
OtherBatchSize = Annotated[int | None, Option("--batch-size", min=1, help="What if: another batch size.")]
Server = Annotated[str | None, Option(help="Only clusters with this server.")]
Include = Annotated[list[str] | None, Option(help="Only clusters with this device; may be repeated.")]
Exclude = Annotated[list[str] | None, Option(help="Only clusters without this device; may be repeated.")]
CountIdle = Annotated[bool, Option("--count-idle", help="Count the idle watts of devices left out.")]
BaseWatts = Annotated[float, Option("--base-watts", help="Watts spent whatever is chosen.")]
Rates = Annotated[list[str] | None, Option("--rate", help="What if: DEVICE=100mbit; may be repeated.")]
PlannedStrategy = Annotated[
    str, Option("--strategy", help="How workers exchange what they learn: NAME or NAME:part=value,..., or auto.")
]
Top = Annotated[int, Option(min=0, help="Rows to show; 0 for all.")]
Choose = Annotated[int, Option(min=1, help="Plan the N-th instead of the best.")]
PlanOut = Annotated[Path, Option("--out", "-o", help="Where the plan goes.")]
AsCsv = Annotated[bool, Option("--csv", help="Print CSV instead of a table.")]

# -- train -----------------------------------------------------------------------------------------

PlanPath = Annotated[Path | None, Argument(metavar="[PLAN]", help="plan.json here if not given.")]
PlanBy = Annotated[
    str | None,
    Option("--metric", help="Plan first by time, power, energy or edp, profiling what is missing."),
]
ModelToPlan = Annotated[
    str | None, Option("--model", "-m", help="With --metric: a known model, or path/to/file.py:function.")
]
StepsToMake = Annotated[
    int | None, Option("--steps", "-s", min=1, help="Training steps in all; the plan's if not given.")
]
BatchToPlan = Annotated[int | None, Option("--batch-size", min=1, help="With --metric: images a step [32].")]
FrameworkToPlan = Annotated[
    str | None,
    Option("--framework", help="With --metric: torch or tensorflow; on each device what it has if not given."),
]
LearningRate = Annotated[float | None, Option(help="Base learning rate of SGD [0.01].")]
Momentum = Annotated[float | None, Option(help="Momentum of SGD; 0.9 less what asynchrony adds if not given.")]
WeightDecay = Annotated[float | None, Option(help="L2 weight decay [0].")]
Schedule = Annotated[str | None, Option(help="Learning rate over the run: [constant], cosine or step.")]
Warmup = Annotated[int | None, Option(min=0, help="Steps over which the learning rate rises [0].")]
Strategy = Annotated[
    str | None,
    Option(
        "--strategy",
        help="How workers exchange what they learn: NAME or NAME:part=value,..., with --metric also auto [the plan's].",
    ),
]
Seed = Annotated[int | None, Option(min=0, help="Of weights, shards and batches [0].")]
EvaluateEvery = Annotated[int | None, Option(min=0, help="Steps; [0] for once an epoch.")]
CheckpointEvery = Annotated[int | None, Option(min=0, help="Steps; [0] for a tenth of the run.")]
Heartbeat = Annotated[float | None, Option(help="Seconds of silence after which a worker is dropped [10].")]
Resume = Annotated[Path | None, Option(help="Go on from this run folder's checkpoint.")]
RunDir = Annotated[Path, Option(help="Where run folders are made.")]


def known(option: str, value: str, known: Iterable[str]) -> None:
    """Raises PlanError for a typo, before any device is contacted."""
    from planner.errors import suggest

    if value not in known:
        raise PlanError(f"{option} {value}: unknown; {suggest(value, known)}")


def need_metric(given: dict[str, object]) -> None:
    """Raises PlanError for an option that only making a plan would use."""
    for option, value in given.items():
        if value is not None:
            raise PlanError(f"{option} {value}: a plan has its own; add --metric to make another plan")


def named_or_addressed(text: str, path: Path) -> "Device":
    """A device of the fleet if it has one of that name, else at that address. Raises PlannerError."""
    from planner.fleet.device import device_at
    from planner.fleet.file import load_fleet

    if path.exists():
        named = [device for device in load_fleet(path).devices if device.name == text]
        if named:
            return named[0]
    try:
        return device_at(text)
    except ValueError as error:
        raise PlannerError(str(error)) from error


def rates(given: list[str]) -> dict[str, float]:
    """Bytes/s by device, from DEVICE=RATE. Raises PlanError."""
    from planner.fleet.device import parse_rate

    found = {}
    for text in given:
        name, equals, rate = text.partition("=")
        if not equals:
            raise PlanError(f"--rate {text}: write DEVICE=RATE, as in --rate desktop=100mbit")
        try:
            found[name] = parse_rate(rate)
        except ValueError as error:
            raise PlanError(f"--rate {text}: {error}") from error
    return found


def shape_of(data: Path | None) -> tuple[tuple[int, ...] | None, int | None]:
    """Input shape and classes of the images in a directory; None for the models' own."""
    if data is None:
        return None, None
    from planner.train.orders import load_dataset

    dataset = load_dataset(str(data))
    return tuple(dataset.input_shape), dataset.classes
