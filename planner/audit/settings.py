"""What an audit is to measure."""

from collections.abc import Sequence
from typing import NamedTuple

from planner.errors import AuditError
from planner.predict.step_time import pick, pick_framework, timed_steps
from planner.profile.file import Profile
from profilers.records import SCHEMA

#: Which member hosts the server: the fastest, as Gu et al. have it, or each in turn.
FASTEST, EVERY = "fastest", "every"
SERVERS = (FASTEST, EVERY)


class Settings(NamedTuple):
    """``models`` at ``batch``, about ``seconds`` of steady state in each run, judged at ``steps`` steps.

    label: its name in tables; framework: on all devices, None for what is fastest on each; servers: one of SERVERS;
    sample: how many configurations of each model, drawn by the seed, None for all; input_shape, classes: of a data
    set's images, None for the models' own.
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
    sample: int | None
    input_shape: tuple[int, ...] | None
    classes: int | None

    def added_to(self, before: "Settings") -> "Settings":
        """Going on with an audit that was begun with ``before``: models, repetitions and seconds may be added.

        Raises AuditError naming what differs otherwise.
        """
        for name, value in self._asdict().items():
            if name not in ("models", "repetitions", "seconds", "label") and getattr(before, name) != value:
                raise AuditError(
                    f"the audit that is there has {name} {getattr(before, name)}, not {value}; "
                    "repeat it with the same options, or name another folder with --out"
                )
        return self._replace(
            models=tuple(dict.fromkeys((*before.models, *self.models))),
            repetitions=max(before.repetitions, self.repetitions),
            seconds=max(before.seconds, self.seconds),
        )


def settings(
    profile: Profile,
    label: str,
    fleet: str,
    models: Sequence[str],
    framework: str | None,
    batch: int | None,
    steps: int | None,
    seconds: float,
    repetitions: int,
    seed: int,
    servers: str,
    sample: int | None = None,
    input_shape: tuple[int, ...] | None = None,
    classes: int | None = None,
) -> Settings:
    """What is asked for, and where that is None or empty what the profile holds. Raises PlanError or AuditError."""
    every = {step.model for device in profile.devices.values() for step in device.steps}
    chosen = tuple(pick(profile, "model", name) for name in models or sorted(every))
    if not chosen:
        raise AuditError("the profile holds no model; run `planner profile` first")
    framework = pick_framework(profile, framework)
    timed, _ = timed_steps(profile, chosen[0], framework, batch)
    if not timed:
        raise AuditError(f"{chosen[0]} was not timed completely on any device; run `planner profile` again")
    return Settings(
        schema=SCHEMA,
        label=label,
        fleet=fleet,
        models=chosen,
        framework=framework,
        batch=batch or next(iter(timed.values())).batch,
        steps=profile.steps_planned if steps is None else steps,
        seconds=seconds,
        repetitions=repetitions,
        seed=seed,
        servers=servers,
        sample=sample,
        input_shape=input_shape,
        classes=classes,
    )
