"""`planner clean` parses, calls and renders; heavy imports wait inside the command."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from planner import paths
from planner.cli import options
from planner.errors import PlannerError
from planner.terminal import agrees, echo


def clean(
    devices: Annotated[
        list[str] | None,
        Option("--device", metavar="DEVICE", help="A device to clean; may be repeated [all, and this machine]."),
    ] = None,
    fleet: options.FleetPath = Path(paths.FLEET),
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
    yes: Annotated[bool, Option("--yes", help="Remove it without asking.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Remove what planner has left, here and on devices.

    That is what its own cache folder holds (~/.cache/planner): agents, images, models, checkpoints,
    and the projects of jobs and scripts with what these have written there. Later runs send again
    what they need. Run folders are never touched, and what a run under way uses is kept. The exit
    code is 1 where a device is not reached or something cannot be removed; the others are cleaned
    all the same.
    """
    from planner import console
    from planner.agents.pool import AgentPool
    from planner.clean import Caches, this_machine
    from planner.fleet.file import load_fleet
    from planner.views import clean as view

    if as_json and not (yes or dry_run):
        raise PlannerError("--json: nobody can be asked; add --dry-run or --yes")
    listed = load_fleet(fleet)
    chosen = [listed.device(name) for name in dict.fromkeys(devices)] if devices else [this_machine(), *listed.devices]
    with AgentPool() as pool:
        with console.status("looking for what is left"):
            caches = Caches(pool, chosen)
            found = caches.find()
        _tell(caches.errors.values())
        unreached = len(caches.errors)
        if not as_json:
            console.show(view.render(found))
        cleaned = []
        if not dry_run:
            is_left = any(cache.removable for cache in found)
            if is_left and not yes and not agrees("Remove it?", "--yes"):
                raise PlannerError("nothing was removed")
            with console.status("removing it"):
                cleaned = caches.remove(found)
            if is_left and not as_json:
                console.show(view.render_cleaned(cleaned))
    if as_json:
        console.show(view.to_json(found, cleaned, caches.errors))
    kept = [line for each in cleaned for line in each.problems]
    _tell([*list(caches.errors.values())[unreached:], *kept])
    if caches.errors or kept:
        raise typer.Exit(1)


def _tell(problems: Iterable[object]) -> None:
    for problem in problems:
        echo(f"planner: {' '.join(str(problem).split())}", err=True)
