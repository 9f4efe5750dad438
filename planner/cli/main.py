"""The command line: parse, call, render. Heavy imports wait inside the commands, so that --help is quick."""

import io
import sys
from pathlib import Path
from typing import cast

import typer

from planner import paths
from planner.cli import interrupts, lab, power
from planner.cli import options as args
from planner.cli.audit import audit
from planner.errors import FleetError, InterruptedRunError, PlanError, PlannerError

#: The base of what typer raises at wrong usage; it brings a click of its own or takes the installed one.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
app.add_typer(lab.app, name="lab")
app.add_typer(power.app, name="power")


def main() -> None:
    """Entry point: every expected failure is one line and exit code 1, 2 for wrong usage; Ctrl-C is 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every locale has a "±"
    interrupts.once()
    sys.exit(_run())


def _run() -> int:
    try:
        code = int(app(prog_name="planner", standalone_mode=False) or 0)
    except PlannerError as error:
        return _fail(error, _exit_code(error))
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "planner"
        return _fail(f"{error.format_message().rstrip('.')}; see `{command} --help`", 2)
    except OSError as error:
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", 1)
    except (typer.Abort, KeyboardInterrupt):
        code = interrupts.STOPPED
    return _fail("stopped", interrupts.STOPPED) if code == interrupts.STOPPED else code


def _fail(problem: PlannerError | str, code: int) -> int:
    """One line on standard error, or one for each mistake of a fleet file."""
    text = str(problem) if isinstance(problem, FleetError) else " ".join(str(problem).split())
    typer.echo(f"planner: {text}", err=True)
    return code


def _exit_code(error: PlannerError) -> int:
    return interrupts.STOPPED if isinstance(error, InterruptedRunError) else 1


@app.callback(invoke_without_command=True)
def root(context: typer.Context, version: args.Version = False) -> None:
    """Which of your machines should train this network, and what will it cost?"""
    if version:
        from planner import __version__

        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: planner init && $EDITOR fleet.toml")
def init(path: args.NewFleet = Path(paths.FLEET)) -> None:
    """Write a commented example of a fleet file."""
    from planner.fleet.device import example

    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(example())
    except FileExistsError:
        raise PlannerError(f"{path} exists already; name another file or remove it first") from None
    typer.echo(f"wrote {path}: put your devices into it, then run `planner check`")


@app.command(epilog="Example: planner check --json")
def check(
    fleet: args.FleetPath = Path(paths.FLEET),
    framework: args.Framework = None,
    as_json: args.AsJson = False,
) -> None:
    """See whether every device can take part, and the remedy if not."""
    from backends.frameworks.base import FRAMEWORKS
    from planner import console
    from planner.check.run import check as examine
    from planner.fleet.file import load_fleet
    from planner.views import check as view

    with console.status("checking the fleet") as on_progress:
        report = examine(load_fleet(fleet), [framework] if framework else FRAMEWORKS, on_progress)
    console.show(report.to_json() if as_json else view.render(report))
    if not all(report.able.values()):
        raise typer.Exit(1)


@app.command(epilog="Example: planner trust tx2")
def trust(
    device: args.Host,
    fleet: args.FleetPath = Path(paths.FLEET),
    yes: args.Yes = False,
    replace: args.Replace = False,
) -> None:
    """Show a host key's fingerprint and, if you confirm it, store it.

    A key that differs from the stored one is replaced with --replace only, or when you agree to that.
    """
    from planner.remote import known_hosts, trust

    key = trust.fetch_key(args.named_or_addressed(device, fleet))
    try:
        known_hosts.verify(key)
    except known_hosts.UnknownHostKeyError:
        typer.echo(f"{key.name} shows an unknown host key:\n  {key.type} {key.fingerprint}")
        _confirm(yes, f"Is this the key of the device itself ({SHOW_KEY})? Store it?", key.name)
        trust.store(key)
    except known_hosts.ChangedHostKeyError as changed:
        typer.echo(
            f"WARNING: the host key of {key.name} has changed.\n"
            f"  stored: {changed.recorded.type} {changed.recorded.fingerprint} "
            f"({changed.recorded.path}:{changed.recorded.line})\n"
            f"  shown:  {key.type} {key.fingerprint}\n"
            "Its system was installed anew, another machine has its address, or someone intercepts the connection."
        )
        _confirm(replace, f"Is the key shown that of the device itself ({SHOW_KEY})? Replace the stored key?", key.name)
        trust.replace(key)
    else:
        typer.echo(f"{key.name}: {key.fingerprint} was known already")
        return
    typer.echo("stored")


def _confirm(given: bool, question: str, host: str) -> None:
    """Ask, where an option has not answered. Raises PlannerError for a no."""
    if not given and not typer.confirm(question):
        raise PlannerError(f"the key of {host} was not stored")


@app.command("models", epilog="Example: planner models --json")
def list_models(as_json: args.AsJson = False) -> None:
    """List the known models with their sizes and sources."""
    from planner import console
    from planner.views import models

    console.show(models.to_json() if as_json else models.render())


@app.command(epilog="Example: planner profile --model cifar10 --model resnet --batch-size 32")
def profile(
    fleet: args.FleetPath = Path(paths.FLEET),
    model: args.Models = None,
    batch_size: args.BatchSize = 32,
    protocol: args.Protocol = "adaptive",
    framework: args.Framework = None,
    data: args.Data = None,
    device: args.Devices = None,
    steps: args.Steps = 100_000,
    out: args.ProfileOut = Path(paths.PROFILE),
    fresh: args.Fresh = False,
    as_json: args.AsJson = False,
) -> None:
    """Pre-train on every device and probe the links between them."""
    from backends.frameworks.base import FRAMEWORKS
    from planner import console
    from planner.fleet.file import load_fleet
    from planner.profile.profiler import Profiler
    from planner.profile.request import ProfileRequest
    from planner.views import profile as view
    from profilers.steptime import PROTOCOLS

    args.known("--protocol", protocol, PROTOCOLS)
    if framework is not None:
        args.known("--framework", framework, FRAMEWORKS)
    devices = load_fleet(fleet)
    shape, classes = args.shape_of(data)
    wanted = ProfileRequest(tuple(model or ["cifar10"]), batch_size, protocol, framework, shape, classes, steps)
    with console.progress() as on_progress:
        profiler = Profiler(devices, wanted, out, on_progress, fresh, device or ())
        measured = profiler.run(out.with_suffix(".log"))
    console.show(view.to_json(measured, out) if as_json else view.render(measured, out))
    if all(measured.devices[name].failed(wanted.models) for name in device or measured.devices):
        raise typer.Exit(1)


@app.command(epilog="Example: planner recommend --metric edp --rate desktop=100mbit")
def recommend(
    profile_path: args.ProfilePath = None,
    metric: args.Metric = None,
    weights: args.Weights = None,
    model: args.ProfiledModel = None,
    framework: args.ProfiledFramework = None,
    steps: args.PlannedSteps = None,
    batch_size: args.OtherBatchSize = None,
    server: args.Server = None,
    include: args.Include = None,
    exclude: args.Exclude = None,
    count_idle: args.CountIdle = False,
    base_watts: args.BaseWatts = 0.0,
    rate: args.Rates = None,
    strategy: args.PlannedStrategy = "parameter-server",
    top: args.Top = 10,
    choose: args.Choose = 1,
    out: args.PlanOut = Path(paths.PLAN),
    fleet: args.FleetPath = Path(paths.FLEET),
    csv: args.AsCsv = False,
    as_json: args.AsJson = False,
) -> None:
    """Predict every possible cluster, rank them, and plan the best."""
    from planner import console
    from planner.json_records import save
    from planner.plan import recommend as plan
    from planner.plan.rank import METRICS, one_metric, parse_weights
    from planner.plan.request import RecommendRequest
    from planner.plan.strategy_search import best_of
    from planner.predict.sample_efficiency import newest
    from planner.profile.file import load_profile
    from planner.views import ranking

    if csv and as_json:
        raise PlanError("--csv and --json: choose one of them")
    if metric is not None and weights is not None:
        raise PlanError(f"--metric {metric} and --weights {weights}: choose one of them")
    if metric is not None:
        args.known("--metric", metric, METRICS)
    request = RecommendRequest(
        one_metric(metric or "edp") if weights is None else parse_weights(weights),
        model=model,
        framework=framework,
        steps=steps,
        batch=batch_size,
        server=server,
        include=include or (),
        exclude=exclude or (),
        count_idle=count_idle,
        base_watts=base_watts,
        rates=args.rates(rate or []),
    )
    ranked = best_of(load_profile(profile_path or paths.newest_profile(Path())), request, strategy, newest(Path()))
    save(plan.make_plan(ranked, str(fleet), choose), out)
    if csv:
        typer.echo(plan.to_csv(ranked), nl=False)
        for remark in ranking.remarks(ranked):
            typer.echo(remark, err=True)
    else:
        console.show(plan.to_json(ranked) if as_json else ranking.render(ranked, top, out, choose))


@app.command(epilog="Example: planner train --data ./cifar-10-batches-bin --metric edp --steps 20000")
def train(
    plan: args.PlanPath = None,
    data: args.Data = None,
    metric: args.PlanBy = None,
    model: args.ModelToPlan = None,
    batch_size: args.BatchToPlan = None,
    framework: args.FrameworkToPlan = None,
    steps: args.StepsToMake = None,
    fleet: args.FleetOfPlan = None,
    learning_rate: args.LearningRate = None,
    momentum: args.Momentum = None,
    weight_decay: args.WeightDecay = None,
    schedule: args.Schedule = None,
    warmup: args.Warmup = None,
    seed: args.Seed = None,
    evaluate_every: args.EvaluateEvery = None,
    checkpoint_every: args.CheckpointEvery = None,
    heartbeat: args.Heartbeat = None,
    strategy: args.Strategy = None,
    resume: args.Resume = None,
    run_dir: args.RunDir = Path("runs"),
    as_json: args.AsJson = False,
) -> None:
    """Train on the planned cluster; compare with the prediction."""
    from backends.frameworks.base import FRAMEWORKS
    from planner import console
    from planner.plan.rank import METRICS
    from planner.train.train import Request
    from planner.train.train import train as run_training
    from planner.views import training as view

    if metric is None:
        args.need_metric({"--model": model, "--batch-size": batch_size, "--framework": framework})
    else:
        args.known("--metric", metric, METRICS)
        if framework is not None:
            args.known("--framework", framework, FRAMEWORKS)
    options = {
        "data": str(data) if data else None, "rate": learning_rate, "momentum": momentum,
        "weight_decay": weight_decay, "schedule": schedule, "warmup": warmup, "seed": seed,
        "evaluate_every": evaluate_every, "checkpoint_every": checkpoint_every, "heartbeat_s": heartbeat,
        "strategy": strategy,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    request = Request(fleet, plan, metric, model, steps, batch_size, framework, given, resume, run_dir)
    with view.training() as shown:
        result, folder = run_training(request, shown)
    console.show(result if as_json else view.render(result, folder))


app.command(epilog="Example: planner audit --repetitions 2 --out audit-100 && planner audit audit-100 audit-10")(audit)
