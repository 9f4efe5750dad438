"""`planner audit` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from planner import paths
from planner.cli import options
from planner.errors import AuditError

if TYPE_CHECKING:
    from planner.audit.outcome import Outcome
    from planner.audit.runs import Audit


def audit(
    profile_path: options.ProfilePath = None,
    clusters: Annotated[int, Option("--clusters", "-k", min=1, help="Train so many, the best first.")] = 3,
    every: Annotated[bool, Option("--all", help="Train all clusters of the ranking.")] = False,
    seconds: Annotated[float, Option(min=1.0, max=3600.0, help="Seconds to measure of each.")] = 8.0,
    metric: options.Metric = None,
    model: options.Model = None,
    job: options.Job = None,
    framework: options.ProfiledFramework = None,
    batch_size: options.WhatIfBatch = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    strategy: Annotated[
        str, Option(help="How workers exchange updates: NAME, or NAME:part=value,... (planner train --help).")
    ] = "parameter-server",
    engine: Annotated[
        str, Option(help="What moves the gradients: planner; torch, or torch:hook=bf16,backend=gloo (docs/engines.md).")
    ] = "planner",
    optimizer: options.Optimizer = None,
    allow_plaintext: options.AllowPlaintext = False,
    data: options.Data = None,
    fleet: options.FleetPath = Path(paths.FLEET),
    as_json: options.AsJson = False,
) -> None:
    """Train the best clusters briefly, and check their predictions.

    They train on images of --data or on noise, and a job on its own data. The intervals of `planner
    recommend` count on the errors seen, which audit.json here keeps. Ctrl-C shows what is measured.
    """
    from backends.strategies.engine import OWN
    from backends.training.run_settings import RunSettings
    from planner.audit.runs import Audit, steady_batches
    from planner.fleet.device import require_trust
    from planner.fleet.file import load_fleet
    from planner.plan.rank import one_metric
    from planner.plan.recommend import recommend
    from planner.plan.texts import optimizer_of_job, parse_engine, parse_strategy, without_server
    from planner.predict.request import RecommendRequest
    from planner.profile.file import load_profile

    model = options.model_of(job, model)
    reached, profile = load_fleet(fleet), load_profile(profile_path or paths.newest_profile(Path()))
    optimizer = optimizer_of_job(profile, model, optimizer)
    chosen = steady_batches(parse_strategy(without_server(strategy, optimizer, engine)[0]))
    request = RecommendRequest(
        None if metric is None else one_metric(metric),
        RunSettings(model or "", batch=batch_size or 0, strategy=chosen), optimizer=optimizer,
        framework=framework, include=include or (), exclude=exclude or (), allow_plaintext=True,
    )  # fmt: skip
    ranked = recommend(profile, request.by(parse_engine(engine)))
    if engine != OWN:
        require_trust(reached, sorted(ranked.inputs.names), f"--engine {engine}", allow_plaintext)
    asked = Audit(ranked, reached, len(ranked) if every else min(clusters, len(ranked)), seconds, data)
    outcomes: list[Outcome] = []
    try:
        _train(asked, outcomes)
    finally:
        _show(asked, outcomes, as_json)
    if all(each.failure for each in outcomes):
        raise AuditError("no cluster could be measured")


def _train(audit: "Audit", found: list["Outcome"]) -> None:
    from planner import console
    from planner.audit.runs import outcomes

    with console.progress() as on_progress:
        on_progress("audit", f"1/{audit.clusters}", 0.0)
        for outcome in outcomes(audit):
            found.append(outcome)
            done = len(found)
            on_progress("audit", f"{min(done + 1, audit.clusters)}/{audit.clusters}", done / audit.clusters)


def _show(audit: "Audit", outcomes: list["Outcome"], as_json: bool) -> None:
    """Show what is measured so far, and keep its errors."""
    from planner import console
    from planner.audit.outcome import errors_by_kind, verdict
    from planner.predict.seen_errors import add_seen
    from planner.views import audit as view

    if not outcomes:
        return
    add_seen(Path(), errors_by_kind(outcomes))
    found = verdict(outcomes, audit.ranked.weights)
    console.show((view.to_json if as_json else view.render)(audit.ranked, outcomes, found))
