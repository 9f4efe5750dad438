"""`planner export` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from planner.cli import options


def export(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")],
    to: Annotated[Path, Option(help="The file to write; its ending names the format.")],
    classes: Annotated[
        str | None,
        Option(help="Class names: a file with a name a line, or a,b,c; the data set's, or numbers, if not given."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a trained model to a file that other programs load.

    What is printed shows how they do: lines of Python. A known model takes images as
    the data set has them and gives probabilities; that of a job is exported as it is
    (docs/export.md).
    """
    from planner import console
    from planner.export.export import export as make
    from planner.views import export as view

    with console.status("exporting"):
        exported = make(run, to, classes)
    console.show(view.to_json(exported) if as_json else view.render(exported))
