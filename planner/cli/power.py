"""`planner power …` parses, calls and renders. Heavy imports wait inside the commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from planner.cli.options import AsJson, FleetPath
from planner.errors import PowerError
from planner.paths import FLEET
from planner.terminal import echo

AUTO = "auto"
MODEL_FILE = "power-model.json"

app = typer.Typer(
    help="Energy of any command, and models of watts.",
    epilog="Example: planner power fit runs.csv --target average_power --group network",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Data = Annotated[Path, Argument(metavar="DATA.csv", help="Measurements: a header, then one run a line.")]


@app.command(epilog="Example: planner power fit runs.csv --target average_power --group network,batch_size --json")
def fit(
    data: Data,
    target: Annotated[str, Option(help="The column to predict.")],
    features: Annotated[str | None, Option(help="Columns to predict from: a,b,c; see above if not given.")] = None,
    group: Annotated[str | None, Option(help="Rows that agree in these columns (a,b) are held out together.")] = None,
    model: Annotated[str, Option(help="auto (the one that errs least), or a name from `planner power models`.")] = AUTO,
    folds: Annotated[int | None, Option(min=2, help="As many as groups, 10 at most, if not given.")] = None,
    out: Annotated[Path, Option("--out", "-o", help="Where to save the chosen model.")] = Path(MODEL_FILE),
    as_json: AsJson = False,
) -> None:
    """Fit models to a table, compare them on rows they have not seen, and save the best.

    Without --features every other column is used, except columns that never change, words that
    hardly occur in more than one group, numbers of the groups, and outcomes of the run by their
    names: times, watts and joules. The result lists the features, and why the other columns were
    left out.
    """
    from planner import console
    from planner.power import fit as powerfit
    from planner.views import power as view
    from power_models import model_file
    from power_models.table import read_csv

    kinds, by = _kinds(model), _names(group)
    with _errors(), console.status("fitting") as on_progress:
        found = powerfit.compared(read_csv(data), target, _names(features), by, kinds, folds, out, on_progress)
        model_file.save(found.model, out)
    console.show(found.to_json() if as_json else view.fit(found))


@app.command(epilog=f"Example: planner power evaluate {MODEL_FILE} other.csv")
def evaluate(
    model: Annotated[Path, Argument(metavar="MODEL.json", help="A saved model.")], data: Data, as_json: AsJson = False
) -> None:
    """Test a saved model on other measurements."""
    from planner import console
    from planner.power import fit as powerfit
    from planner.views import power as view
    from power_models import model_file
    from power_models.table import read_csv

    with _errors():
        seen = powerfit.evaluated(model_file.load(model), read_csv(data))
    console.show(seen.to_json() if as_json else view.evaluation(seen))


@app.command("models", epilog=f"Example: planner power models && planner power models {MODEL_FILE}")
def models(
    files: Annotated[
        list[Path] | None, Argument(metavar="[MODEL.json]...", help="Saved models to describe instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the kinds of models, or describe saved ones."""
    from planner import console
    from planner.views import power as view
    from power_models import model_file
    from power_models.registry import MODELS

    summaries = {name: kind.summary for name, kind in MODELS.items()}
    with _errors():
        saved = {str(path): model_file.load(path) for path in files or ()}
    console.show(view.kinds_json(summaries, saved) if as_json else view.kinds(summaries, saved))


@app.command(epilog="Example: planner power measure tx2 -- python3 bench.py --epochs 2")
def measure(
    device: Annotated[str, Argument(metavar="DEVICE", help="A device of the fleet.")],
    command: Annotated[list[str], Argument(metavar="-- COMMAND...", help="What to run there, without a shell.")],
    fleet: FleetPath = Path(FLEET),
    model: Annotated[Path | None, Option(help="A saved model; the fleet file's if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a command on a device and print the energy it took.

    Its output goes to standard error; the exit code is the command's. Watts come from a sensor,
    else from a power model, else from the fleet file's watts and the device's utilisation; the
    result names which.
    """
    from planner import console
    from planner.fleet.file import load_fleet
    from planner.launch.output import STREAMS, LineSplitter
    from planner.launch.result import exit_code
    from planner.power.measure import measure as measured_on
    from planner.profile.fleet_power import read
    from planner.views import power as view

    lines = {stream: LineSplitter() for stream in STREAMS}

    def on_output(stream: str, text: str) -> None:
        for line in lines[stream].add(text):
            echo(line, err=True)

    chosen = load_fleet(fleet).device(device)
    path = model or chosen.power_model
    loaded = read(path) if path else None
    with console.status(f"measuring on {device}"):
        found = measured_on(chosen, command, loaded, on_output)
    for line in (line for splitter in lines.values() for line in splitter.end()):
        echo(line, err=True)
    console.show(view.measurement_json(found) if as_json else view.measurement(found))
    if found.returncode:
        raise typer.Exit(exit_code(found.returncode))


@contextmanager
def _errors() -> Iterator[None]:
    """Errors of tables and models become messages to the operator."""
    try:
        yield
    except ValueError as error:
        raise PowerError(str(error)) from error


def _kinds(model: str) -> tuple[str, ...]:
    """The kinds to compare; none named stands for all."""
    from power_models.registry import MODELS

    if model != AUTO and model not in MODELS:
        raise PowerError(f"--model {model}: known are {AUTO}, {', '.join(MODELS)}")
    return () if model == AUTO else (model,)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
