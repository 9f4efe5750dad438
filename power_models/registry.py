"""The registry names every kind of model, among them a blend of kinds whose errors differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, GoneKind, Regressor, Target, Unsuitable
from power_models.gp import GaussianProcess
from power_models.linear import Linear, Mean, NonNegative
from power_models.nameplate import Nameplate
from power_models.physical import Physical
from power_models.saturation import Saturation
from power_models.table import Table
from power_models.trees import Trees

#: Kinds that a blend is the mean of.
MEMBERS: tuple[type[Regressor], ...] = (Physical, Trees, GaussianProcess)
#: Members predict at least this; a mean of logarithms needs it.
LEAST = 1e-9


@dataclass(frozen=True)
class Blend(Regressor):
    """The geometric mean of ``MEMBERS``, or of those of them that suit the table."""

    name: ClassVar[str] = "blend"
    summary: ClassVar[str] = f"geometric mean of {', '.join(kind.name for kind in MEMBERS)}"

    members: tuple[Regressor, ...]

    @classmethod
    def fit(cls, table: Table, target: Target, fitted: Sequence[Regressor] = ()) -> Self:
        """Members that are not among the fitted models of this table are fitted now."""
        there = {type(model): model for model in fitted}
        members: list[Regressor] = []
        for kind in MEMBERS:
            try:
                members.append(there.get(kind) or kind.fit(table, target))
            except (Unsuitable, np.linalg.LinAlgError):
                continue
        if not members:
            raise Unsuitable("no member suits the table")
        return cls(tuple(members))

    def predict(self, table: Table) -> Estimate:
        values = [np.log(np.maximum(member.predict(table).values, LEAST)) for member in self.members]
        return Estimate.even(np.exp(np.mean(values, axis=0)))

    def describe(self) -> str:
        return f"mean of {', '.join(member.name for member in self.members)}"

    def to_json(self) -> dict[str, Any]:
        return {"members": [{"model": member.name, "data": member.to_json()} for member in self.members]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(tuple(kind(each["model"]).from_json(each["data"]) for each in data["members"]))


#: Simplest first: of two that are equally good, the first is chosen.
KINDS: tuple[type[Regressor], ...] = (
    Mean, Nameplate, Linear, NonNegative, Physical, Saturation, Trees, GaussianProcess, Blend,
)  # fmt: skip
MODELS: dict[str, type[Regressor]] = {kind.name: kind for kind in KINDS}


def kind(name: str) -> type[Regressor]:
    """The kind that reads a saved model. Raises KeyError, and GoneKind for a former version's."""
    if name == "boosted":
        raise GoneKind(f"a model of kind {name}, which this version no longer reads; fit it again")
    return Linear if name == "ridge" else MODELS[name]
