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
