"""How much a compressor sends is chosen from the profile."""

import pytest

from backends.strategies.strategy import Strategy
from planner.plan.compression import CHOICES, recommend_compressed
from planner.plan.recommendation import Recommendation
from tests.planner import profiles
from tests.planner.requests import asked

TIME = {"time": 1.0}
GRADIENTS_S = (0.01, 0.012, 0.02, 1.0)
SYNCHRONOUS = "parameter-server:sync=synchronous,compressor="


def chosen(text: str, gradient_s: float = 0.5, names: str = "abcd") -> Recommendation:
    fleet = profiles.profile({name: profiles.device(profiles.step(gradient_s)) for name in names})
    return recommend_compressed(fleet, asked(TIME, steps=1000, strategy=Strategy.from_text(text)))


def sent(found: Recommendation) -> float:
    ((_, value),) = found.inputs.strategy.compressor.options
    return float(value)


@pytest.mark.parametrize("name", CHOICES)
def test_more_is_sent_where_computing_takes_longer(name: str) -> None:
    option, values = CHOICES[name]
    assert sent(chosen(SYNCHRONOUS + name, 10.0)) == max(values)
    assert f"{option}=" in chosen(SYNCHRONOUS + name).inputs.strategy.text


def test_less_is_sent_where_links_hold_up_computing() -> None:
    assert sent(chosen(SYNCHRONOUS + "dgc", 0.001)) < sent(chosen(SYNCHRONOUS + "dgc", 0.5)) == 0.1
    assert sent(chosen("baseline:compressor=power-sgd", 0.001)) < 4


@pytest.mark.parametrize("strategy", [SYNCHRONOUS, "parameter-server:compressor=", "baseline:compressor="])
def test_the_quickest_cluster_takes_at_most_a_tenth_longer_than_with_the_least(strategy: str) -> None:
    """Also where workers wait for nobody, and where another cluster becomes the quickest."""
    fleet = profiles.fleet(*GRADIENTS_S)
    request = asked(TIME, steps=1000)

    def quickest_s(share: str) -> float:
        asked = request.setting(strategy=Strategy.from_text(strategy + "dgc" + share))
        found = recommend_compressed(fleet, asked)
        return float(found.parts[0].predictions.time_s[found.several].min())

    assert quickest_s("") <= 1.1 * quickest_s(":share=0.001") <= 1.1 * quickest_s(":share=1")


def test_what_is_given_is_kept_with_its_other_options() -> None:
    assert chosen(SYNCHRONOUS + "dgc:share=0.02").inputs.strategy.text == SYNCHRONOUS + "dgc:share=0.02"
    assert "dgc:warmup=20,share=" in chosen(SYNCHRONOUS + "dgc:warmup=20").inputs.strategy.text
