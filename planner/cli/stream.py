"""`planner stream …` parses, calls and renders. Heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

app = typer.Typer(
    help="Feed samples to devices while they train (docs/streams.md).",
    epilog="Example: planner stream produce kafka:10.0.0.5:9092 --data cifar --device pc --device tx2 --rates S2",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def group() -> None:
    """Keeps ``produce`` a command of its own, though it is the only one."""


@app.command(epilog="Example: planner stream produce 'directory:/data/{device}' --data cifar --device pc --rates 30")
def produce(
    to: Annotated[str, Argument(metavar="TO", help="As in train --stream: directory: or kafka:...")],
    data: Annotated[Path, Option(help="The directory of a data set of images (docs/data.md).")],
    device: Annotated[list[str], Option(help="The name of a device; one option for each.")],
    rates: Annotated[
        str, Option(help="Samples a second: S1, S2, S1', S2', a number or pc@300/tx2@38; then shape=wave,... as well.")
    ] = "S1",
    samples: Annotated[int, Option(min=0, help="End each device's stream after so many; 0 for never.")] = 0,
    seed: Annotated[int, Option(min=0, help="Seed of rates, of who gets which samples, and of their order.")] = 0,
) -> None:
    """Replay a data set of images to devices, as fast as streams would be.

    A directory or a topic is filled behind what it holds. Ctrl-C ends it, and the same command goes
    on where it was.
    """
    import threading

    from planner.console import plain
    from planner.stream import ProduceRequest
    from planner.stream import produce as run
    from planner.train.training_data import load_dataset

    request = ProduceRequest(to, rates, device, seed, samples)
    error = plain(stderr=True)
    stop = threading.Event()
    try:
        written = run(load_dataset(str(data)), request, stop, lambda note: error.print(note, soft_wrap=True))
    finally:
        stop.set()
    error.print(f"{written:,} samples were produced")
