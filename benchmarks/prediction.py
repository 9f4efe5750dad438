"""Predicted against measured steps a second of every cluster of three hosts on shaped links.

The links are measured by the product's own probes between agents on the hosts, the runs are its own
server and workers; only the gradient is a sleep, so that what is judged is the model of the
communication and not how many cores this machine has. Clusters of one device are left out.
"""

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from namespaces import Star
from reporting import Spread, parser, show
from runs import agents, measure, train
from synthetic import device, profile

from backends.profiling import update_costs
from planner.predict.clusters import enumerate_clusters
from planner.predict.request import RecommendRequest
from planner.predict.run import predict
from planner.predict.training import prepare
from profilers.records.links import IncastProfile, LinkProfile

GRADIENTS_S = {"a": 0.03, "b": 0.05, "c": 0.08}
RUN_S = 4.0
FEWEST = 60
SMALL, LARGE = 60_000, 1_000_000
STEPS = 100_000

Rates = Mapping[str, float]


class Case(NamedTuple):
    """Line rates by host, and the models (parameters) to try on them."""

    name: str
    rates_mbit: Rates
    models: tuple[int, ...]


CASES = (
    Case("1000", {"a": 1000.0, "b": 1000.0, "c": 1000.0}, (SMALL, LARGE)),
    Case("100", {"a": 100.0, "b": 100.0, "c": 100.0}, (SMALL, LARGE)),
    Case("10", {"a": 10.0, "b": 10.0, "c": 10.0}, (SMALL,)),
    Case("100, 1000, 20", {"a": 100.0, "b": 1000.0, "c": 20.0}, (SMALL,)),
)


class Cluster(NamedTuple):
    """One cluster: cycle seconds by worker as predicted and as measured."""

    server: str
    predicted_s: dict[str, float]
    measured_s: dict[str, float]

    def error(self, remote: bool = False) -> float:
        """Relative error of the predicted steps/s of all workers, or of those over the network."""
        predicted, measured = (
            {name: each for name, each in cycles_s.items() if not (remote and name == self.server)}
            for cycles_s in (self.predicted_s, self.measured_s)
        )
        return _rate(predicted) / _rate(measured) - 1


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--case", choices=[case.name for case in CASES], help="only these rates")
    options = arguments.parse_args()
    found = {}
    for case in CASES:
        if options.case in (None, case.name):
            found.update(_case(case))
    rows = [_row(*key, cluster) for key, clusters in found.items() for cluster in clusters]
    if not options.json:
        show("Predicted and measured steps/s", rows, False)
        rows = [_summary(*key, clusters) for key, clusters in found.items()]
    show("Errors of predicted steps/s", rows, options.json)


def _case(case: Case) -> dict[tuple[str, int], list[Cluster]]:
    with Star(case.rates_mbit) as star:
        with agents(star, tuple(case.rates_mbit)) as reached:
            measured = measure(star, reached, [4 * parameters for parameters in case.models])
        return {(case.name, parameters): _clusters(star, measured, parameters) for parameters in case.models}


def _clusters(star: Star, measured: list[LinkProfile | IncastProfile], parameters: int) -> list[Cluster]:
    service_s = update_costs.service_s(parameters)
    devices = {name: device(gradient_s, parameters, service_s) for name, gradient_s in GRADIENTS_S.items()}
    links = [link for link in measured if isinstance(link, LinkProfile)]
    incasts = [each for each in measured if isinstance(each, IncastProfile)]
    known = prepare(profile(devices, links, incasts), RecommendRequest())[0]
    candidates = enumerate_clusters(known.names, known.pairs.reachable)
    cycles_s = predict(known, candidates, STEPS).cycle_s
    clusters = []
    for mask, host, cycle_s in zip(candidates.masks, candidates.hosts, cycles_s, strict=True):
        workers = [name for i, name in enumerate(known.names) if mask >> i & 1]
        if len(workers) > 1:
            predicted_s = {name: float(cycle_s[known.names.index(name)]) for name in workers}
            clusters.append(_run(star, known.names[host], predicted_s, parameters))
    return clusters


def _run(star: Star, server: str, predicted_s: dict[str, float], parameters: int) -> Cluster:
    slowest_s = max(predicted_s.values())
    steps = round(max(RUN_S, FEWEST * slowest_s) * _rate(predicted_s))
    gradients_s = {name: GRADIENTS_S[name] for name in predicted_s}
    rates = train(star, server, gradients_s, parameters, steps).steps_per_s()
    return Cluster(server, predicted_s, {name: 1 / rate for name, rate in rates.items()})


def _rate(cycles_s: Mapping[str, float]) -> float:
    return sum(1 / cycle_s for cycle_s in cycles_s.values())


def _row(rates: str, parameters: int, cluster: Cluster) -> dict[str, object]:
    cycles = (
        f"{name} {1e3 * cluster.predicted_s[name]:.1f}/{1e3 * measured_s:.1f}"
        for name, measured_s in cluster.measured_s.items()
    )
    return {
        "Mbit/s": rates,
        "model MB": 4e-6 * parameters,
        "server": cluster.server,
        "predicted": _rate(cluster.predicted_s),
        "measured": _rate(cluster.measured_s),
        "error %": _percent(cluster.error()),
        "remote %": _percent(cluster.error(remote=True)),
        "cycles ms, predicted/measured": ", ".join(cycles),
    }


def _summary(rates: str, parameters: int, clusters: list[Cluster]) -> dict[str, object]:
    row: dict[str, object] = {"Mbit/s": rates, "model MB": 4e-6 * parameters, "clusters": len(clusters)}
    for who, remote in (("all workers", False), ("remote ones", True)):
        errors = [_percent(cluster.error(remote)) for cluster in clusters]
        row[f"{who}: mean |error| %"] = statistics.mean(abs(error) for error in errors)
        row[f"{who}: error %"] = Spread.of(errors)
    return row


def _percent(share: float) -> float:
    return round(100 * share, 1)


if __name__ == "__main__":
    main()
