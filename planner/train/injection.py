"""A run whose devices give one another samples: what is refused and said before, and the result."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from backends.protocol.stream_statistics import InjectionStatistics
from backends.strategies.data_injection import InjectionSpec
from backends.strategies.engine import TORCH
from planner.errors import PlanError
from planner.plan.file import Plan
from planner.predict.data_injection import InjectedTraffic, injected_traffic
from planner.train.orders import Options
from planner.units import bytes_text

#: The text of ``--inject`` by which a resumed run gives no samples any more.
OFF = "none"
TENSORFLOW = "tensorflow"
#: Figures that begin anew where a worker is started again, and are added up.
_COUNTED = ("shared", "sent_bytes", "received", "received_bytes", "used", "dropped", "malformed")


def check_injection(options: Options, plan: Plan) -> None:
    """Raises PlanError where the devices of a plan cannot give one another samples."""
    if options.inject is None or len(plan.names) == 1:
        return
    if plan.run.engine.name == TORCH:
        raise PlanError(
            f"--inject {options.inject}: --engine {plan.run.engine.text} exchanges gradients alone; "
            "choose --engine planner, or leave --inject out"
        )
    if plan.run.job and TENSORFLOW in plan.frameworks.values():
        raise PlanError(
            f"--inject {options.inject}: the samples of a TensorFlow job are read in order and cannot be given "
            "to others; train a job of PyTorch or images of --data, or leave --inject out"
        )


def injection_notes(options: Options, plan: Plan, sample_bytes: int | None) -> list[str]:
    """Remarks on the plan of a run whose devices give one another samples.

    sample_bytes: of one sample; None where unknown.
    """
    if options.inject is None:
        return []
    others = len(plan.names) - 1
    if not others:
        return [f"{plan.server} trains alone: it has nobody to give samples to (--inject {options.inject})"]
    spec, batch = InjectionSpec.from_text(options.inject), max(plan.batches.values())
    unit = "round" if plan.run_strategy.local else "step"
    members, shared = others + 1, spec.shared(batch, others + 1)
    notes = [
        f"samples leave their devices: in a {unit}, {spec.alpha * members:.3g} of {members} devices on average give "
        f"{shared:.3g} of a batch of {batch} to all others (--inject {options.inject})"
    ]
    expected = predicted_injection(options, plan, {worker.name: worker.steps for worker in plan.workers}, sample_bytes)
    sent = [each.sent_bytes for each in expected.values() if each.sent_bytes is not None]
    if not sent:
        return [*notes, "the prediction is without the time that this takes"]
    to = "the server, which forwards them" if plan.run.strategy.through_server else "one another"
    return [
        *notes,
        f"devices send about {bytes_text(math.fsum(sent))} of samples to {to}; the prediction is without the time "
        "that this takes",
    ]


def predicted_injection(
    options: Options, plan: Plan, steps: Mapping[str, float], sample_bytes: int | None
) -> dict[str, InjectedTraffic]:
    """What each device is expected to give and to receive in so many steps.

    Nothing where nobody gives samples, and where the number of rounds of local steps is not known.
    """
    local = plan.run_strategy.local
    if options.inject is None or len(plan.names) == 1 or (local and (local.name != "steps" or not local.every)):
        return {}
    rounds = {name: steps[name] / float(local.every or 1) for name in plan.names}
    spec = InjectionSpec.from_text(options.inject)
    return injected_traffic(spec, plan.batches, rounds, sample_bytes, plan.run.strategy.through_server)


def injected_result(starts: Sequence[InjectionStatistics]) -> dict[str, Any] | None:
    """What a worker gave and received over the whole run, for result.json; None without injection.

    starts: its last figures from each time it was started.
    """
    if not starts:
        return None
    shared_with: dict[str, int] = {}
    for start in starts:
        for name, samples in start.shared_with.items():
            shared_with[name] = shared_with.get(name, 0) + samples
    sums = {name: sum(getattr(start, name) for start in starts) for name in _COUNTED}
    return starts[-1]._replace(shared_with=shared_with, **sums)._asdict()
