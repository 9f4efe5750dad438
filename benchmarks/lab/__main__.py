"""`python -m benchmarks.lab …` parses, calls and renders."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from planner import paths
from planner.cli.main import run
from planner.cli.options import AsJson

from .errors import LabError

app = typer.Typer(
    help="Build and change a fleet on one machine (Linux, root).",
    epilog="Example: python -m benchmarks.lab up benchmarks/lab/specs/gu-100.toml && python -m benchmarks.lab status",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SpecPath = Annotated[Path, Argument(metavar="SPEC.toml", help="What to build; see benchmarks/lab/specs/.")]
Name = Annotated[str, Option("--name", help="Which lab, where there are several.")]
DeviceName = Annotated[str, Argument(metavar="DEVICE", help="A device of the lab.")]


@app.command(epilog="Example: python -m benchmarks.lab up benchmarks/lab/specs/gu-100.toml && planner check")
def up(
    spec: SpecPath,
    out: Annotated[Path, Option("--out", "-o", help="The fleet file to write.")] = Path(paths.FLEET),
    name: Name = "lab",
) -> None:
    """Build a lab, or what is missing of it, and write its fleet file."""
    from planner import console
    from profilers.cpu_quota import usable_cores

    from .lab import Lab
    from .spec import load_spec

    wanted = load_spec(spec)
    with console.status("building the lab") as on_progress:
        changed = Lab(name).up(wanted, out, on_progress)
    cpus, cores = sum(device.cpus for device in wanted.devices), usable_cores()
    if cpus > cores:
        typer.echo(f"the devices may use {cpus:g} cores and this machine has {cores:g}: busy together, they are slower")
    if changed:
        typer.echo(f"new, or with other rates or cpus: {', '.join(changed)}{_stale_profiles(out.parent)}")
    typer.echo(f"{len(wanted.devices)} devices are up; wrote {out}: try `planner check --fleet {out}`")


def _stale_profiles(folder: Path) -> str:
    """The end of a message, where there are profiles: profiling does not notice a change itself."""
    if not any(folder.glob("profile*.json")):
        return ""
    return ": earlier profiles no longer hold; profile again with --fresh"


@app.command(epilog="Example: python -m benchmarks.lab down")
def down(name: Name = "lab") -> None:
    """Remove all of a lab, also after a crash."""
    from .lab import Lab

    typer.echo("removed" if Lab(name).down() else "there was nothing to remove")


@app.command(epilog="Example: python -m benchmarks.lab status --json")
def status(name: Name = "lab", as_json: AsJson = False) -> None:
    """Show the devices, what they may use and what state they are in."""
    from planner import console

    from . import view
    from .lab import Lab

    seen = Lab(name).status()
    console.show(view.to_json(seen) if as_json else view.table(seen))


@app.command("set", epilog="Example: python -m benchmarks.lab set tx2 --rate 10mbit --cpus 0.25")
def change(
    device: DeviceName,
    rate: Annotated[str | None, Option(help="Its link from now on, both directions: 10mbit.")] = None,
    cpus: Annotated[float | None, Option(help="Cores of this machine from now on: 0.25.")] = None,
    name: Name = "lab",
) -> None:
    """Change a device's link or processor while it runs."""
    from planner.fleet.quantities import parse_rate

    from .lab import Lab
    from .spec import parse_cpus

    if rate is None and cpus is None:
        raise LabError(f"{device}: nothing to change; give --rate, --cpus or both")
    try:
        wanted = (None if rate is None else parse_rate(rate), None if cpus is None else parse_cpus(cpus))
    except ValueError as error:
        raise LabError(str(error)) from error
    Lab(name).set(device, *wanted)
    typer.echo(f"{device} is changed{_stale_profiles(Path())}")


@app.command(epilog="Example: python -m benchmarks.lab stop tx2; python -m benchmarks.lab restore tx2")
def stop(device: DeviceName, name: Name = "lab") -> None:
    """Stop all processes of a device where they are (SIGSTOP)."""
    _do(name, device, "stop")


@app.command(epilog="Example: python -m benchmarks.lab kill tx2; python -m benchmarks.lab restore tx2")
def kill(device: DeviceName, name: Name = "lab") -> None:
    """Switch a device off: its link is dead, and all of its processes (SIGKILL)."""
    _do(name, device, "kill")


@app.command(epilog="Example: python -m benchmarks.lab cut tx2; python -m benchmarks.lab restore tx2")
def cut(device: DeviceName, name: Name = "lab") -> None:
    """Pull a device's network cable."""
    _do(name, device, "cut")


@app.command(epilog="Example: python -m benchmarks.lab restore tx2")
def restore(device: DeviceName, name: Name = "lab") -> None:
    """Undo stop, kill or cut."""
    _do(name, device, "start", "wait")


@app.command(epilog="Example: python -m benchmarks.lab play benchmarks/lab/specs/dlion-dynamic-a.toml --speed 10")
def play(
    spec: SpecPath,
    speed: Annotated[float, Option(help="How many times as fast as the schedule says.")] = 1.0,
    name: Name = "lab",
) -> None:
    """Make the changes of a spec's schedule, each at its time."""
    from . import schedule
    from .lab import Lab
    from .spec import load_spec

    if not speed > 0:
        raise LabError(f"--speed {speed:g}: should be above zero")
    changes = load_spec(spec).schedule
    if not changes:
        raise LabError(f"{spec}: there is no schedule; add [[schedule]] with at, device, and rate or cpus")
    schedule.play(Lab(name), changes, speed, lambda line: typer.echo(line, err=True))


def _do(lab: str, device: str, *actions: str) -> None:
    from .device import LabDevice
    from .lab import Lab

    Lab(lab).do(device, *(getattr(LabDevice, action) for action in actions))


def main() -> None:
    """Run the command line."""
    run(app, "python -m benchmarks.lab")


if __name__ == "__main__":
    main()
