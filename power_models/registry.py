"""The registry names every kind of model."""

from power_models.base import Regressor
from power_models.gp import GaussianProcess
from power_models.linear import Linear, Mean
from power_models.nameplate import Nameplate
from power_models.physical import Physical
from power_models.trees import Trees

#: Simplest first: of two that are equally good, the first is chosen.
KINDS: tuple[type[Regressor], ...] = (Mean, Nameplate, Linear, Physical, Trees, GaussianProcess)
MODELS: dict[str, type[Regressor]] = {kind.name: kind for kind in KINDS}
