"""`planner models` lists what `planner profile` times."""

import json

import pytest

from tests.planner.cli.commands import Planner


def test_models_are_listed_with_sizes_and_sources(planner: Planner) -> None:
    found = {row["name"]: row for row in json.loads(planner("models", "--json").out)["models"]}
    assert len(found) == 10
    assert found["resnet50"]["parameters"] == 25_557_032
    assert found["resnet50"]["bytes"] == 4 * 25_557_032
    assert found["resnet50"]["multiply_adds"] == pytest.approx(4.09e9, rel=0.01)
    assert "He" in found["resnet50"]["source"]
    shown = planner("models").out
    assert all(name in shown for name in found)
