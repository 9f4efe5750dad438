"""`planner runs` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from planner.cli import options
from planner.errors import PlannerError


def runs(
    folders: Annotated[
        list[Path] | None, Argument(metavar="FOLDER", help="Run folders, or folders of them; runs if not given.")
    ] = None,
    compare: Annotated[
        bool, Option("--compare", "-c", help="Put runs side by side: settings that differ, and results.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """List and compare runs: predicted, measured and reached.

    A run is finished, running, interrupted (--resume of train goes on with it) or damaged; a
    damaged folder is shown with the reason. With --compare, the first run named is what the others
    are compared with.
    """
    import time

    from planner import console
    from planner.runs.comparison import compare as put_side_by_side
    from planner.runs.summary import find_runs, summary
    from planner.views import runs as view

    found = [run for folder in folders or [Path("runs")] for run in find_runs(folder)]
    by_path = {run.path: run for run in found}  # a folder and one inside it may both be named
    listed = [summary(run, time.time()) for run in by_path.values()]
    if not compare:
        console.show(view.to_json(listed) if as_json else view.render(listed))
        return
    if len(listed) < 2:
        raise PlannerError(f"--compare: {len(listed)} run is there; name at least two run folders")
    compared = put_side_by_side(listed)
    console.show(view.comparison_to_json(compared) if as_json else view.render_comparison(compared))
