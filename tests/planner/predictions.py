"""Predictions of made-up fleets: costs of devices named a, b, c, ... and all their clusters."""

import numpy as np

from planner.predict.clusters import enumerate_clusters
from planner.predict.costs import Costs, costs_of
from planner.predict.predict import Predictions, predict
from tests.planner import profiles


def everything(known: Costs, steps: int = 1000, **options: object) -> Predictions:
    return predict(known, enumerate_clusters(known.names, known.pairs.reachable), steps, **options)


def index(predictions: Predictions, known: Costs, members: str, host: str) -> int:
    mask = sum(1 << known.names.index(name) for name in members)
    masks, hosts = predictions.candidates
    return int(np.flatnonzero((masks == mask) & (hosts == known.names.index(host)))[0])


def known(*gradients_s: float, rates: dict[str, float] | None = None, **changes: object) -> Costs:
    devices = {
        name: profiles.device(profiles.step(gradient_s, **changes))
        for name, gradient_s in zip("abcdef", gradients_s, strict=False)
    }
    return costs_of(profiles.profile(devices, rates))
