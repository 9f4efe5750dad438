"""`planner models` and `profile` parse, call and render; they import what is heavy late."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from planner import paths
from planner.cli import options
from planner.errors import PlanError

if TYPE_CHECKING:
    from backends.streams.spec import StreamSpec


def models(as_json: options.AsJson = False) -> None:
    """List the known models with their sizes and sources."""
    from planner import console
    from planner.views import models as view

    console.show(view.to_json() if as_json else view.render())


def profile(
    fleet: options.FleetPath = Path(paths.FLEET),
    model: Annotated[
        list[str] | None, Option("--model", "-m", help="A known model or path/to/file.py:function; may be repeated.")
    ] = None,
    batch_size: Annotated[int, Option(min=1, help="Samples a step.")] = 32,
    protocol: Annotated[str, Option(help="adaptive, or paper (300 + 100 + 100 steps).")] = "adaptive",
    framework: options.Framework = None,
    data: options.Data = None,
    job: options.Job = None,
    micro_batch: options.MicroBatch = None,
    precision: options.Precision = None,
    activation_checkpointing: options.ActivationCheckpointing = None,
    stream: Annotated[
        str | None,
        Option(
            help="Count the samples that arrive on each device for 10 s: directory: or kafka:... "
            "(docs/streams.md); without --model and --job nothing else is timed again."
        ),
    ] = None,
    device: Annotated[list[str] | None, Option(help="Only this device; may be repeated.")] = None,
    steps: Annotated[
        int,
        Option("--steps", "-s", min=1, help="Training steps planned."),
    ] = 100_000,
    budget: Annotated[
        str | None,
        Option(
            help="After so long, as in 60s, nothing more is measured [until all is; then more for a tenth of the "
            "planned training, or 60s in all]."
        ),
    ] = None,
    out: Annotated[Path, Option("--out", "-o", help="The profile; what it holds and is still valid is kept.")] = Path(
        paths.PROFILE
    ),
    fresh: Annotated[bool, Option("--fresh", help="Measure everything again.")] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Time training steps on every device and measure the links."""
    from backends.frameworks.base import FRAMEWORKS
    from backends.training.run_settings import RunSettings
    from planner import console
    from planner.fleet.file import load_fleet
    from planner.jobs.reference import find_job
    from planner.plan.next_measurements import next_wanted
    from planner.predict.request import RecommendRequest
    from planner.profile.budget import Budget
    from planner.profile.profiler import Profiler
    from planner.profile.request import ProfileRequest
    from planner.views import profile as view
    from planner.views.profile_json import to_json
    from profilers.steptime import PROTOCOLS

    detail = options.detail(quiet, verbose)
    options.check_known("--protocol", protocol, PROTOCOLS)
    options.check_known("--framework", framework, FRAMEWORKS)
    timed = batch_size, batch_size // 2, batch_size // 4
    compute = options.compute_settings(micro_batch, precision, activation_checkpointing, *timed)
    devices = load_fleet(fleet)
    shape, classes = options.shape_of(data)
    own = None if job is None else find_job(job)
    watched = None if stream is None else _watched(stream)
    models = (*(model or ()), *((own.text,) if own else ()))
    if not models and (watched is None or fresh or not out.exists()):
        models = ("cifar10",)
    request = ProfileRequest(
        models,
        batch_size,
        protocol,
        framework or (own.framework if own else None),
        shape,
        classes,
        steps,
        job=own,
        compute=compute,
        stream=watched,
    )
    limit_s = None if budget is None else _seconds(budget)
    refined = functools.partial(
        next_wanted,
        request=RecommendRequest(settings=RunSettings(models[-1] if models else ""), framework=request.framework),
        budget_s=limit_s,
    )
    with console.one_bar(detail) as on_progress:
        profiler = Profiler(devices, request, out, on_progress, fresh, device or (), refined, Budget(limit_s))
        measured = profiler.run(out.with_suffix(".log"))
    console.show(to_json(measured, out) if as_json else view.render(measured, out, detail is console.Detail.VERBOSE))
    chosen = [measured.devices[name] for name in device or measured.devices]
    if all(each.failed((*request.models, *([f"--stream {stream}"] if watched else ()))) for each in chosen):
        raise typer.Exit(1)


def _seconds(budget: str) -> float:
    """Raises PlanError for what is no time."""
    from planner.fleet.quantities import parse_duration

    try:
        return parse_duration(budget)
    except ValueError as error:
        raise PlanError(f"--budget {budget}: {error}") from error


def _watched(stream: str) -> "StreamSpec":
    """The stream whose samples are to be counted. Raises PlanError for one that has none."""
    from planner.plan.texts import parse_stream

    found = parse_stream(stream)
    if found.source == "replay":
        raise PlanError(f"--stream {stream}: a replay tells its rates itself; give it to `planner recommend`")
    return found
