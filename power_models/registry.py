"""Every kind of model by name, simplest first: of two that are equally good, the first is chosen."""

from power_models.base import Regressor
from power_models.blend import Blend
from power_models.boosted import Boosted
from power_models.gp import GaussianProcess
from power_models.linear import Linear
from power_models.nameplate import Nameplate
from power_models.nonnegative import NonNegative
from power_models.physical import Physical
from power_models.ridge import Ridge
from power_models.saturation import Saturation
from power_models.trees import Trees

MODELS: dict[str, type[Regressor]] = {
    "nameplate": Nameplate,
    "linear": Linear,
    "ridge": Ridge,
    "nonnegative": NonNegative,
    "physical": Physical,
    "saturation": Saturation,
    "trees": Trees,
    "boosted": Boosted,
    "gp": GaussianProcess,
    "blend": Blend,
}
