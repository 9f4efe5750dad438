"""A strategy says how workers exchange what they learn; its text is parsed once, here."""

from typing import NamedTuple

from backends.strategies.compatibility import check
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.option_text import one_of, options_of
from backends.strategies.presets import ALIASES, DEFAULT, PRESETS, Parts
from backends.strategies.synchronisation import SyncPolicy
from backends.strategies.topologies.registry import TopologySpec


class Strategy(NamedTuple):
    """The parsed parts of a strategy, and its ``text`` as it was typed.

    It becomes text only where it is written, in plan.json and in orders, and is parsed where that
    is read.
    """

    compressor: CompressorSpec
    topology: TopologySpec
    sync: SyncPolicy
    batching: str
    aggregation: str
    knowledge: str
    optimizer: str
    text: str

    @classmethod
    def from_text(cls, text: str) -> "Strategy":
        """The strategy of "NAME" or "NAME:part=value,part=value", whose parts override those of
        the preset NAME.

        Raises ValueError for an unknown name, part, option or value, and where parts do not go
        together.
        """
        parts = check(parts_of(text))
        return cls(
            CompressorSpec.from_text(parts.compressor),
            TopologySpec.from_text(parts.topology),
            SyncPolicy.from_text(parts.sync),
            parts.batching,
            parts.aggregation,
            parts.knowledge,
            parts.optimizer,
            text,
        )

    def as_text(self) -> str:
        """As it is written to files and orders."""
        return self.text

    def same_as(self, other: "Strategy") -> bool:
        """Whether both have the same parts, however they were typed."""
        return self._replace(text="") == other._replace(text="")

    @property
    def through_server(self) -> bool:
        """Whether workers exchange with a parameter server, and not among themselves."""
        return self.topology.name == "server"

    @property
    def with_lars(self) -> bool:
        """Whether gradients are scaled by LARS where they are applied, and not where they are
        computed.
        """
        return self.optimizer == "lars"

    def evaluation_stops_all(self, workers: int) -> bool:
        """Whether all wait while one of so many workers evaluates."""
        return workers == 1 or self.sync.waits_for(workers) > 1


def parts_of(text: str) -> Parts:
    """The texts of the parts of a strategy. Raises ValueError for an unknown name or part."""
    name = text.partition(":")[0]
    given = options_of(text, Parts._fields)
    usual = parts_of(ALIASES[name]) if name in ALIASES else PRESETS[one_of("strategy", name, PRESETS)]
    return usual._replace(**given)


#: The strategy of a plan that names none.
PARAMETER_SERVER = Strategy.from_text(DEFAULT)
