"""Strategies in which workers can share a global batch, and why others cannot."""

import pytest

from backends.strategies.presets import PRESETS
from backends.strategies.strategy import Strategy
from planner.errors import PlanError
from planner.plan.weighing_samples import weighing_samples


@pytest.mark.parametrize(
    "text",
    [
        "parameter-server:sync=synchronous", "layer-drop", "baseline", "gaia", "allreduce", "ring",
        "allreduce:compressor=float16,aggregation=mean", "baseline:optimizer=adam:beta1=0.8",
    ],
)  # fmt: skip
def test_gradients_are_weighed_by_samples_and_all_else_stays(text: str) -> None:
    before = Strategy.from_text(text)
    found = weighing_samples(before)
    assert found.aggregation == "samples"
    assert found._replace(aggregation="mean", text="") == before._replace(text="")
    assert Strategy.from_text(found.text).same_as(found)
    assert weighing_samples(found) is found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("parameter-server", "its workers do not wait for one another, so no step has a batch of all"),
        ("ako", "its workers do not wait for one another"),
        ("hop", "its workers do not wait for one another"),
        ("dlion", "batching=dynamic deals out batches by itself"),
        ("scadles", "batching=stream deals out batches by itself"),
        ("crossover", "it averages weights, not gradients, whatever the batches"),
        ("sgp", "it averages weights, not gradients, whatever the batches"),
        ("crossover-hierarchical", "a leader takes the mean of its group, whatever the batches"),
        ("baseline:aggregation=weighted", "aggregation=weighted weighs otherwise; leave it out"),
    ],
)
def test_others_are_refused_with_the_reason_and_the_remedy(text: str, reason: str) -> None:
    with pytest.raises(PlanError) as refused:
        weighing_samples(Strategy.from_text(text))
    assert str(refused.value).startswith(f"--global-batch with strategy {text}: {reason}")
    assert str(refused.value).endswith("allreduce or baseline, or --engine torch")


def test_every_preset_can_or_says_why_not() -> None:
    able = set()
    for name in PRESETS:
        try:
            weighing_samples(Strategy.from_text(name))
            able.add(name)
        except PlanError:
            pass
    assert able == {"layer-drop", "baseline", "gaia", "allreduce", "local-sgd", "diloco"}
