"""The ablation scores recorded clusters with each term of the model at zero: what is it worth?

    python -m benchmarks.ablation [--json]

Predictions as they are made, nothing refitted, medians of repetitions. A term stays or enters only
if without it the error of clusters of models of 0.2 MB or more grows by more than one point, or the
mean regret of the choice by time by more than 0.3 points, or if a real device shows it.
"""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from benchmarks import recorded
from benchmarks.recorded.scoring import Case, Score, cases, predicted_s, score
from benchmarks.reporting import parser, show
from planner.predict.inputs import Inputs
from planner.predict.kinds import async_server
from planner.predict.kinds.async_server import LINK_IN, LINK_OUT, LOCK, PROCESSOR, Stations

Change = Callable[[Inputs], Inputs]
#: A term that is zero at one place in the code: (module, name, what stands there instead).
Patch = tuple[object, str, object]


def devices(**values: float) -> Change:
    """Inputs whose devices have these values."""
    return lambda inputs: inputs._replace(
        devices=inputs.devices._replace(
            **{name: np.full_like(getattr(inputs.devices, name), value) for name, value in values.items()}
        )
    )


def pairs(*names: str) -> Change:
    """Inputs whose messages have zeros in all fields whose names contain one of these."""

    def change(inputs: Inputs) -> Inputs:
        zeros = {
            field: np.zeros_like(value)
            for field, value in inputs.pairs._asdict().items()
            if any(name in field for name in names)
        }
        return inputs._replace(pairs=inputs.pairs._replace(**zeros))

    return change


def without_contention(inputs: Inputs) -> Inputs:
    contention = inputs.devices.contention
    factor = np.ones_like(contention.factor)
    return inputs._replace(devices=inputs.devices._replace(contention=contention._replace(factor=factor)))


def without_orders(inputs: Inputs) -> Inputs:
    """Only messages that carry something take a fixed part."""
    at = np.diag_indices(len(inputs.names))
    zeros = {}
    for field in ("send_cpu_s", "receive_cpu_s"):
        zeros[field] = getattr(inputs.pairs, field).copy()
        zeros[field][at] = 0.0
    return inputs._replace(pairs=inputs.pairs._replace(**zeros))


def without_queues(*stations: int) -> Patch:
    """What waits at these stations of a server never meets another."""
    solved = async_server.steady_state

    def steady_state(found: Stations, members: np.ndarray, together: bool) -> tuple[np.ndarray, np.ndarray]:
        demand_s = found.demand_s.copy()
        demand_s[..., stations] = 0.0
        delay_s = found.delay_s + (found.demand_s - demand_s).sum(axis=-1)
        return solved(found._replace(demand_s=demand_s, delay_s=delay_s), members, together)

    return async_server, "steady_state", steady_state


#: Terms by name, in the order of the table.
TERMS: dict[str, Change | Patch] = {
    "contention on one kernel": without_contention,
    "messages' processor time": pairs("cpu", "stolen", "plain"),
    "what computing lacks meanwhile": pairs("stolen"),
    "that of any message": pairs("send_cpu_s", "receive_cpu_s"),
    "orders": without_orders,
    "latency of links": pairs("latency_s"),
    "capacity of a whole link": devices(in_bytes_per_s=np.inf, out_bytes_per_s=np.inf),
    "queues at a server": without_queues(LINK_IN, LINK_OUT, PROCESSOR, LOCK),
    "queues at its link": without_queues(LINK_IN, LINK_OUT),
    "queues at its processor": without_queues(PROCESSOR),
    "queue at its lock": without_queues(LOCK),
    "shadow processor": (async_server, "MOST_STOLEN", 0.0),
    "updates of servers, peers": devices(service_s=0.0),
    "updates of a device alone": devices(update_s=0.0),
    "compressors": devices(encode_s=0.0, add_s=0.0),
    "copies of an accelerator": devices(copy_s=0.0),
    "build and first step": devices(build_s=0.0, first_step_s=0.0),
}


def without(term: Change | Patch | None, scored: list[Case]) -> Score:
    """The score with a term at zero; with all of them for None."""
    if isinstance(term, tuple):
        module, name, instead = term
        with patch.object(module, name, instead):
            return score(scored, [predicted_s(case) for case in scored])
    change = term or (lambda inputs: inputs)
    return score(scored, [predicted_s(case._replace(inputs=change(case.inputs))) for case in scored])


def main() -> None:
    options = parser(__doc__).parse_args()
    scored = cases(recorded.load())
    rows = [_row(name, without(term, scored)) for name, term in {"nothing": None, **TERMS}.items()]
    show(f"Errors of clusters, and regrets, of {len(scored)} recorded audits in %", rows, options.json)


def _row(name: str, found: Score) -> dict[str, object]:
    return {
        "without": name,
        "≥ 0.2 MB": _percent(found.large),
        "< 0.2 MB": _percent(found.small),
        "alone": _percent(found.alone),
        "regret": _percent(found.regret, 2),
        "worst": _percent(found.worst),
        "best": _percent(found.best),
        **{kind.split()[-1]: _percent(error) for kind, error in found.kinds.items()},
    }


def _percent(share: float, digits: int = 1) -> float:
    return round(100 * float(share), digits)


if __name__ == "__main__":
    main()
