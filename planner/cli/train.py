"""`planner train` parses, calls and renders; heavy imports wait inside the command."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from planner.cli import options
from planner.errors import PlanError


def train(
    plan: Annotated[Path | None, Argument(metavar="[PLAN]", help="plan.json here if not given.")] = None,
    data: options.Data = None,
    job: options.Job = None,
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
        Option(min=0, help="Save a checkpoint every so many steps; 0 for once a minute by the clock [0]."),
    ] = None,
    heartbeat: Annotated[float | None, Option(help="Seconds of silence after which a worker is dropped [10].")] = None,
    allow_plaintext: options.AllowPlaintext = False,
    target: Annotated[
        str | None,
        Option(help="End the run when an evaluation reaches METRIC=VALUE, as accuracy=0.9, or METRIC=VALUE:lower."),
    ] = None,
    patience: Annotated[
        int | None, Option(min=1, help="End the run after so many evaluations in a row without a better value.")
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
    metric: Annotated[
        str | None,
        Option(help="Plan first, by time, power, energy or edp, profiling what is missing."),
    ] = None,
    model: Annotated[
        str | None, Option("--model", "-m", help="With --metric: a known model, or path/to/file.py:function.")
    ] = None,
    batch_size: Annotated[int | None, Option(min=1, help="With --metric: samples a step [32].")] = None,
    framework: Annotated[
        str | None,
        Option(help="With --metric: torch or tensorflow; on each device what it has if not given."),
    ] = None,
    strategy: Annotated[
        str | None,
        Option(
            help="With --metric: how workers exchange updates: NAME (listed below), NAME:part=value,..., or auto.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        Option(
            help="With --metric: what moves the gradients: planner; torch, or torch:hook=bf16,backend=gloo; or auto.",
        ),
    ] = None,
    optimizer: Annotated[
        str | None, Option(help="With --metric: sgd, adam, adamw or lars; options as in adam:beta1=0.9.")
    ] = None,
    clip_norm: Annotated[
        float | None, Option(help="With --metric: scale gradients down to this norm over all weights.")
    ] = None,
    micro_batch: Annotated[
        int | None, Option(min=1, help="With --metric: compute a batch in parts of so many samples.")
    ] = None,
    precision: Annotated[
        str | None, Option(help="With --metric: forward and backward passes in fp32, bf16 or fp16.")
    ] = None,
    activation_checkpointing: Annotated[
        bool | None,
        Option("--activation-checkpointing", help="With --metric: keep only the inputs of the model's blocks."),
    ] = None,
    stream: Annotated[
        str | None,
        Option(help="With --metric: samples arrive while it trains (docs/streams.md)."),
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Train on the planned cluster and compare with the prediction.

    A plan is what is run: what it computes and how it exchanges is chosen by `planner recommend`,
    or here with --metric. A plan for a job names the job; one for a known model needs --data.
    Ctrl-C ends the run with a checkpoint, and the last lines tell how to go on and how to export
    the model.
    """
    from backends.frameworks.base import FRAMEWORKS
    from backends.training.run_settings import RunSettings
    from planner import console
    from planner.plan.rank import one_metric
    from planner.plan.texts import parse_stream
    from planner.predict.request import RecommendRequest
    from planner.train.plan_first import PlanFirst
    from planner.train.trackers.request import TrackerRequest
    from planner.train.train import TrainRequest
    from planner.train.train import train as run_training
    from planner.views import trained
    from planner.views import training as view

    detail = options.detail(quiet, verbose)
    first = None
    if metric is None:
        _need_metric({
            "model": model, "batch-size": batch_size, "framework": framework, "strategy": strategy, "engine": engine,
            "optimizer": optimizer, "clip-norm": clip_norm, "micro-batch": micro_batch, "precision": precision,
            "activation-checkpointing": activation_checkpointing, "stream": stream,
        })  # fmt: skip
    elif plan is not None or resume is not None:
        raise PlanError(f"--metric {metric} makes a plan; leave it out to train {plan or f'on from {resume}'}")
    else:
        options.check_known("--framework", framework, FRAMEWORKS)
        run = RunSettings(
            model or "", steps=steps or 0, batch=batch_size or 0, clip_norm=clip_norm,
            compute=options.compute_settings(micro_batch, precision, activation_checkpointing, batch_size),
            stream=None if stream is None else parse_stream(stream), rates_seed=seed or 0,
        )  # fmt: skip
        asked = RecommendRequest(
            one_metric(metric), run, optimizer=optimizer, framework=framework, allow_plaintext=allow_plaintext
        )
        first = PlanFirst(asked, strategy, engine)
    settings = {
        "data": str(data) if data else None, "rate": learning_rate, "momentum": momentum,
        "weight_decay": weight_decay, "schedule": schedule, "warmup": warmup, "seed": seed,
        "evaluate_every": evaluate_every, "checkpoint_every": checkpoint_every, "heartbeat_s": heartbeat,
        "target": target, "patience": patience, "partition": partition, "inject": inject,
    }  # fmt: skip
    given = {name: value for name, value in settings.items() if value is not None}
    trackers = TrackerRequest(tensorboard, metrics_file)
    request = TrainRequest(fleet, plan, steps, job, given, resume, run_dir, allow_plaintext, trackers, first)
    with view.training(detail) as shown:
        result, folder = run_training(request, shown)
    with trained.complete(folder, result["problems"]):
        console.show(result if as_json else trained.render(result, folder, detail is console.Detail.VERBOSE))


def _need_metric(given: dict[str, Any]) -> None:
    """Raises PlanError for an option of `planner recommend` where a plan is there."""
    for name, value in given.items():
        if value is not None:
            given_as = f"--{name}" if value is True else f"--{name} {value}"
            raise PlanError(
                f"{given_as}: a plan has its own, and is what is trained; make another one with "
                "`planner recommend`, or here with --metric"
            )
