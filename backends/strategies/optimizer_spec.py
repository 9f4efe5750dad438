"""The text of an optimizer, NAME or NAME:key=value,..., is parsed here into its settings."""

import math
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from backends.frameworks.optimizer import (
    ADAM,
    ADAMW,
    LARS,
    MOMENTUM,
    OPTIMIZERS,
    OWN,
    SGD,
    SLOT_NAMES,
    OptimizerSettings,
)
from backends.strategies.name_and_options import name_of, number, options_of, typed

#: Learning rates by default: those of the examples here, and Kingma and Ba's.
RATES: Dict[str, float] = {SGD: 0.01, LARS: 0.01, ADAM: 0.001, ADAMW: 0.001, OWN: 1.0}
#: Weight decay by default: torch's for AdamW.
WEIGHT_DECAYS: Dict[str, float] = {SGD: 0.0, LARS: 0.0, ADAM: 0.0, ADAMW: 0.01, OWN: 0.0}
#: Options of each optimizer.
_KEYS: Dict[str, Sequence[str]] = {
    SGD: (),
    LARS: (),
    ADAM: ("beta1", "beta2", "epsilon"),
    ADAMW: ("beta1", "beta2", "epsilon"),
    OWN: (),
}


class OptimizerSpec(NamedTuple):
    """The choice of an optimizer: its name, and those of its options that were given."""

    name: str
    options: Tuple[Tuple[str, float], ...] = ()

    @classmethod
    def from_text(cls, text: str) -> "OptimizerSpec":
        """Parse ``NAME:key=value,...``, such as adam:beta1=0.9,beta2=0.99,epsilon=1e-6.

        Raises ValueError for an unknown name or key, or a value out of range.
        """
        name = name_of("optimizer", text, OPTIMIZERS)
        given = options_of(text)
        unknown = [key for key in given if key not in _KEYS[name]]
        if unknown:
            known = ", ".join(_KEYS[name]) or "none"
            raise ValueError("optimizer %s has no option %s; known: %s" % (name, ", ".join(unknown), known))
        options = typed("optimizer " + name, given, dict.fromkeys(_KEYS[name], number))
        for key, value in options.items():
            least_excluded = key == "epsilon" and value <= 0.0
            if least_excluded or not 0.0 <= value < (math.inf if key == "epsilon" else 1.0):
                fits = "a finite number above 0" if key == "epsilon" else "a number from 0 to below 1"
                raise ValueError("optimizer %s: %s is %s, not %s" % (name, key, fits, given[key]))
        return cls(name, tuple(options.items()))

    def as_text(self) -> str:
        """The text for files."""
        options = ",".join("%s=%r" % option for option in self.options)
        return self.name + (":" + options if options else "")

    def settings(
        self, rate: Optional[float], momentum: float, weight_decay: Optional[float], clip_norm: Optional[float] = None
    ) -> OptimizerSettings:
        """The settings of a run; a rate or weight decay of None is the optimizer's default.

        Raises ValueError for a rate or weight decay of a job's own optimizer, which has them.
        """
        if self.name == OWN and not (rate is None and weight_decay is None):
            raise ValueError("the job's own optimizer has its learning rate and weight decay; leave the option out")
        options: Dict[str, Any] = dict(self.options)
        return OptimizerSettings(
            RATES[self.name] if rate is None else rate,
            momentum if MOMENTUM in SLOT_NAMES[self.name] else 0.0,
            WEIGHT_DECAYS[self.name] if weight_decay is None else weight_decay,
            self.name,
            clip_norm=clip_norm,
            **options,
        )
