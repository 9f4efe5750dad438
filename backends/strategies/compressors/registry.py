"""Every kind of sender by name, and the text that a person chooses one with."""

import inspect
from typing import Any, Dict, Sequence, Type

from backends.frameworks.base import Variable
from backends.strategies.compressors.adaptive import Adaptive
from backends.strategies.compressors.ako import Ako
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.dense import Uncompressed
from backends.strategies.compressors.float16 import Float16
from backends.strategies.compressors.gaia import Gaia
from backends.strategies.compressors.layer_drop import LayerDrop
from backends.strategies.compressors.max_n import MaxN
from backends.strategies.compressors.momentum_correction import MomentumCorrection
from backends.strategies.compressors.top_k import TopK

COMPRESSORS: Dict[str, Type[Compressor]] = {
    "everything": Uncompressed,
    "float16": Float16,
    "layer-drop": LayerDrop,
    "max-n": MaxN,
    "ako": Ako,
    "gaia": Gaia,
    "top-k": TopK,
    "adaptive": Adaptive,
}

_WRAPPED = "top-k"
_SWITCH = {"yes": True, "no": False}


def compressor(text: str, variables: Sequence[Variable], momentum: float = 0.0) -> Compressor:
    """The sender that "NAME" or "NAME:key=value,key=value" stands for; keys are options of its class.

    "adaptive" takes the name of the kind it wraps as ``of``, and that kind's options beside its own. momentum: what is
    to be applied before it (see Corrected). Raises ValueError for an unknown name, key or value, and says which there
    are.
    """
    name, _, listed = text.partition(":")
    made = _built(name, _pairs(listed), variables, [])
    return MomentumCorrection(made, momentum) if momentum else made


def keeps_residual(text: str) -> bool:
    """Whether a sender of this name leaves something for later. Raises ValueError as ``sender`` does."""
    return compressor(text, (Variable("any", (1,), 0, 1),)).kept() is not None


def _built(name: str, given: Dict[str, str], variables: Sequence[Variable], outer: Sequence[str]) -> Compressor:
    if name not in COMPRESSORS:
        raise ValueError("unknown sender %r; known: %s" % (name, ", ".join(COMPRESSORS)))
    defaults = _defaults(COMPRESSORS[name])
    known = list(outer) + list(defaults)
    own = {key: _value(name, key, given[key], defaults[key]) for key in given if key in defaults and key != "of"}
    others = {key: given[key] for key in given if key not in defaults}
    if "of" in defaults:
        own["of"] = _built(given.get("of", _WRAPPED), others, variables, known)
    elif others:
        raise ValueError("%s has no option %s; known: %s" % (name, ", ".join(others), ", ".join(known) or "none"))
    return COMPRESSORS[name](variables, **own)


def _pairs(listed: str) -> Dict[str, str]:
    given: Dict[str, str] = {}
    for item in listed.split(",") if listed else ():
        key, _, value = item.partition("=")
        if not key or not value:
            raise ValueError("%r is not of the form key=value" % item)
        if key in given:
            raise ValueError("%s is given twice" % key)
        given[key] = value
    return given


def _defaults(kind: Type[Compressor]) -> Dict[str, Any]:
    """Options and their defaults, whose types are those of the options: all parameters after ``variables``."""
    parameters = list(inspect.signature(kind).parameters.values())[1:]
    return {parameter.name: parameter.default for parameter in parameters}


def _value(name: str, key: str, text: str, default: Any) -> Any:
    try:
        return _SWITCH[text] if isinstance(default, bool) else type(default)(text)
    except (KeyError, ValueError):
        needed = {bool: "yes or no", int: "a whole number"}.get(type(default), "a number")
        raise ValueError("%s: %s is %s, not %r" % (name, key, needed, text)) from None
