"""The text of ``--strategy`` is parsed here into a ``Strategy``, an object of its parts."""

from typing import NamedTuple

from backends.strategies.compatibility import check
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.local_updates import LocalSpec, OuterSpec
from backends.strategies.name_and_options import one_of, options_of
from backends.strategies.optimizer_spec import OptimizerSpec
from backends.strategies.presets import ALIASES, DEFAULT, PRESETS, SERVERLESS, Parts
from backends.strategies.synchronisation import SyncPolicy
from backends.strategies.topologies.registry import TopologySpec


class Strategy(NamedTuple):
    """The parsed parts of a strategy, and its ``text``, as which it is stored and sent."""

    compressor: CompressorSpec
    topology: TopologySpec
    sync: SyncPolicy
    batching: str
    aggregation: str
    knowledge: str
    optimizer: OptimizerSpec
    local: LocalSpec
    outer: OuterSpec
    text: str

    @classmethod
    def from_text(cls, text: str) -> "Strategy":
        """Parse "NAME" or "NAME:part=value,part=value"; parts override those of the preset NAME.

        Raises ValueError for an unknown name, part, option or value, and for incompatible parts.
        """
        parts = check(parts_of(text))
        return cls(
            CompressorSpec.from_text(parts.compressor),
            TopologySpec.from_text(parts.topology),
            SyncPolicy.from_text(parts.sync),
            parts.batching,
            parts.aggregation,
            parts.knowledge,
            OptimizerSpec.from_text(parts.optimizer),
            LocalSpec.from_text(parts.local),
            OuterSpec.from_text(parts.outer),
            text,
        )

    def as_text(self) -> str:
        """The text for files and orders."""
        return self.text

    def same_as(self, other: "Strategy") -> bool:
        """Whether both have the same parts, however they were typed."""
        return self._replace(text="") == other._replace(text="")

    @property
    def through_server(self) -> bool:
        """Whether workers exchange through a parameter server."""
        return self.topology.name == "server"

    @property
    def names_optimizer(self) -> bool:
        """Whether its text names the optimizer."""
        return "optimizer" in options_of(self.text, Parts._fields)

    @property
    def shared_kind(self) -> str:
        """The optimizer of the weights that all members share; in rounds it is the outer one."""
        return self.outer.kind if self.local else self.optimizer.name

    def with_optimizer(self, optimizer: str) -> "Strategy":
        """This strategy with the optimizer of another text.

        Raises ValueError for an unknown one, and for one that does not fit the other parts.
        """
        if self.optimizer == OptimizerSpec.from_text(optimizer):
            return self
        return self.with_part("optimizer", optimizer)

    def with_part(self, part: str, value: str) -> "Strategy":
        """This strategy with another part, as text. Raises ValueError where it does not fit."""
        given = dict(options_of(self.text, Parts._fields), **{part: value})
        items = ["%s=%s" % item for item in given.items()]
        return Strategy.from_text("%s:%s" % (self.text.partition(":")[0], ",".join(items)))

    def of_one_member(self) -> "Strategy":
        """What a device alone does: it makes no rounds, and shares no global batch that grows."""
        if not self.local and self.batching != "dynamic":
            return self
        return Strategy.from_text(SERVERLESS).with_optimizer(self.optimizer.as_text())

    def evaluation_stops_all(self, workers: int) -> bool:
        """Whether all of so many workers wait while one evaluates."""
        return workers == 1 or self.sync.waits_for(workers) > 1


def parts_of(text: str) -> Parts:
    """The texts of the parts of a strategy. Raises ValueError for an unknown name or part."""
    name = text.partition(":")[0]
    given = options_of(text, Parts._fields)
    usual = parts_of(ALIASES[name]) if name in ALIASES else PRESETS[one_of("strategy", name, PRESETS)]
    return usual._replace(**given)


#: The strategy of a plan that names none.
PARAMETER_SERVER = Strategy.from_text(DEFAULT)
