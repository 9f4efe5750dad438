"""`planner launch` checks that a script can be started as asked, and starts it or says how."""

import platform
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from planner.agents.project import Project
from planner.errors import ProjectError
from planner.fleet.device import Fleet, require_trust
from planner.fleet.file import load_fleet
from planner.launch import commands
from planner.launch.ranks import PlacedRank, placed
from planner.launch.result import LaunchResult
from planner.launch.script_run import LaunchCallbacks, ScriptRun
from planner.plan.file import load_plan

TORCHRUN, SLURM = "torchrun", "slurm"
#: From it a script takes the batches of its plan.
BATCHES_FILE = Path(__file__).with_name("planner_batches.py")


class LaunchRequest(NamedTuple):
    """The operator's request.

    command: what each rank runs in the project's folder.
    fleet: None for the plan's.
    allow_plaintext: what the ranks exchange may cross a network unencrypted.
    """

    plan: Path
    command: tuple[str, ...]
    project: Path
    fleet: Path | None = None
    allow_plaintext: bool = False


def launch(request: LaunchRequest, callbacks: LaunchCallbacks) -> LaunchResult:
    """Run a script to its end on the members of a plan.

    Raises PlannerError where it cannot start.
    """
    fleet, ranks = _ranks(request)
    if len(ranks) > 1:
        require_trust(fleet, [rank.name for rank in ranks], "launch", request.allow_plaintext)
    if not request.project.is_dir():
        raise ProjectError(f"--project {request.project}: there is no such folder; name the one that holds the script")
    project = Project.of(request.project.resolve(), request.command)
    _check_script(project, request.command)
    for path in project.outside:
        callbacks.on_note(f"{path} is a link that leads out of {project.folder}; it is not sent")
    return ScriptRun(ranks, request.command, _with_batches(project, request.command), callbacks).run()


def as_commands(request: LaunchRequest, scheduler: str) -> str:
    """The commands with which torchrun, or Slurm, starts the script. Nothing is contacted."""
    _, ranks = _ranks(request)
    folder = request.project.resolve()
    if scheduler == TORCHRUN:
        text = commands.torchrun(ranks, request.command, platform.node())
    else:
        text = commands.slurm(ranks, request.command, platform.node(), str(folder))
    beside = folder / _beside(request.command)
    if beside.exists():
        return text
    copy = f"cp {shlex.quote(str(BATCHES_FILE))} {shlex.quote(str(beside))}"
    return f"{text}\n# For a script that imports {BATCHES_FILE.stem}: {copy}"


def _ranks(request: LaunchRequest) -> tuple[Fleet, tuple[PlacedRank, ...]]:
    plan = load_plan(request.plan)
    fleet = load_fleet(request.fleet or Path(plan.fleet))
    return fleet, placed(plan, fleet)


def _check_script(project: Project, command: Sequence[str]) -> None:
    """Raises ProjectError where the command is a script that is not in the project."""
    script = _script(command)
    paths = {file.path for file in project.files}
    if script is not None and script.removeprefix("./") not in paths:
        raise ProjectError(
            f"{script} is not in {project.folder}, or is left out of what is sent; "
            "name the project's folder with --project, and the script relative to it"
        )


def _with_batches(project: Project, command: Sequence[str]) -> Project:
    """With ``planner_batches.py`` in its folder and beside the files that the command names."""
    paths = {file.path for file in project.files}
    named = [PurePosixPath(word) for word in command]
    folders = {PurePosixPath(), *(each.parent for each in named if str(each) in paths)}
    for path in sorted({str(folder / BATCHES_FILE.name) for folder in folders} - paths):
        project = project.with_file(path, BATCHES_FILE.read_bytes())
    return project


def _beside(command: Sequence[str]) -> PurePosixPath:
    """Where the script looks first for what it imports."""
    return PurePosixPath(_script(command) or "").parent / BATCHES_FILE.name


def _script(command: Sequence[str]) -> str | None:
    """The script in a command, where that is a file of the project as far as one can see."""
    first, *arguments = command
    if first == "python":
        script = next((word for word in arguments if not word.startswith("-")), "")
        return script if script.endswith(".py") and not script.startswith("/") else None
    return first if "/" in first and not first.startswith("/") else None
