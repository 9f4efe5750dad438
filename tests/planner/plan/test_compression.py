"""How much a compressor sends is chosen from the profile."""

import pytest

from backends.strategies.strategy import Strategy
from planner.plan.compression import CHOICES, recommend_compressed
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.plan.request import RecommendRequest
from tests.planner import profiles

TIME = {"time": 1.0}
SYNCHRONOUS = "parameter-server:sync=synchronous,compressor="


def chosen(text: str, gradient_s: float = 0.5, names: str = "abcd") -> Recommendation:
    fleet = profiles.profile({name: profiles.device(profiles.step(gradient_s)) for name in names})
    return recommend_compressed(fleet, RecommendRequest(TIME, steps=1000, strategy=Strategy.from_text(text)))


def sent(found: Recommendation) -> float:
    ((_, value),) = found.costs.strategy.compressor.options
    return float(value)


@pytest.mark.parametrize("name", CHOICES)
def test_more_is_sent_where_computing_takes_longer(name: str) -> None:
    slow, quick = (sent(chosen(SYNCHRONOUS + name, gradient_s)) for gradient_s in (10.0, 0.001))
    option, values = CHOICES[name]
    assert slow == max(values)
    assert slow >= quick
    assert {slow, quick} <= set(values)
    assert option in chosen(SYNCHRONOUS + name).costs.strategy.text


def test_it_makes_a_step_at_most_a_tenth_longer_than_the_least_would() -> None:
    fleet = profiles.profile({name: profiles.device(profiles.step(0.01)) for name in "abcd"})
    request = RecommendRequest(TIME, steps=1000, include=tuple("abcd"))

    def step_s(share: str) -> float:
        asked = request._replace(strategy=Strategy.from_text(SYNCHRONOUS + "dgc" + share))
        return recommend_compressed(fleet, asked).round_s(1)[0]

    assert step_s(":share=0.001") < step_s("") <= step_s(":share=0.001") / 0.9 < step_s(":share=0.1")


def test_what_is_given_is_kept_with_its_other_options() -> None:
    assert chosen(SYNCHRONOUS + "dgc:share=0.02").costs.strategy.text == SYNCHRONOUS + "dgc:share=0.02"
    assert "dgc:warmup=20,share=" in chosen(SYNCHRONOUS + "dgc:warmup=20").costs.strategy.text


def test_without_a_cluster_there_is_nothing_to_choose() -> None:
    assert chosen(SYNCHRONOUS + "ef21", names="a").costs.strategy.text == SYNCHRONOUS + "ef21"


def test_other_compressors_stay_as_they_are() -> None:
    fleet = profiles.profile({name: profiles.device(profiles.step(0.5)) for name in "ab"})
    request = RecommendRequest(TIME, steps=1000, strategy=Strategy.from_text(SYNCHRONOUS + "float16"))
    assert (
        recommend_compressed(fleet, request).ranking.score.tolist() == recommend(fleet, request).ranking.score.tolist()
    )
