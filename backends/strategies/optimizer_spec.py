"""The text of an optimizer, NAME or NAME:key=value,..., is parsed here into its settings."""

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

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
from backends.strategies.name_and_options import below_one, name_of, options_of, positive, typed

#: Learning rates by default: those of the examples here, and Kingma and Ba's.
RATES: Dict[str, float] = {SGD: 0.01, LARS: 0.01, ADAM: 0.001, ADAMW: 0.001, OWN: 1.0}
#: Weight decay of AdamW by default, as in torch; others have none.
ADAMW_DECAY = 0.01
#: Options of the optimizers that have some.
_OF_ADAM: Dict[str, Callable[[str], float]] = {"beta1": below_one, "beta2": below_one, "epsilon": positive}
_OPTIONS = {ADAM: _OF_ADAM, ADAMW: _OF_ADAM}


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
        return cls(name, tuple(typed("optimizer " + name, options_of(text), _OPTIONS.get(name, {})).items()))

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
            (ADAMW_DECAY if self.name == ADAMW else 0.0) if weight_decay is None else weight_decay,
            self.name,
            clip_norm=clip_norm,
            **options,
        )
