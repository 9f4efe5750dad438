"""Audits made up for tests: runs that measure just what a made-up profile predicts, or are off."""

from collections.abc import Callable, Iterable

from backends.strategies.engine import Engine
from planner.audit.scoring.measured import Extrapolation, MeasuredAudit, MeasuredRun, SteadyWorker
from planner.plan.request import RecommendRequest
from planner.predict.clusters import enumerate_clusters
from planner.predict.costs import OWN_ENGINE, costs_of
from planner.predict.predict import predict
from planner.profile.file import Profile
from planner.provenance import Provenance
from profilers.records.readings import MachineSpeed
from tests.planner import profiles

STEPS = 100_000
SOURCE = Provenance("sensor", ("wall",))

#: Changes one run of one configuration.
Shake = Callable[[MeasuredRun], MeasuredRun]


def fleet(*gradients_s: float, **changes: object) -> Profile:
    """Devices a, b, c… with gradients of these seconds, 10 W idle and 50 W busy.

    Reference loops took as long as those of ``loop(1.0)``.
    """
    devices = {
        name: profiles.device(profiles.step(gradient_s, **{"speed": loop(1.0), **changes}))
        for name, gradient_s in zip("abcdef", gradients_s, strict=False)
    }
    return profiles.profile(devices)


def loop(slowdown: float) -> MachineSpeed:
    """The speed of a processor that is so many times slower than in the profile."""
    return MachineSpeed(0.001 * slowdown, None, 100)


def run(
    workers: dict[str, float], server: str | None = None, watts: float | None = 50.0, **changes: object
) -> MeasuredRun:
    """A run at these steps/s, free of noise; the first worker hosts the server."""
    steady = {name: SteadyWorker(rate, 0.0, watts, SOURCE) for name, rate in workers.items()}
    return MeasuredRun("net", server or next(iter(workers)), steady, 1, 10.0, 0.0, 0.0)._replace(**changes)


def as_predicted(
    profile: Profile,
    repetitions: int = 1,
    model: str = "net",
    shake: Shake = lambda run: run,
    engine: Engine = OWN_ENGINE,
) -> list[MeasuredRun]:
    """Every configuration with every server, exactly as the planner predicts it, then shaken."""
    asked = RecommendRequest().by(engine)
    known = costs_of(profile, model, strategy=asked.strategy, engine=engine, allow_plaintext=True)
    candidates = enumerate_clusters(known.names, known.pairs.reachable)
    found = predict(known, candidates, STEPS)
    runs = []
    for repetition in range(1, repetitions + 1):
        for index, (mask, host) in enumerate(zip(*candidates, strict=True)):
            members = [i for i in range(len(known.names)) if mask >> i & 1]
            workers = {
                known.names[i]: SteadyWorker(
                    1 / float(found.cycle_s[index, i]),
                    float(known.devices.build_s[i]),
                    float(found.device_w[index, i]),
                    SOURCE,
                )
                for i in members
            }
            runs.append(shake(MeasuredRun(model, known.names[host], workers, repetition, 10.0, 0.0, 0.0)))
    return runs


def audit(
    profile: Profile,
    measured: Iterable[MeasuredRun],
    label: str = "100",
    extrapolations: tuple[Extrapolation, ...] = (),
) -> MeasuredAudit:
    """100,000 steps at batch size 32."""
    return MeasuredAudit(label, profile, "torch", STEPS, 32, tuple(measured), extrapolations)


def faster(run: MeasuredRun, factor: float) -> MeasuredRun:
    """The same run with all its steps/s times a factor."""
    workers = {name: each._replace(steps_per_s=factor * each.steps_per_s) for name, each in run.workers.items()}
    return run._replace(workers=workers)
