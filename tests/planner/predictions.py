"""Predictions of made-up fleets: inputs of devices named a, b, c, ... and all their clusters."""

import numpy as np

from planner.predict import cycle
from planner.predict.clusters import Candidates, enumerate_clusters
from planner.predict.inputs import Inputs
from planner.predict.kinds.cycles import Cycles
from planner.predict.links import Pairs
from planner.predict.run import Bill, Predictions, predict
from planner.predict.training import Training, prepare
from planner.profile.file import Profile
from tests.planner import profiles
from tests.planner.requests import asked


def inputs_of(profile: Profile, *args: object, **options: object) -> Inputs:
    return prepare(profile, asked(None, *args, **options))[0]


def training_of(profile: Profile, *args: object, **options: object) -> Training:
    return prepare(profile, asked(None, *args, **options))[1]


def with_inputs(inputs: Inputs, **changed: np.ndarray) -> Inputs:
    """The same inputs with some arrays of its devices or pairs replaced."""
    pairs = {name: values for name, values in changed.items() if name in Pairs._fields}
    devices = {name: values for name, values in changed.items() if name not in pairs}
    return inputs._replace(devices=inputs.devices._replace(**devices), pairs=inputs.pairs._replace(**pairs))


def candidate(mask: int, host: int = 0) -> Candidates:
    return Candidates(np.array([mask]), np.array([host]))


def solve(inputs: Inputs, candidates: Candidates) -> Cycles:
    return cycle.cycles(inputs, candidates)[0]


def everything(inputs: Inputs, steps: int = 1000, bill: Bill | None = None) -> Predictions:
    return predict(inputs, enumerate_clusters(inputs.names, inputs.pairs.reachable), steps, bill)


def index(predictions: Predictions, inputs: Inputs, members: str, host: str) -> int:
    mask = sum(1 << inputs.names.index(name) for name in members)
    masks, hosts = predictions.candidates
    return int(np.flatnonzero((masks == mask) & (hosts == inputs.names.index(host)))[0])


def known(*gradients_s: float, rates: dict[str, float] | None = None, **changes: object) -> Inputs:
    return inputs_of(profiles.fleet(*gradients_s, rates=rates, **changes))
