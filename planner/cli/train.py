"""`planner train` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from planner.cli import options
from planner.errors import PlanError


def train(
    plan: Annotated[Path | None, Argument(metavar="[PLAN]", help="plan.json here if not given.")] = None,
    data: options.Data = None,
    job: options.Job = None,
    metric: Annotated[
        str | None, Option(help="Plan first by time, power, energy or edp, profiling what is missing.")
    ] = None,
    model: Annotated[
        str | None, Option("--model", "-m", help="With --metric: a known model, or path/to/file.py:function.")
    ] = None,
    batch_size: Annotated[int | None, Option(min=1, help="With --metric: samples a step [32].")] = None,
    framework: Annotated[
        str | None, Option(help="With --metric: torch or tensorflow; on each device what it has if not given.")
    ] = None,
    steps: Annotated[
        int | None, Option("--steps", "-s", min=1, help="Training steps in all; the plan's if not given.")
    ] = None,
    fleet: Annotated[Path | None, Option("--fleet", "-f", help="The fleet file; the plan's if not given.")] = None,
    learning_rate: Annotated[float | None, Option(help="Base learning rate [0.01; of Adam and AdamW 0.001].")] = None,
    momentum: Annotated[
        float | None, Option(help="Momentum of SGD and LARS; 0.9 less what asynchrony adds if not given.")
    ] = None,
    weight_decay: Annotated[
        float | None, Option(help="Weight decay: L2, or decoupled from the gradient with AdamW [0; of AdamW 0.01].")
    ] = None,
    schedule: Annotated[str | None, Option(help="Learning rate over the run: [constant], cosine or step.")] = None,
    warmup: Annotated[int | None, Option(min=0, help="Steps over which the learning rate rises [0].")] = None,
    seed: Annotated[
        int | None, Option(min=0, help="Seed of the first weights, of who gets which samples, and of their order [0].")
    ] = None,
    partition: Annotated[
        str | None,
        Option(help="How samples are divided among devices: iid, labels=N or dirichlet=ALPHA (docs/data.md) [iid]."),
    ] = None,
    evaluate_every: Annotated[
        int | None, Option(min=0, help="Evaluate every so many steps; 0 for once an epoch [0].")
    ] = None,
    checkpoint_every: Annotated[
        int | None,
        Option(min=0, help="Save a checkpoint every so many steps; 0 for ten in a run, at most one a minute [0]."),
    ] = None,
    heartbeat: Annotated[float | None, Option(help="Seconds of silence after which a worker is dropped [10].")] = None,
    strategy: Annotated[
        str | None,
        Option(
            help="How workers exchange updates: NAME (listed below), NAME:part=value,..., "
            "with --metric also auto [the plan's].",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        Option(
            help="What moves the gradients: planner; torch, or torch:hook=bf16,backend=gloo (docs/engines.md); "
            "with --metric also auto [the plan's].",
        ),
    ] = None,
    optimizer: options.Optimizer = None,
    clip_norm: options.ClipNorm = None,
    micro_batch: Annotated[
        int | None, Option(min=1, help="Compute a batch in parts of so many samples [as it was profiled].")
    ] = None,
    precision: Annotated[
        str | None, Option(help="Forward and backward passes in fp32, bf16 or fp16 [as they were profiled].")
    ] = None,
    allow_plaintext: options.AllowPlaintext = False,
    target: Annotated[
        str | None, Option(help="METRIC=VALUE: end the run when an evaluation reaches it, as in accuracy=0.9.")
    ] = None,
    patience: Annotated[
        int | None, Option(min=1, help="End the run after so many evaluations in a row without a better value.")
    ] = None,
    stream: Annotated[
        str | None,
        Option(help="Samples arrive while it trains: replay:S1, or directory:, socket:, kafka:... (docs/streams.md)."),
    ] = None,
    inject: Annotated[
        str | None,
        Option(help="Devices give one another samples: alpha=A,beta=B (docs/data.md), or none [none]."),
    ] = None,
    resume: Annotated[Path | None, Option(help="Go on from the checkpoint of this run folder.")] = None,
    run_dir: Annotated[Path, Option(help="Where run folders are made.")] = Path("runs"),
    tensorboard: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Write TensorBoard files to a folder of the run's name in DIR; runs for the run folder itself.",
        ),
    ] = None,
    metrics_file: Annotated[
        Path | None,
        Option(metavar="FILE.prom", help="Keep the newest figures there for node-exporter's textfile collector."),
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Train on the planned cluster and compare with the prediction.

    A plan for a job names the job; one for a known model needs --data. Ctrl-C ends the run with a
    checkpoint, and the last lines tell how to go on and how to export the model.
    """
    from backends.frameworks.base import FRAMEWORKS
    from planner import console
    from planner.plan.rank import METRICS
    from planner.train.trackers.request import TrackerRequest
    from planner.train.train import TrainRequest
    from planner.train.train import train as run_training
    from planner.views import training as view
    from profilers.mixed_precision import PRECISIONS

    detail = options.detail(quiet, verbose)
    options.check_known("--metric", metric, METRICS)
    if metric is None:
        _need_metric({"--model": model, "--batch-size": batch_size, "--framework": framework})
    options.check_known("--framework", framework, FRAMEWORKS)
    options.check_known("--precision", precision, PRECISIONS)
    settings = {
        "data": str(data) if data else None, "job": job, "rate": learning_rate, "momentum": momentum,
        "weight_decay": weight_decay, "schedule": schedule, "warmup": warmup, "seed": seed,
        "evaluate_every": evaluate_every, "checkpoint_every": checkpoint_every, "heartbeat_s": heartbeat,
        "strategy": strategy, "engine": engine, "target": target, "patience": patience, "optimizer": optimizer,
        "clip_norm": clip_norm, "micro_batch": micro_batch, "precision": precision,
        "partition": partition, "stream": stream, "inject": inject,
    }  # fmt: skip
    given = {name: value for name, value in settings.items() if value is not None}
    request = TrainRequest(
        fleet, plan, metric, model, steps, batch_size, framework, given, resume, run_dir, allow_plaintext,
        TrackerRequest(tensorboard, metrics_file),
    )  # fmt: skip
    with view.training(detail) as shown:
        result, folder = run_training(request, shown)
    console.show(result if as_json else view.render(result, folder))


def _need_metric(given: dict[str, object]) -> None:
    """Raises PlanError for an option that only making a plan would use."""
    for option, value in given.items():
        if value is not None:
            raise PlanError(f"{option} {value}: a plan has its own; add --metric to make another plan")
