"""The papers' claims beside what was measured."""

from benchmarks.racing.claims import HOLDS, OPEN, REFUTED, claims
from benchmarks.racing.figures import entries
from benchmarks.racing.records import Finished

from .made import TRAFFIC, run


def _verdicts(*runs: Finished) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in claims(entries(runs))}


DENSE = "parameter-server:gate=synchronous"


def test_layer_dropping_is_held_against_the_same_server_with_everything_sent() -> None:
    runs = run(DENSE, steps=100, exchange_s=1.0), run("layer-drop", steps=1000, exchange_s=0.04)
    assert _verdicts(*runs) == {
        "layer-drop: communication of a step at least 95 % less": HOLDS,
        "layer-drop: whole step at least 82 % less": HOLDS,
    }
    runs = run(DENSE, steps=100, exchange_s=1.0), run("layer-drop", steps=500, exchange_s=0.06)
    assert set(_verdicts(*runs).values()) == {REFUTED}


def test_dlion_is_held_against_each_system_of_its_paper_that_ran() -> None:
    found = _verdicts(run("dlion", target_s=8.0), run("baseline", target_s=9.0), run("ako", target_s=7.0))
    assert found == {
        "dlion reaches the target before baseline": HOLDS,
        "dlion reaches the target before ako": REFUTED,
    }


def test_whoever_alone_reached_the_target_was_first() -> None:
    found = _verdicts(run("dlion", target_s=8.0), run("hop", target_s=None))
    assert found == {"dlion reaches the target before hop": HOLDS}
    found = _verdicts(run("dlion", target_s=None), run("hop", target_s=8.0))
    assert found == {"dlion reaches the target before hop": REFUTED}


def test_what_neither_or_not_every_seed_reached_stays_open() -> None:
    assert _verdicts(run("dlion", target_s=None), run("hop", target_s=None)) == {
        "dlion reaches the target before hop": OPEN
    }
    some = run("dlion", 0, target_s=8.0), run("dlion", 1, target_s=None), run("hop", target_s=9.0)
    assert _verdicts(*some) == {"dlion reaches the target before hop": OPEN}


def test_dynamic_batching_has_to_save_a_fifth_and_the_weighted_update_a_tenth() -> None:
    without, unweighted = "dlion:batching=fixed,merge=mean", "dlion:merge=mean"
    runs = run(without, target_s=10.0), run(unweighted, target_s=7.7), run("dlion", target_s=7.0)
    assert _verdicts(*runs) == {
        "dynamic batching takes 22 to 37 % less time": HOLDS,
        "the weighted update takes 12 to 13 % less again": REFUTED,
    }


def test_crossover_is_held_against_all_reduce_and_sgp() -> None:
    runs = (
        run("crossover", steps=150, target_s=7.0, accuracy=0.81),
        run("allreduce", steps=100, target_s=10.0, accuracy=0.8),
        run("sgp", accuracy=0.82),
        run("crossover-hierarchical", accuracy=0.78),
    )
    assert _verdicts(*runs) == {
        "crossover makes at least 40 % more steps a second than all-reduce": HOLDS,
        "crossover reaches the target at least 40 % sooner than all-reduce": HOLDS,
        "crossover ends with more accuracy than sgp": REFUTED,
        "crossover-hierarchical ends with all-reduce's accuracy": HOLDS,
    }


def test_dense_strategies_are_to_fill_their_busiest_link() -> None:
    found = _verdicts(run("baseline", traffic=TRAFFIC._replace(line_share=0.89)))
    assert found["baseline keeps its busiest link at 90 % of its rate"] == REFUTED


def test_cards_that_sent_more_than_the_program_counts_are_told() -> None:
    found = _verdicts(run("ako", traffic=TRAFFIC), run("gaia", traffic=TRAFFIC._replace(sent_bytes=1100)))
    assert found == {
        "ako: cards sent what the program counts, within 7 %": HOLDS,
        "gaia: cards sent what the program counts, within 7 %": REFUTED,
    }


def test_environments_are_not_mixed() -> None:
    assert _verdicts(run("dlion"), run("hop", environment="there")) == {}
