"""Local updates: members make several steps of their own between two exchanges.

A round of member i are h_i steps, which move its weights from w to w_i. It sends the change
w - w_i as others send a gradient, and the mean of all changes is the step of an outer optimizer
(Stich, Local SGD, 2019; Douillard et al., DiLoCo, 2023).
"""

from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence

from backends.frameworks.optimizer import DELAYED_NESTEROV, NESTEROV, OptimizerSettings
from backends.strategies.name_and_options import (
    below_one,
    count,
    name_of,
    options_of,
    positive,
    typed,
    whole_from,
    yes_or_no,
)

#: Steps and seconds of a round where neither a plan nor the operator names them.
EVERY, SECONDS = 50, 1.0
#: Share of a round that its exchange may take, by which a round's seconds are chosen.
EXCHANGE_SHARE = 0.1
#: Steps of a round at the most where they are chosen, however long the exchange takes: the most
#: with which it was measured what rounds are worth.
MOST_CHOSEN = 400
#: Rounds of a run at the least where they are chosen: the gain was measured over more.
FEWEST_ROUNDS = 10


class LocalSpec(NamedTuple):
    """How many steps each member makes between two exchanges.

    name: none, where a gradient is exchanged in every step; steps: all make ``every``; time: as
    many as ``seconds`` have room for, at least one; speed: the fast ones make ``every``, others as
    many in proportion to their speed.
    every, seconds: None for a plan to choose.
    after: steps of all members that are exchanged one by one before the first round.
    reset: whether a round begins with a new inner optimizer.
    normalize: whether changes count by step, so that members with more steps weigh no more.
    """

    name: str = "none"
    every: Optional[int] = None
    seconds: Optional[float] = None
    after: int = 0
    reset: bool = False
    normalize: bool = False

    @classmethod
    def from_text(cls, text: str) -> "LocalSpec":
        """Parse ``NAME:key=value,...``, such as time:seconds=2,after=500.

        Raises ValueError for an unknown name, key or value.
        """
        return cls(*_parsed("local", text, _LOCAL_KEYS))

    def __bool__(self) -> bool:
        return self.name != "none"

    def as_text(self) -> str:
        """The text for files."""
        return _text(self, LocalSpec(self.name))


class OuterSpec(NamedTuple):
    """What is done with the mean change of a round.

    name: average, which moves the weights by ``gain`` times the mean; nesterov: momentum besides;
    delayed-nesterov: momentum in every ``every``-th update of a server that waits for nobody.
    momentum: None for the one that makes up for averaging, see ``settings``.
    every: 0 for the number of members.
    """

    name: str = "average"
    gain: float = 1.0
    momentum: Optional[float] = None
    every: int = 0

    @classmethod
    def from_text(cls, text: str) -> "OuterSpec":
        """Parse ``NAME:key=value,...``, such as nesterov:momentum=0.6,gain=0.9.

        Raises ValueError for an unknown name, key or value.
        """
        return cls(*_parsed("outer", text, _OUTER_KEYS))

    def as_text(self) -> str:
        """The text for files."""
        return _text(self, OuterSpec(self.name))

    @property
    def kind(self) -> str:
        """The optimizer that makes the outer step."""
        return DELAYED_NESTEROV if self.name == DELAYED_NESTEROV else NESTEROV

    def settings(self, local_steps: Sequence[int]) -> OptimizerSettings:
        """The outer optimizer of a round in which members make so many steps.

        A mean weighed by steps moves the weights by sum h^2 / sum h steps' worth, though sum h
        were made. Momentum b moves them 1 / (1 - b) times as far in the long run, so that
        gain / (1 - b) = (sum h)^2 / sum h^2 moves them by all. This is the momentum by default.
        Where nobody waits, it is 0: changes of n members that come late act as momentum 1 - 1/n
        already (Mitliagkas et al., Asynchrony begets Momentum, 2016, theorem 3).
        """
        if self.name == "average":
            return OptimizerSettings(self.gain, 0.0, kind=self.kind)
        momentum = self.momentum
        if momentum is None:
            momentum = 0.0 if self.name == DELAYED_NESTEROV else automatic_momentum(self.gain, local_steps)
        return OptimizerSettings(self.gain, momentum, kind=self.kind, delay=self.every or len(local_steps))


#: The mean of all changes, and nothing else.
AVERAGE = OuterSpec()


def automatic_momentum(gain: float, local_steps: Sequence[int]) -> float:
    """b of gain / (1 - b) = (sum h)^2 / sum h^2; 0 where that would be below 0."""
    total, squares = sum(local_steps), sum(steps * steps for steps in local_steps)
    return max(0.0, 1.0 - gain * squares / float(total * total))


_ROUND: Mapping[str, Callable[[str], Any]] = {"after": count, "reset": yes_or_no, "normalize": yes_or_no}
_LOCAL_KEYS: Mapping[str, Mapping[str, Callable[[str], Any]]] = {
    "none": {},
    "steps": dict(_ROUND, every=whole_from(1)),
    "time": dict(_ROUND, seconds=positive),
    "speed": dict(_ROUND, every=whole_from(1)),
}
_OUTER_KEYS: Mapping[str, Mapping[str, Callable[[str], Any]]] = {
    "average": {"gain": positive},
    "nesterov": {"gain": positive, "momentum": below_one},
    DELAYED_NESTEROV: {"gain": positive, "momentum": below_one, "every": whole_from(1)},
}
LOCAL, OUTER = tuple(_LOCAL_KEYS), tuple(_OUTER_KEYS)
_FIELDS = {"local": LocalSpec(), "outer": AVERAGE}


def _parsed(part: str, text: str, keys: Mapping[str, Mapping[str, Callable[[str], Any]]]) -> Sequence[Any]:
    """The fields of a part's text, those that are not named by default."""
    name = name_of(part, text, keys)
    values: Dict[str, Any] = typed("%s %s" % (part, name), options_of(text), keys[name])
    usual: Any = _FIELDS[part]
    return tuple(usual._replace(name=name, **values))


def _text(spec: Any, usual: Any) -> str:
    changed = [(key, value) for key, value in spec._asdict().items() if value != getattr(usual, key)]
    words = ["%s=%s" % (key, "yes" if value is True else value) for key, value in changed]
    name: str = spec.name
    return name + (":" + ",".join(words) if words else "")
