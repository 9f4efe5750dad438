"""`planner recommend` parses, calls and renders; heavy imports wait inside the command."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from planner import paths
from planner.cli import options
from planner.errors import PlanError
from planner.terminal import echo

#: Clusters that are shown, and that are in JSON and CSV, where no number is asked for.
ROWS, ROWS_OF_FILES = 5, 1000


def recommend(
    profile_path: options.ProfilePath = None,
    metric: options.Metric = None,
    weights: Annotated[str | None, Option(help="Several metrics, in place of --metric: time=0.3,energy=0.7.")] = None,
    model: options.Model = None,
    job: options.Job = None,
    framework: options.ProfiledFramework = None,
    steps: options.PlannedSteps = None,
    batch_size: options.WhatIfBatch = None,
    global_batch: Annotated[
        int | None,
        Option(min=1, help="Samples that all workers share in a step, each as many as it computes in the same time."),
    ] = None,
    server: Annotated[str | None, Option(help="Only clusters with this device as the server.")] = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    count_idle: Annotated[bool, Option("--count-idle", help="Count the idle watts of devices left out.")] = False,
    base_watts: Annotated[float, Option(help="Watts spent whatever cluster is chosen.")] = 0.0,
    rate: Annotated[list[str] | None, Option(help="What if: DEVICE=100mbit; may be repeated.")] = None,
    strategy: Annotated[
        str, Option(help="How workers exchange updates: NAME (listed below), NAME:part=value,..., or auto.")
    ] = "parameter-server",
    engine: Annotated[
        str,
        Option(help="What moves the gradients: planner; torch, or torch:hook=bf16,backend=gloo; or auto to rank both."),
    ] = "planner",
    optimizer: options.Optimizer = None,
    clip_norm: options.ClipNorm = None,
    stream: Annotated[
        str | None,
        Option(help="Samples arrive while it trains: replay:S1, or directory:, kafka:... (docs/streams.md)."),
    ] = None,
    seed: Annotated[int, Option(min=0, help="Of rates of streams that are drawn, as of `planner train`.")] = 0,
    allow_plaintext: options.AllowPlaintext = False,
    top: Annotated[
        int | None, Option(min=0, help="Rows to show, 0 for all [5; --json and --csv: the first 1,000].")
    ] = None,
    choose: Annotated[int, Option(min=1, help="Plan the N-th cluster instead of the best.")] = 1,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Where the plan goes [plan.json; nowhere for a what-if].")
    ] = None,
    fleet: options.FleetPath = Path(paths.FLEET),
    csv: Annotated[bool, Option("--csv", help="Print CSV instead of a table.")] = False,
    verbose: options.AllNotes = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict every possible cluster, rank them, and plan the best."""
    from backends.strategies.engine import OWN
    from backends.training.run_settings import RunSettings
    from planner import console
    from planner.json_records import save
    from planner.plan import report
    from planner.plan.engine_search import best_of
    from planner.plan.recommend import make_plan
    from planner.plan.texts import optimizer_of_job, parse_stream, without_server
    from planner.predict.interval import newest as newest_errors
    from planner.predict.request import RecommendRequest
    from planner.predict.run import Bill
    from planner.predict.sample_efficiency import newest
    from planner.profile.file import load_profile
    from planner.views import ranking

    model = options.model_of(job, model)
    if csv and as_json:
        raise PlanError("--csv and --json: choose one of them")
    request = RecommendRequest(
        _weights(metric, weights),
        RunSettings(
            model or "", steps=steps or 0, batch=batch_size or 0, clip_norm=clip_norm,
            stream=None if stream is None else parse_stream(stream), rates_seed=seed,
        ),
        global_batch, framework=framework, server=server, include=include or (), exclude=exclude or (),
        rates=_rates(rate or []), allow_plaintext=allow_plaintext or (engine != OWN and _is_trusted(fleet)),
        bill=Bill(count_idle, base_watts), errors=newest_errors(Path()),
    )  # fmt: skip
    profile = load_profile(profile_path or paths.newest_profile(Path()))
    optimizer = optimizer_of_job(profile, model, optimizer)
    strategy, noted = without_server(strategy, optimizer, engine)
    ranked = best_of(profile, request._replace(optimizer=optimizer), engine, strategy, newest(Path()))
    ranked = replace(ranked, notes=(*noted, *ranked.notes))
    planned = make_plan(ranked, str(fleet), choose)
    if out is None and not ranked.training.what_if:
        out = Path(paths.PLAN)
    if out is not None:
        save(planned, out)
    if csv:
        echo(report.to_csv(ranked, ROWS_OF_FILES if top is None else top), end="")
    elif as_json:
        console.show(report.to_json(ranked, ROWS_OF_FILES if top is None else top))
    else:
        console.show(ranking.render(ranked, ROWS if top is None else top, out, choose, verbose))
    remarks = ranking.remarks(ranked) if csv else []
    if out is None and (csv or as_json):
        remarks.append(ranking.unwritten(ranked))
    for remark in remarks:
        echo(remark, err=True)


def _weights(metric: str | None, weights: str | None) -> dict[str, float] | None:
    """Weights of the metrics that rank clusters; None where none is given. Raises PlanError."""
    from planner.plan.rank import one_metric, parse_weights

    if metric is not None and weights is not None:
        raise PlanError(f"--metric {metric} and --weights {weights}: choose one of them")
    if weights is not None:
        return parse_weights(weights)
    return None if metric is None else one_metric(metric)


def _is_trusted(fleet: Path) -> bool:
    """Whether there is a fleet file that declares its network trusted. Raises FleetError."""
    from planner.fleet.file import load_fleet

    return fleet.exists() and load_fleet(fleet).trusted_network


def _rates(given: list[str]) -> dict[str, float]:
    """Bytes/s by device, from DEVICE=RATE. Raises PlanError."""
    from planner.fleet.quantities import parse_rate

    found = {}
    for text in given:
        name, equals, rate = text.partition("=")
        if not equals:
            raise PlanError(f"--rate {text}: write DEVICE=RATE, as in --rate desktop=100mbit")
        try:
            found[name] = parse_rate(rate)
        except ValueError as error:
            raise PlanError(f"--rate {text}: {error}") from error
    return found
