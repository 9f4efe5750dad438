"""Options of several commands, and checks of their values before any device is contacted."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option
from typer.core import TyperCommand

from planner.errors import PlanError, suggest

if TYPE_CHECKING:
    from planner.console import Detail
    from profilers.records.steps import ComputeSettings

ProfilePath = Annotated[Path | None, Argument(metavar="[PROFILE]", help="The newest profile*.json here if not given.")]
FleetPath = Annotated[Path, Option("--fleet", "-f", help="The fleet file.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show errors and the result only.")]
Verbose = Annotated[
    bool, Option("--verbose", "-v", help="Show every event, table and note, and what devices print themselves.")
]
AllNotes = Annotated[bool, Option("--verbose", "-v", help="Show every column, table and note.")]
Framework = Annotated[
    str | None, Option(help="What to compute with: torch or tensorflow; on each device the first it has if not given.")
]
ProfiledFramework = Annotated[str | None, Option(help="torch or tensorflow; on each device its fastest if not given.")]
Metric = Annotated[str | None, Option(help="time, power, energy or edp [edp, or time where watts are unknown].")]
Model = Annotated[str | None, Option("--model", "-m", help="Which model, where the profile holds several.")]
WhatIfBatch = Annotated[int | None, Option(min=1, help="What if: another batch size.")]
Include = Annotated[list[str] | None, Option(help="Only clusters with this device; may be repeated.")]
Exclude = Annotated[list[str] | None, Option(help="Only clusters without this device; may be repeated.")]
PlannedSteps = Annotated[
    int | None,
    Option(
        "--steps",
        "-s",
        min=1,
        help="Training steps in all; what was profiled for if not given; of one device alone with --strategy auto.",
    ),
]
Optimizer = Annotated[
    str | None,
    Option(
        help="sgd, adam, adamw or lars; options as in adam:beta1=0.9,beta2=0.99,epsilon=1e-6 [that of the strategy: "
        "sgd where it names none]."
    ),
]
ClipNorm = Annotated[float | None, Option(help="Scale gradients down to this norm over all weights [no limit].")]
MicroBatch = Annotated[
    int | None,
    Option(min=1, help="Compute a batch in parts of so many samples, where it does not fit into memory [whole]."),
]
Precision = Annotated[
    str | None,
    Option(help="Forward and backward passes in fp32, bf16 or fp16; weights and gradients stay fp32 [fp32]."),
]
ActivationCheckpointing = Annotated[
    bool | None,
    Option(
        "--activation-checkpointing",
        help="Keep only the inputs of the model's blocks, and compute these again in the backward pass: less memory, "
        "more time (docs/training.md) [no].",
    ),
]
AllowPlaintext = Annotated[
    bool, Option("--allow-plaintext", help="Let --engine torch, which does not encrypt, cross networks.")
]
Data = Annotated[
    Path | None,
    Option(
        "--data",
        "-d",
        help="A directory with an image set: CIFAR-10, (Fashion-)MNIST, .npz, .npy or pictures (docs/data.md).",
    ),
]
Job = Annotated[
    str | None,
    Option("--job", "-j", help="Your own training: FILE.py:function or package.module:function (docs/own-job.md)."),
]


def check_known(option: str, value: str | None, known: Iterable[str]) -> None:
    """Raises PlanError for a value that is given and not among those known."""
    if value is not None and value not in known:
        raise PlanError(f"{option} {value}: unknown; {suggest(value, known)}")


def model_of(job: str | None, model: str | None) -> str | None:
    """What is to be planned for: a job, a model, or neither. Raises PlanError for both."""
    if job is not None and model is not None:
        raise PlanError(f"--job {job} and --model {model}: choose one of them")
    return job or model


def compute_settings(
    micro_batch: int | None, precision: str | None, checkpointing: bool | None, *batches: int | None
) -> "ComputeSettings":
    """How replicas compute these batches, where they are given.

    Raises PlanError for an unknown precision, or a part of one sample.
    """
    from profilers.mixed_precision import FP32, PRECISIONS
    from profilers.records.steps import ComputeSettings

    check_known("--precision", precision, PRECISIONS)
    odd = next((batch for batch in batches if batch is not None and batch > 1 and batch % 2), None)
    if micro_batch == 2 and odd is not None:
        raise PlanError(
            f"--micro-batch 2 leaves one sample of {odd} alone, from which batch normalisation cannot learn; "
            "give another --batch-size, or parts of 3 or more"
        )
    return ComputeSettings(micro_batch or 0, precision or FP32, bool(checkpointing))


def detail(quiet: bool, verbose: bool) -> "Detail":
    """How much a command tells of its progress. Raises PlanError for both options at once."""
    from planner.console import Detail

    if quiet and verbose:
        raise PlanError("--quiet and --verbose: choose one of them")
    return Detail.QUIET if quiet else Detail.VERBOSE if verbose else Detail.NORMAL


def shape_of(data: Path | None) -> tuple[tuple[int, ...] | None, int | None]:
    """Input shape and classes of the images in a directory; None for those of the models."""
    if data is None:
        return None, None
    from planner.train.training_data import load_dataset

    dataset = load_dataset(str(data))
    return tuple(dataset.input_shape), dataset.classes


class StrategyCommand(TyperCommand):
    """A command whose help lists the strategies, which are imported only then."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the strategies, their aliases and the example."""
        with formatter.section("Strategies"):
            formatter.write_dl(list(descriptions().items()))
        super().format_epilog(ctx, formatter)


def descriptions() -> dict[str, str]:
    """A line on each strategy and on each alias, by name."""
    from backends.strategies.presets import ALIASES, DESCRIPTIONS

    return {**DESCRIPTIONS, **{alias: f"the same as {name}" for alias, name in ALIASES.items()}}
