"""`planner launch` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from planner.cli import options
from planner.errors import InterruptedRunError
from planner.terminal import echo


def launch(
    plan: Annotated[Path, Argument(metavar="PLAN", help="A plan that `planner recommend` wrote.")],
    command: Annotated[
        list[str], Argument(metavar="-- COMMAND...", help="What each rank runs; python is the device's own.")
    ],
    project: Annotated[Path, Option("--project", "-p", help="The folder to send, in which the command runs.")] = Path(),
    fleet: Annotated[Path | None, Option("--fleet", "-f", help="The fleet file; the plan's if not given.")] = None,
    allow_plaintext: Annotated[
        bool, Option("--allow-plaintext", help="Let torch.distributed, which does not encrypt, cross networks.")
    ] = False,
    print_as: Annotated[
        str | None, Option("--print", help="Write the commands for torchrun or slurm instead of starting anything.")
    ] = None,
    raw: Annotated[
        bool, Option("--raw", help="Pass on what ranks print as it is, with the colours and commands for the terminal.")
    ] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Start your own torch.distributed script on the planned cluster.

    The script stays unchanged and finds the variables that torchrun would set. The devices get a
    copy of the project's folder, of which only changes travel; what its .plannerignore names stays
    here. Lines that ranks print begin with the device's name. The first rank that fails ends all,
    and its exit code is the command's; Ctrl-C ends all as well.
    """
    from planner import console
    from planner.launch.launch import SLURM, TORCHRUN, LaunchRequest, as_commands
    from planner.launch.launch import launch as run_script
    from planner.launch.result import INTERRUPTED
    from planner.views import launch as view

    detail = options.detail(quiet, verbose)
    options.check_known("--print", print_as, (TORCHRUN, SLURM))
    request = LaunchRequest(plan, tuple(command), project, fleet, allow_plaintext)
    if print_as is not None:
        echo(as_commands(request, print_as))
        return
    with view.ranks(detail, all_to_errors=as_json, raw=raw) as callbacks:
        result = run_script(request, callbacks)
    if as_json:
        console.show(view.to_json(result))
    if result.exit_code == INTERRUPTED:
        raise InterruptedRunError(result.reason)
    if result.exit_code:
        echo(f"planner: {result.reason}", err=True)
        raise typer.Exit(result.exit_code)
