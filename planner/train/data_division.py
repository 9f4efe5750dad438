"""The run folder keeps how the training data of a run are divided among its devices."""

from collections.abc import Mapping
from typing import NamedTuple

from backends.protocol.events import Ready
from backends.protocol.member_specs import IID, DataPart
from planner.errors import PlanError, RunError
from planner.json_records import load
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.orders import Options
from planner.train.resume import RUN_REMEDY

#: Steps at least assumed of a worker when the data are dealt out. One that is expected to make
#: none, because the run is shorter than its start, still needs data if it joins.
FEWEST_STEPS = 1e-3


class DataDivision(NamedTuple):
    """The division of training data.

    partition: text of a ``backends.data.partition.Partition``.
    weights: steps of the usual batch expected of each device, by name. A resumed run has the
        weights that its data were divided by first, so that each device keeps its samples; devices
        that have left it are among them.
    labels: samples of each member by label, as the members tell them.
    """

    partition: str
    seed: int
    weights: dict[str, float]
    labels: dict[str, dict[str, int]] = {}

    @property
    def by_label(self) -> bool:
        return self.partition != IID

    def parts(self) -> dict[str, DataPart]:
        """The part of each device, in proportion to its weight.

        Every sample is then seen about equally often, whatever the speeds. A partition by label
        keeps to the proportion as far as the labels permit.
        """
        names = tuple(self.weights)
        weights = tuple(max(each, FEWEST_STEPS) for each in self.weights.values())
        return {name: DataPart(weights, at, self.seed, self.partition, names) for at, name in enumerate(names)}

    def held(self, ready: Mapping[str, Ready]) -> "DataDivision":
        """With what members hold that are ready. Raises RunError where they divide differently.

        Members of a job divide the samples themselves, each from the labels that it reads.
        """
        if len({each.division for each in ready.values()}) > 1:
            raise RunError(
                f"--partition {self.partition}: {', '.join(sorted(ready))} divide the samples differently, so that "
                "some would belong to several devices; see that the labels of the training data are equal on all, "
                "and numpy of one version, or leave --partition out"
            )
        return self._replace(labels={name: dict(each.labels) for name, each in ready.items()})

    def notes(self, samples: int | None) -> list[str]:
        """That some of so many samples are on no member; nothing where that is not known."""
        missing = (samples or 0) - sum(sum(labels.values()) for labels in self.labels.values())
        if not self.by_label or samples is None or missing <= 0:
            return []
        return [f"{missing:,} of {samples:,} samples are on no device of this run (--partition {self.partition})"]


def data_division(plan: Plan, options: Options, before: RunFolder | None = None) -> DataDivision:
    """The division for a plan; by label that of the run that is resumed, if it had the same one.

    Raises PlanError where that left the plan's device no sample, RecordError for a damaged record.
    """
    weights = {worker.name: worker.steps * plan.batches[worker.name] / plan.run.batch for worker in plan.workers}
    made = DataDivision(options.partition, options.seed, weights)
    if not made.by_label or before is None or not before.partition.exists():
        return made
    saved = load(DataDivision, before.partition, RUN_REMEDY)
    if (saved.partition, saved.seed) != (made.partition, made.seed):
        return made
    if others := [name for name in plan.names if name not in saved.weights]:
        raise PlanError(
            f"cannot resume {before.path} on {', '.join(others)}: its samples were divided among "
            f"{', '.join(saved.weights)} (--partition {saved.partition}); plan for devices of these, or begin a new run"
        )
    return saved._replace(labels={})
