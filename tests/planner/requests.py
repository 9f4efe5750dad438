"""Requests for tests, whose settings of the run stand beside the rest."""

from collections.abc import Mapping
from typing import Any

from backends.training.run_settings import RunSettings
from planner.predict.request import RecommendRequest
from planner.predict.run import Bill
from planner.predict.sample_efficiency import Learning


def asked(weights: Mapping[str, float] | None = None, model: str = "", **options: Any) -> RecommendRequest:
    """A request. options: fields of RecommendRequest and of the records in it."""

    def part(kind: Any, **given: Any) -> Any:
        return kind(**given, **{name: options.pop(name) for name in kind._fields if name in options})

    settings, bill, learning = part(RunSettings, model=model), part(Bill), part(Learning)
    return RecommendRequest(weights, settings, bill=bill, learning=learning, **options)
