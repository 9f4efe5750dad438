"""The command line: parse, call, render. Heavy imports wait inside the commands, so that --help is quick."""

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from planner import runs
from planner.errors import PlannerError

app = typer.Typer(
    help="Which of your machines should train this network, and what will it cost?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode=None,
)

FleetPath = Annotated[Path, typer.Option("--fleet", "-f", help="The fleet file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Model = Annotated[Optional[str], typer.Option("--model", "-m", help="A known model, or path/to/file.py:function.")]
Framework = Annotated[str, typer.Option(help="The framework to compute with: torch.")]
Metric = Annotated[str, typer.Option("--metric", help="time, power, energy or edp.")]
Steps = Annotated[int, typer.Option("--steps", "-s", min=1, help="Training steps in all.")]
Data = Annotated[Optional[Path], typer.Option("--data", "-d", help="A directory with CIFAR-10 or (Fashion-)MNIST files.")]
Names = Annotated[Optional[list[str]], typer.Option(help="Only these devices; may be repeated.")]


def main() -> None:
    """Entry point: every expected failure is one line and exit code 1; Ctrl-C is 130."""
    try:
        app()
    except PlannerError as error:
        typer.echo(f"planner: {error}", err=True)
        sys.exit(130 if type(error).__name__ == "Interrupted" else 1)
    except BrokenPipeError:
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("planner: stopped", err=True)
        sys.exit(130)
    except OSError as error:
        typer.echo(f"planner: {error.filename or ''}: {error.strerror or error}", err=True)
        sys.exit(1)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Which of your machines should train this network, and what will it cost?"""
    if version:
        from planner import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command(epilog="Example: planner init && $EDITOR fleet.toml")
def init(path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path(runs.FLEET)) -> None:
    """Write a commented example of a fleet file."""
    from planner.fleet import example

    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(example())
    except FileExistsError:
        raise PlannerError(f"{path} exists already; name another file or remove it first") from None
    typer.echo(f"wrote {path}: put your devices into it, then run `planner check`")


@app.command(epilog="Example: planner check --json")
def check(
    fleet: FleetPath = Path(runs.FLEET), framework: Framework = "torch", as_json: AsJson = False
) -> None:
    """See whether every device can take part, and what to do about those that cannot."""
    from planner import render
    from planner.check import check as examine
    from planner.checkview import table
    from planner.fleet import load_fleet

    with render.status("checking the fleet") as on_progress:
        report = examine(load_fleet(fleet), framework, on_progress)
    render.show(report.to_json() if as_json else table(report))
    if not all(report.able.values()):
        raise typer.Exit(1)


@app.command(epilog="Example: planner trust tx2")
def trust(
    device: Annotated[str, typer.Argument(help="A device of the fleet, or [user@]host[:port].")],
    fleet: FleetPath = Path(runs.FLEET),
    yes: Annotated[bool, typer.Option("--yes", help="Store it without asking: the fingerprint was checked before.")] = False,
) -> None:
    """Show the fingerprint of a host's key and, if you confirm it, remember the key."""
    from planner.trust import fetch_key, store

    key = fetch_key(_named_or_addressed(device, fleet))
    typer.echo(f"{key.name} {key.type}\n{key.fingerprint}")
    if not yes and not typer.confirm("Is this what the device itself shows (ssh-keygen -lf on its host key)?"):
        raise typer.Exit(1)
    typer.echo("stored" if store(key) else "was known already")


@app.command(epilog="Example: planner profile --model cifar10 --model resnet --batch-size 32")
def profile(
    fleet: FleetPath = Path(runs.FLEET),
    model: Annotated[Optional[list[str]], typer.Option("--model", "-m", help="May be repeated.")] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Images a step.")] = 32,
    protocol: Annotated[str, typer.Option(help="adaptive, or paper (300 + 100 + 100 steps).")] = "adaptive",
    framework: Framework = "torch",
    data: Data = None,
    device: Names = None,
    steps: Steps = 100_000,
    out: Annotated[Path, typer.Option("--out", "-o", help="The profile; what it holds and still holds is kept.")] = Path(runs.PROFILE),
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure everything again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pre-train on every device and probe the links between them."""
    from planner import render
    from planner.fleet import load_fleet
    from planner.profile import Profiler, Wanted, chosen

    shape, classes = _shape(data)
    wanted = Wanted(tuple(model or ["cifar10"]), batch_size, protocol, framework, shape, classes, steps)
    devices = chosen(load_fleet(fleet), device or [])
    with render.progress() as on_progress:
        measured = Profiler(devices, wanted, out, on_progress, fresh).run(out.with_suffix(".log"))
    render.show(render.profile_json(measured, out) if as_json else render.profile_table(measured, out))
    if all(part.error is not None for part in measured.devices.values()):
        raise typer.Exit(1)


@app.command(epilog="Example: planner recommend --metric edp --rate desktop=100mbit")
def recommend(
    profile_path: Annotated[Optional[Path], typer.Argument(metavar="[PROFILE]", help="The newest profile*.json here if not given.")] = None,
    metric: Metric = "edp",
    weights: Annotated[Optional[str], typer.Option(help="Several metrics at once: time=0.3,energy=0.7.")] = None,
    model: Model = None,
    framework: Annotated[Optional[str], typer.Option(help="Where the profile holds several.")] = None,
    steps: Annotated[Optional[int], typer.Option("--steps", "-s", min=1, help="Training steps in all; what was profiled for if not given.")] = None,
    batch_size: Annotated[Optional[int], typer.Option("--batch-size", min=1, help="What if: another batch size.")] = None,
    server: Annotated[Optional[str], typer.Option(help="Only clusters with this server.")] = None,
    include: Annotated[Optional[list[str]], typer.Option(help="Only clusters with this device; may be repeated.")] = None,
    exclude: Annotated[Optional[list[str]], typer.Option(help="Only clusters without this device; may be repeated.")] = None,
    count_idle: Annotated[bool, typer.Option("--count-idle", help="Devices left out idle on the same bill.")] = False,
    base_watts: Annotated[float, typer.Option("--base-watts", min=0.0, help="Watts spent whatever is chosen.")] = 0.0,
    rate: Annotated[Optional[list[str]], typer.Option(help="What if: DEVICE=100mbit; may be repeated.")] = None,
    top: Annotated[int, typer.Option(help="Rows to show; 0 for all.")] = 10,
    choose: Annotated[int, typer.Option(min=1, help="Plan the N-th instead of the best.")] = 1,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the plan goes.")] = Path(runs.PLAN),
    fleet: FleetPath = Path(runs.FLEET),
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    as_json: AsJson = False,
) -> None:
    """Predict every possible cluster, rank them, and plan the best."""
    from planner import plan, render
    from planner.decode import save
    from planner.profilefile import load_profile
    from planner.rank import one_metric, parse_weights

    ranked = plan.recommend(
        load_profile(profile_path or runs.newest_profile(Path())),
        parse_weights(weights) if weights else one_metric(metric),
        model,
        framework,
        steps,
        batch_size,
        server,
        include or (),
        exclude or (),
        count_idle,
        base_watts,
        _rates(rate or []),
    )
    save(plan.make_plan(ranked, str(fleet), choose), out)
    if csv:
        typer.echo(plan.to_csv(ranked), nl=False)
    else:
        render.show(plan.to_json(ranked) if as_json else render.ranking(ranked, top, out))


@app.command(epilog="Example: planner train --data ./cifar-10-batches-bin --metric edp --steps 20000")
def train(
    plan: Annotated[Optional[Path], typer.Argument(metavar="[PLAN]", help="plan.json here if not given.")] = None,
    data: Data = None,
    metric: Annotated[Optional[str], typer.Option("--metric", help="Plan first, profiling what is missing.")] = None,
    model: Model = None,
    steps: Annotated[Optional[int], typer.Option("--steps", "-s", min=1, help="Steps in all; the plan's if not given.")] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Images a step, with --metric.")] = 32,
    framework: Framework = "torch",
    fleet: FleetPath = Path(runs.FLEET),
    learning_rate: Annotated[float, typer.Option(help="Base learning rate.")] = 0.01,
    momentum: Annotated[float, typer.Option(help="SGD momentum.")] = 0.9,
    weight_decay: Annotated[float, typer.Option(help="L2 weight decay.")] = 0.0,
    schedule: Annotated[str, typer.Option(help="Learning rate over the run: constant, cosine or step.")] = "constant",
    warmup: Annotated[int, typer.Option(min=0, help="Steps over which the learning rate rises.")] = 0,
    seed: Annotated[int, typer.Option(help="Of weights, shards and batches.")] = 0,
    evaluate_every: Annotated[int, typer.Option(min=0, help="Steps; 0 for once an epoch.")] = 0,
    checkpoint_every: Annotated[int, typer.Option(min=0, help="Steps; 0 for a tenth of the run.")] = 0,
    heartbeat: Annotated[float, typer.Option(help="Seconds of silence after which a worker is dropped.")] = 10.0,
    resume: Annotated[Optional[Path], typer.Option(help="Go on from this run folder's checkpoint.")] = None,
    run_dir: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Train on the planned cluster with a parameter server; measured beside predicted at the end."""
    from planner import render
    from planner.fleet import load_fleet
    from planner.run import Request, train as run_training
    from planner.training import Options

    options = Options(
        str(data) if data else "", learning_rate, momentum, weight_decay, schedule, warmup, seed,
        evaluate_every, checkpoint_every, heartbeat,
    )  # fmt: skip
    request = Request(load_fleet(fleet), plan, metric, model, steps, batch_size, framework, options, resume, run_dir)
    with render.training() as view:
        result, folder = run_training(request, view)
    render.show(result if as_json else render.result_table(result, folder))


def _named_or_addressed(text: str, path: Path):  # type: ignore[no-untyped-def]
    """A device of the fleet if it has one of that name, else whatever the address says."""
    from planner.fleet import device_at, load_fleet

    if path.exists():
        named = [device for device in load_fleet(path).devices if device.name == text]
        if named:
            return named[0]
    try:
        return device_at(text)
    except ValueError as error:
        raise PlannerError(str(error)) from error


def _rates(given: list[str]) -> dict[str, float]:
    from planner.fleet import parse_rate

    rates = {}
    for text in given:
        name, equals, rate = text.partition("=")
        if not equals:
            raise PlannerError(f'--rate {text}: write DEVICE=RATE, as in "--rate desktop=100mbit"')
        try:
            rates[name] = parse_rate(rate)
        except ValueError as error:
            raise PlannerError(f"--rate {text}: {error}") from error
    return rates


def _shape(data: Path | None) -> tuple[tuple[int, ...] | None, int | None]:
    if data is None:
        return None, None
    from planner.training import load_dataset

    dataset = load_dataset(str(data))
    return tuple(dataset.input_shape), dataset.classes
