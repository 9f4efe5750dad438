"""Phases of a loaded run are compared, and memory is judged from its first minute on."""

import pytest

from benchmarks.load import Look, Phase, most_change, verdict


def phases(beside: int, growth: int = 0, until_s: int = 240) -> list[Phase]:
    """100 steps a second without strangers, ``beside`` with. growth: of the server, bytes/s."""
    made, done = [], 0
    for number in range(4):
        rate, first_s = beside if number % 2 == 0 else 100, 60 * number
        looks = [
            Look(t_s, done + rate * (t_s - first_s), {"operator": 1000, "server": 1000 + growth * min(t_s, until_s)})
            for t_s in range(first_s, first_s + 61, 20)
        ]
        made.append(Phase(number % 2 == 0, looks, (700, 4096) if number % 2 == 0 else (0, 0)))
        done = looks[-1].done
    return made


def test_what_came_is_summed_and_rates_are_compared() -> None:
    told = verdict(phases(beside=95), 60.0)
    assert (told["silent"], told["refused"], told["steps/s"]) == (1400, 8192, "0.950 of alone")
    assert told["verdict"] == "flat, as fast"
    assert verdict(phases(beside=85), 60.0)["verdict"] == "flat, slower"


def test_memory_counts_when_the_run_is_warm() -> None:
    assert verdict(phases(95, growth=5, until_s=40), 40.0)["verdict"] == "flat, as fast"
    told = verdict(phases(95, growth=5), 60.0)
    assert told["verdict"] == "grows, as fast" and told["operator, MiB"] == "+0.0%"
    assert told["server, MiB"] == "+41.4%"  # medians of 90 s and 210 s, both without strangers


@pytest.mark.parametrize(("values", "change"), [((100, 104, 98), 0.04), ((100, 96, 110, 80), -0.2), ((7,), 0.0)])
def test_the_largest_change_counts_either_way(values: tuple[int, ...], change: float) -> None:
    assert most_change(values) == pytest.approx(change)
