"""The registry names every compressor, and builds one from its name and options."""

import inspect
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Type

from backends.frameworks.layout import Variable
from backends.strategies.compressors.adaptive import Adaptive
from backends.strategies.compressors.ako import Ako
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.dense import Float16, Uncompressed
from backends.strategies.compressors.dgc import DeepGradientCompression
from backends.strategies.compressors.ef21 import EF21
from backends.strategies.compressors.gaia import Gaia
from backends.strategies.compressors.layer_drop import LayerDrop
from backends.strategies.compressors.max_n import MaxN
from backends.strategies.compressors.momentum_correction import MomentumCorrection
from backends.strategies.compressors.power_sgd import PowerSGD
from backends.strategies.compressors.sparse_loco import SparseLoCo
from backends.strategies.compressors.top_k import TopK
from backends.strategies.name_and_options import name_of, number, one_of, options_of, typed, whole_number, yes_or_no

COMPRESSORS: Dict[str, Type[Compressor]] = {
    "dense": Uncompressed,
    "float16": Float16,
    "layer-drop": LayerDrop,
    "max-n": MaxN,
    "ako": Ako,
    "gaia": Gaia,
    "top-k": TopK,
    "adaptive": Adaptive,
    "dgc": DeepGradientCompression,
    "ef21": EF21,
    "power-sgd": PowerSGD,
    "sparse-loco": SparseLoCo,
}

#: The compressor that ``adaptive`` wraps by default.
WRAPPED = "top-k"

_READERS: Dict[type, Callable[[str], Any]] = {bool: yes_or_no, int: whole_number, float: number, str: str}
_ANY_VARIABLES = (Variable("any", (1,), 0, 1),)


class CompressorSpec(NamedTuple):
    """The choice of a compressor: its name, its options, and the compressor that it wraps."""

    name: str
    options: Tuple[Tuple[str, Any], ...] = ()
    wrapped: Optional["CompressorSpec"] = None

    @classmethod
    def from_text(cls, text: str) -> "CompressorSpec":
        """Parse ``NAME:key=value,...``; keys are options of the class of that name.

        ``adaptive`` names the wrapped compressor as ``of``, and accepts its options beside its own.
        Raises ValueError for an unknown name, key or value, listing the known ones.
        """
        found = _spec(name_of("compressor", text, COMPRESSORS), options_of(text), ())
        found.build(_ANY_VARIABLES)  # raises ValueError for values out of range
        return found

    def build(self, variables: Sequence[Variable], momentum: float = 0.0) -> Compressor:
        """A compressor of these variables; ``momentum`` is applied before compression."""
        options = dict(self.options)
        if self.wrapped is not None:
            options["of"] = self.wrapped.build(variables)
        made = COMPRESSORS[self.name](variables, **options)
        return MomentumCorrection(made, momentum) if momentum else made

    @property
    def keeps_residual(self) -> bool:
        """Whether it keeps values for later messages."""
        return self.build(_ANY_VARIABLES).residual() is not None

    @property
    def sends_differences(self) -> bool:
        """Whether a receiver must keep the sum of each sender's messages."""
        return COMPRESSORS[self.name].sends_differences

    @property
    def by_link(self) -> bool:
        """Whether each link needs a compressor of its own, adapted to the link's rate."""
        return self.build(_ANY_VARIABLES).by_link


def _spec(name: str, given: Mapping[str, str], outer: Sequence[str]) -> CompressorSpec:
    readers = _readers(COMPRESSORS[name])
    known = [*outer, *readers]
    own = {key: text for key, text in given.items() if key in readers and key != "of"}
    others = {key: text for key, text in given.items() if key not in readers}
    wrapped = None
    if "of" in readers:
        wrapped = _spec(one_of("compressor", given.get("of", WRAPPED), COMPRESSORS), others, known)
    elif others:
        raise ValueError("%s has no option %s; known: %s" % (name, ", ".join(others), ", ".join(known) or "none"))
    return CompressorSpec(name, tuple(typed(name, own, readers).items()), wrapped)


def _readers(kind: Type[Compressor]) -> Dict[str, Callable[[str], Any]]:
    """A parser for each option: parameters after ``variables``, by the types of their defaults."""
    parameters = list(inspect.signature(kind).parameters.values())[1:]
    return {parameter.name: _READERS.get(type(parameter.default), str) for parameter in parameters}
