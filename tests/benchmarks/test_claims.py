"""The papers' claims beside what was measured."""

from benchmarks.racing.claims import CONSISTENT, NOT_REPRODUCED, OPEN, claims
from benchmarks.racing.figures import entries
from benchmarks.racing.records import Finished

from .made import run


def _verdicts(*runs: Finished) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in claims(entries(runs))}


DENSE = "parameter-server:sync=synchronous"


def test_layer_dropping_is_held_against_the_same_server_with_everything_sent() -> None:
    runs = run(DENSE, steps=100, exchange_s=1.0), run("layer-drop", steps=1000, exchange_s=0.04)
    assert _verdicts(*runs) == {
        "layer-drop: communication of a step at least 95 % less": CONSISTENT,
        "layer-drop: whole step at least 82 % less": CONSISTENT,
    }
    runs = run(DENSE, steps=100, exchange_s=1.0), run("layer-drop", steps=500, exchange_s=0.06)
    assert set(_verdicts(*runs).values()) == {NOT_REPRODUCED}


def test_dlion_is_held_against_each_system_of_its_paper_that_ran() -> None:
    found = _verdicts(run("dlion", target_s=8.0), run("baseline", target_s=9.0), run("ako", target_s=7.0))
    assert found == {
        "dlion reaches the target before baseline": CONSISTENT,
        "dlion reaches the target before ako": NOT_REPRODUCED,
    }


def test_who_did_not_get_there_in_the_time_of_a_run_takes_longer_than_that() -> None:
    """At least 20 s against 10 s, and 15 s against 10 s: a mean ratio of at least 1.73."""
    runs = [run("crossover", 0), run("crossover", 1), run("allreduce", 0, target_s=None)]
    sooner = "crossover reaches the target at least 40 % sooner than all-reduce"
    assert _verdicts(*runs, run("allreduce", 1, target_s=15.0))[sooner] == CONSISTENT
    assert _verdicts(*runs, run("allreduce", 1, target_s=9.0))[sooner] == OPEN  # 1.34 times, or more
    assert _verdicts(run("crossover", target_s=None), run("allreduce", target_s=25.0))[sooner] == NOT_REPRODUCED


def test_crossover_is_held_against_all_reduce_and_sgp() -> None:
    runs = (
        run("crossover", steps=150, target_s=7.0, accuracy=0.81),
        run("allreduce", steps=100, target_s=10.0, accuracy=0.8),
        run("sgp", accuracy=0.82),
    )
    assert _verdicts(*runs) == {
        "crossover makes at least 40 % more steps a second than all-reduce": CONSISTENT,
        "crossover reaches the target at least 40 % sooner than all-reduce": CONSISTENT,
        "crossover ends with more accuracy than sgp": NOT_REPRODUCED,
        "crossover has more accuracy than sgp after as many steps": OPEN,
    }
