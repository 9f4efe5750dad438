"""Every method of the papers has a name, a line for --help, and parts that go together."""

import pytest

from backends.strategies.compatibility import PARTS
from backends.strategies.presets import ALIASES, DEFAULT, DESCRIPTIONS, PRESETS
from backends.strategies.strategy import Strategy


def test_every_topology_and_every_aggregation_across_it_has_a_preset():
    assert {preset.topology for preset in PRESETS.values()} == set(PARTS["topology"])


def test_every_preset_is_described_on_one_line():
    assert list(DESCRIPTIONS) == list(PRESETS)
    assert all(0 < len(line) <= 90 and "\n" not in line for line in DESCRIPTIONS.values())


@pytest.mark.parametrize(("alias", "text"), ALIASES.items())
def test_an_alias_stands_for_a_preset(alias, text):
    assert alias not in PRESETS
    assert Strategy.from_text(alias).same_as(Strategy.from_text(text))


def test_a_plan_without_a_strategy_has_an_asynchronous_server():
    assert PRESETS[DEFAULT] == ("dense", "server", "asynchronous", "fixed", "mean", "none", "sgd", "none", "average")
