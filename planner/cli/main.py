"""The command line registers all commands; a failure becomes one line and an exit code."""

import errno
import io
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn, cast

import typer
from typer import Option

from planner.cli import (
    audit,
    clean,
    export,
    fleet,
    interrupts,
    launch,
    power,
    profile,
    recommend,
    runs,
    stream,
    train,
)
from planner.cli.options import StrategyCommand
from planner.errors import MAKE_ROOM, FleetError, InterruptedRunError, PlannerError
from planner.terminal import echo, open_closed_streams

Version = Annotated[bool, Option("--version", help="Print the version.")]
#: The base of typer's errors of usage, from the click that typer brings or finds installed.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

#: What typer makes of a KeyboardInterrupt, whichever signal it is from.
CTRL_C = 130

#: What Python says where the system starts no thread.
NO_THREAD = "can't start new thread"

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


def main() -> None:
    """Run `planner`."""
    run(app, "planner")


def run(commands: typer.Typer, program: str) -> NoReturn:
    """Run a command line; exit codes are 1 for a failure, 2 for wrong usage, 130 for Ctrl-C,
    143 for SIGTERM and 129 for SIGHUP."""
    open_closed_streams()
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="replace")  # not every locale has a "±"
    interrupts.once()
    sys.exit(_code(commands, program))


def _code(commands: typer.Typer, program: str) -> int:
    try:
        code = int(commands(prog_name=program, standalone_mode=False) or 0)
    except PlannerError as error:
        return _fail(error, interrupts.status() if isinstance(error, InterruptedRunError) else 1)
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else program
        return _fail(f"{error.format_message().rstrip('.')}; see `{command} --help`", 2)
    except OSError as error:
        remedy = f"; {MAKE_ROOM}" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}{remedy}", 1)
    except (typer.Abort, KeyboardInterrupt):  # the former is a RuntimeError
        code = CTRL_C
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        return _fail("this machine starts no more threads; end other programs, or raise the limit (ulimit -u)", 1)
    return _fail("stopped", interrupts.status()) if code == CTRL_C else code


def _fail(problem: PlannerError | str, code: int) -> int:
    """One line on standard error, or one for each mistake of a fleet file."""
    text = str(problem) if isinstance(problem, FleetError) else " ".join(str(problem).split())
    echo(f"planner: {text}", err=True)
    return code


@app.callback(invoke_without_command=True)
def root(context: typer.Context, version: Version = False) -> None:
    """Choose which of your machines train a network together, and train it on them.

    The order of use: init, check, profile, recommend, then train or launch, then export.
    """
    if version:
        from planner import __version__

        echo(__version__)
    elif context.invoked_subcommand is None:
        echo(context.get_help())


#: In the order in which `planner --help` lists them, each with an example.
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "init": (fleet.init, "planner init && $EDITOR fleet.toml"),
    "check": (fleet.check, "planner check --job train.py:job"),
    "trust": (fleet.trust, "planner trust tx2"),
    "models": (profile.models, "planner models --json"),
    "profile": (profile.profile, "planner profile --job train.py:job && planner profile --model resnet"),
    "recommend": (recommend.recommend, "planner recommend --metric edp --rate desktop=100mbit"),
    "train": (train.train, "planner train --target mae=0.3 && planner train --data cifar --metric edp"),
    "launch": (launch.launch, "planner launch plan.json --allow-plaintext -- python train.py --epochs 3"),
    "runs": (runs.runs, "planner runs && planner runs --compare runs/2026-01-31T12-00-00-cipher audit/runs"),
    "export": (export.export, "planner export runs/2026-01-31T12-00-00-cipher --to model.pt"),
    "clean": (clean.clean, "planner clean --dry-run && planner clean --device tx2 --yes"),
    "audit": (audit.audit, "planner audit --clusters 5 && planner audit --all --metric time --json"),
}
for name, (command, example) in COMMANDS.items():
    uses = StrategyCommand if name in ("recommend", "train") else None
    app.command(name, cls=uses, epilog=f"Example: {example}")(command)
app.add_typer(power.app, name="power")
app.add_typer(stream.app, name="stream")
