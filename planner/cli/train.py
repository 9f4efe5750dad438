"""`planner train` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from planner.cli import options
from planner.errors import PlanError

PlanPath = Annotated[Path | None, Argument(metavar="[PLAN]", help="plan.json here if not given.")]
FleetPath = Annotated[Path | None, Option("--fleet", "-f", help="The fleet file; the plan's if not given.")]
PlanBy = Annotated[
    str | None,
    Option("--metric", help="Plan first by time, power, energy or edp, profiling what is missing."),
]
Model = Annotated[
    str | None, Option("--model", "-m", help="With --metric: a known model, or path/to/file.py:function.")
]
Steps = Annotated[int | None, Option("--steps", "-s", min=1, help="Training steps in all; the plan's if not given.")]
BatchSize = Annotated[int | None, Option("--batch-size", min=1, help="With --metric: images a step [32].")]
Framework = Annotated[
    str | None,
    Option("--framework", help="With --metric: torch or tensorflow; on each device what it has if not given."),
]
LearningRate = Annotated[float | None, Option(help="Base learning rate of SGD [0.01].")]
Momentum = Annotated[float | None, Option(help="Momentum of SGD; 0.9 less what asynchrony adds if not given.")]
WeightDecay = Annotated[float | None, Option(help="L2 weight decay [0].")]
Schedule = Annotated[str | None, Option(help="Learning rate over the run: [constant], cosine or step.")]
Warmup = Annotated[int | None, Option(min=0, help="Steps over which the learning rate rises [0].")]
Strategy = Annotated[
    str | None,
    Option(
        "--strategy",
        help="How workers exchange updates: NAME (listed below), NAME:part=value,..., "
        "with --metric also auto [the plan's].",
    ),
]
Seed = Annotated[
    int | None, Option(min=0, help="Seed of the initial weights, of who gets which images, and of their order [0].")
]
EvaluateEvery = Annotated[int | None, Option(min=0, help="Evaluate every so many steps; 0 for once an epoch [0].")]
CheckpointEvery = Annotated[
    int | None, Option(min=0, help="Save a checkpoint every so many steps; 0 for ten in a run [0].")
]
Heartbeat = Annotated[float | None, Option(help="Seconds of silence after which a worker is dropped [10].")]
Resume = Annotated[Path | None, Option(help="Go on from the checkpoint of this run folder.")]
RunDir = Annotated[Path, Option(help="Where run folders are made.")]


def train(
    plan: PlanPath = None,
    data: options.Data = None,
    metric: PlanBy = None,
    model: Model = None,
    batch_size: BatchSize = None,
    framework: Framework = None,
    steps: Steps = None,
    fleet: FleetPath = None,
    learning_rate: LearningRate = None,
    momentum: Momentum = None,
    weight_decay: WeightDecay = None,
    schedule: Schedule = None,
    warmup: Warmup = None,
    seed: Seed = None,
    evaluate_every: EvaluateEvery = None,
    checkpoint_every: CheckpointEvery = None,
    heartbeat: Heartbeat = None,
    strategy: Strategy = None,
    resume: Resume = None,
    run_dir: RunDir = Path("runs"),
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Train on the planned cluster and compare with the prediction."""
    from backends.frameworks.base import FRAMEWORKS
    from planner import console
    from planner.plan.rank import METRICS
    from planner.train.train import TrainRequest
    from planner.train.train import train as run_training
    from planner.views import training as view

    detail = options.detail(quiet, verbose)
    options.check_known("--metric", metric, METRICS)
    if metric is None:
        _need_metric({"--model": model, "--batch-size": batch_size, "--framework": framework})
    options.check_known("--framework", framework, FRAMEWORKS)
    settings = {
        "data": str(data) if data else None, "rate": learning_rate, "momentum": momentum,
        "weight_decay": weight_decay, "schedule": schedule, "warmup": warmup, "seed": seed,
        "evaluate_every": evaluate_every, "checkpoint_every": checkpoint_every, "heartbeat_s": heartbeat,
        "strategy": strategy,
    }  # fmt: skip
    given = {name: value for name, value in settings.items() if value is not None}
    request = TrainRequest(fleet, plan, metric, model, steps, batch_size, framework, given, resume, run_dir)
    with view.training(detail) as shown:
        result, folder = run_training(request, shown)
    console.show(result if as_json else view.render(result, folder))


def _need_metric(given: dict[str, object]) -> None:
    """Raises PlanError for an option that only making a plan would use."""
    for option, value in given.items():
        if value is not None:
            raise PlanError(f"{option} {value}: a plan has its own; add --metric to make another plan")
