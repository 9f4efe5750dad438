"""The settings of an audit say which runs it makes, and for how long."""

from collections.abc import Sequence
from typing import NamedTuple

from backends.strategies.engine import OWN
from backends.strategies.presets import DEFAULT
from backends.strategies.strategy import Strategy
from planner.errors import AuditError
from planner.plan.request import parse_strategy
from planner.predict.device_timings import pick, pick_framework, timed_steps
from planner.profile.file import Profile

#: Placement of the server: on the fastest member, as in Gu et al., or on each in turn.
FASTEST, EVERY = "fastest", "every"
SERVERS = (FASTEST, EVERY)


class Settings(NamedTuple):
    """The settings of one audit.

    label: name in tables.
    framework: on all devices; None for the fastest on each.
    batch: images of one step of one worker.
    steps: number to which runs are extrapolated.
    seconds: of steady state in each run.
    servers: one of SERVERS.
    sample: number of configurations of each model, drawn with the seed; None for all.
    engine, strategy: their texts, as of ``--engine`` and ``--strategy``.
    input_shape, classes: of the images; None for those of the models.
    data: folder of the images that runs train on; None for noise.
    """

    schema: int
    label: str
    fleet: str
    models: tuple[str, ...]
    framework: str | None
    batch: int
    steps: int
    seconds: float
    repetitions: int
    seed: int
    servers: str
    sample: int | None = None
    input_shape: tuple[int, ...] | None = None
    classes: int | None = None
    engine: str = OWN
    data: str | None = None
    strategy: str = DEFAULT

    def added_to(self, before: "Settings") -> "Settings":
        """Extend the settings ``before`` of an audit by models, repetitions or seconds.

        Raises AuditError naming any other setting that differs.
        """
        for name, value in self._asdict().items():
            if name not in ("models", "repetitions", "seconds", "label") and getattr(before, name) != value:
                raise AuditError(
                    f"the audit in this folder has {name} {getattr(before, name)}, not {value}; "
                    "repeat it with the same options, or name another folder with --out"
                )
        return self._replace(
            models=tuple(dict.fromkeys((*before.models, *self.models))),
            repetitions=max(before.repetitions, self.repetitions),
            seconds=max(before.seconds, self.seconds),
        )


def audited_strategy(text: str) -> Strategy:
    """What an audit trains by: batches that would grow over a run stay as they begin.

    They grow over the planned steps, of which a short run sees only the first.
    """
    asked = parse_strategy(text)
    return asked.with_part("batching", "fixed") if asked.batching == "dynamic" else asked


def audited_values(
    profile: Profile, models: Sequence[str], framework: str | None, batch: int | None, steps: int | None
) -> tuple[tuple[str, ...], str | None, int, int]:
    """Models, framework, batch and steps: the profile's where an argument is None or empty.

    Raises PlanError or AuditError where the profile lacks what is asked for.
    """
    every = {step.model for device in profile.devices.values() for step in device.steps}
    chosen = tuple(pick(profile, "model", name) for name in models or sorted(every))
    if not chosen:
        raise AuditError("the profile holds no model; run `planner profile` first")
    framework = pick_framework(profile, framework)
    timed, _ = timed_steps(profile, chosen[0], framework, batch)
    if not timed:
        raise AuditError(f"{chosen[0]} was not timed completely on any device; run `planner profile` again")
    batch = batch or next(iter(timed.values())).planned_batch
    return chosen, framework, batch, profile.steps_planned if steps is None else steps
