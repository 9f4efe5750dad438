"""`planner audit` parses, calls and renders; heavy imports wait inside the command."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from planner import paths
from planner.cli import options
from planner.errors import AuditError

if TYPE_CHECKING:
    from planner.audit.folder import AuditFolder
    from planner.audit.scoring.measured import MeasuredAudit
    from planner.audit.scoring.scoreboard import Scoreboard
    from planner.fleet.device import Fleet
    from planner.profile.file import Profile


def audit(
    folders: Annotated[
        list[Path] | None,
        Argument(metavar="[FOLDER]...", help="Judge these audits, together, without running anything."),
    ] = None,
    fleet: options.FleetPath = Path(paths.FLEET),
    profile: Annotated[Path | None, Option(help="What is judged; the newest profile*.json here if not given.")] = None,
    model: Annotated[
        list[str] | None, Option("--model", "-m", help="Only this model of the profile; may be repeated.")
    ] = None,
    framework: options.ProfiledFramework = None,
    batch_size: Annotated[int | None, Option(min=1, help="Images a step; the profiled ones if not given.")] = None,
    steps: options.PlannedSteps = None,
    seconds: Annotated[float, Option(min=5.0, help="Seconds of steady state to measure in each run.")] = 15.0,
    repetitions: Annotated[int, Option("--repetitions", "-r", min=1, help="Runs of each configuration.")] = 1,
    seed: Annotated[
        int, Option(min=0, help="Of the order of the runs, the weights, the data and drawn rates of streams.")
    ] = 0,
    servers: Annotated[
        str, Option(help="Parameter server on the fastest member, or on every member in turn.")
    ] = "fastest",
    sample: Annotated[
        int | None, Option(min=1, help="Only so many configurations of each model, drawn at random by the seed.")
    ] = None,
    engine: Annotated[
        str, Option(help="What moves the gradients: planner; torch, or torch:hook=bf16,backend=gloo (docs/engines.md).")
    ] = "planner",
    allow_plaintext: options.AllowPlaintext = False,
    strategy: Annotated[
        str, Option(help="How workers exchange updates: NAME, or NAME:part=value,... (planner train --help).")
    ] = "parameter-server",
    data: options.Data = None,
    label: Annotated[str | None, Option(help="Its name in tables; the folder's if not given.")] = None,
    out: Annotated[Path, Option("--out", "-o", help="The audit's folder; what it holds is not run again.")] = Path(
        "audit"
    ),
    calibrate: Annotated[
        Path | None,
        Option(metavar="FILE.json", help="Fit the errors of predictions to these audits, and write them there."),
    ] = None,
    plot: Annotated[Path | None, Option(help="Predicted against measured, as .png, .svg or .pdf.")] = None,
    top: Annotated[int, Option(min=0, help="Configurations to show, the worst predicted first; 0 for all.")] = 10,
    as_json: options.AsJson = False,
) -> None:
    """Run every configuration, and score the predictions.

    Each runs for a short while, on images of --data or on noise, and counts for the planned steps
    at the rate it had. An audit that was stopped goes on where it was. With FOLDER, judge what
    earlier audits measured, offline. A calibration.json here, as --calibrate writes it, is what the
    intervals of `planner recommend` rest on. The one of planner itself is for emulated fleets.
    """
    from backends.strategies.engine import OWN
    from planner import console
    from planner.audit.folder import AuditFolder
    from planner.audit.planned_runs import ranking
    from planner.audit.scoring.scoreboard import score
    from planner.audit.settings import SERVERS, Settings, audited_values
    from planner.fleet.device import require_trust
    from planner.fleet.file import load_fleet
    from planner.plan.request import parse_engine, parse_strategy
    from planner.predict.calibration import newest
    from planner.views import audit as view
    from planner.views import audit_json, auditplot
    from profilers.records.json_values import SCHEMA

    options.check_known("--servers", servers, SERVERS)
    if not math.isfinite(seconds):
        raise AuditError(f"--seconds {seconds:g}: give a finite number")
    if plot is not None:
        auditplot.check(plot)
    failures = {}
    if not folders:
        folder, (shape, classes) = AuditFolder(out), options.shape_of(data)
        judged = _profile(folder, profile)
        audited = audited_values(judged, model or (), framework, batch_size, steps)
        requested = Settings(
            SCHEMA, label or out.name, str(fleet), *audited, seconds, repetitions, seed, servers, sample, shape,
            classes, parse_engine(engine).text, None if data is None else str(data.absolute()),
            parse_strategy(strategy).text,
        )  # fmt: skip
        reached = load_fleet(fleet)
        if engine != OWN:
            members = {name for each in requested.models for name in ranking(requested, judged, each).costs.names}
            require_trust(reached, sorted(members), f"--engine {engine}", allow_plaintext)
        folder.begin(requested, judged)
        failures = _run(folder, reached)
    audits = [AuditFolder(path).load() for path in folders or [out]]
    if not failures or audits[0].measured:
        board = score(audits, newest(Path()))
        if calibrate is not None:
            board = _calibrated(board, audits, calibrate)
        if plot is not None:
            auditplot.save(board, plot)
        console.show(audit_json.to_json(board) if as_json else view.render(board, top))
    if failures:
        what = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
        raise AuditError(f"{len(failures)} runs failed; the same command tries them again: {what}")


def _calibrated(board: "Scoreboard", audits: list["MeasuredAudit"], path: Path) -> "Scoreboard":
    """Write the errors that fit these audits; the board with the coverage of fleets left out."""
    import datetime

    from planner.audit.scoring.calibrate import calibrate
    from planner.audit.scoring.cases import cases_of
    from planner.json_records import save

    fitted = calibrate([case for audit in audits for case in cases_of(audit)], datetime.date.today())
    save(fitted.calibration, path)
    return board._replace(left_out=fitted.left_out)


def _profile(folder: "AuditFolder", given: Path | None) -> "Profile":
    """The profile to judge; an audit that has begun keeps its own. Raises AuditError."""
    from planner.profile.file import load_profile

    if not folder.begun:
        return load_profile(given or paths.newest_profile(Path()))
    if given is not None and load_profile(given) != folder.profile():
        raise AuditError(f"--profile {given}: {folder.path} judges another; leave it out, or name another --out")
    return folder.profile()


def _run(folder: "AuditFolder", fleet: "Fleet") -> dict[str, str]:
    from planner import console
    from planner.audit.runner import make_missing_runs

    with console.progress() as on_progress:

        def on_run(name: str, done: int, total: int) -> None:
            on_progress("audit", f"{done + 1}/{total}: {name}", done / total)

        return make_missing_runs(fleet, folder, on_run)
