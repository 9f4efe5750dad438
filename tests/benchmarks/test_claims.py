"""The papers' claims beside what was measured."""

from benchmarks.racing.claims import CONSISTENT, NOT_REPRODUCED, OPEN, claims
from benchmarks.racing.figures import entries
from benchmarks.racing.records import Finished, Point

from .made import TRAFFIC, run


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


def test_so_are_its_variants_but_those_that_leave_out_a_part() -> None:
    found = _verdicts(
        run("dlion:sync=asynchronous", target_s=8.0), run("dlion:aggregation=mean"), run("ako", target_s=9.0)
    )
    assert found == {"dlion:sync=asynchronous reaches the target before ako": CONSISTENT}


def test_whoever_alone_reached_the_target_was_first() -> None:
    found = _verdicts(run("dlion", target_s=8.0), run("hop", target_s=None))
    assert found == {"dlion reaches the target before hop": CONSISTENT}
    found = _verdicts(run("dlion", target_s=None), run("hop", target_s=8.0))
    assert found == {"dlion reaches the target before hop": NOT_REPRODUCED}


def test_what_neither_or_not_every_seed_reached_stays_open() -> None:
    assert _verdicts(run("dlion", target_s=None), run("hop", target_s=None)) == {
        "dlion reaches the target before hop": OPEN
    }
    each_once = run("dlion", 0), run("dlion", 1, target_s=None), run("hop", 0, target_s=None), run("hop", 1)
    assert _verdicts(*each_once) == {"dlion reaches the target before hop": OPEN}
    assert _verdicts(run("dlion", 0), run("hop", 1)) == {"dlion reaches the target before hop": OPEN}


def test_who_did_not_get_there_in_the_time_of_a_run_takes_longer_than_that() -> None:
    """At least 20 s against 10 s, and 15 s against 10 s: a mean ratio of at least 1.73."""
    runs = [run("crossover", 0), run("crossover", 1), run("allreduce", 0, target_s=None)]
    sooner = "crossover reaches the target at least 40 % sooner than all-reduce"
    assert _verdicts(*runs, run("allreduce", 1, target_s=15.0))[sooner] == CONSISTENT
    assert _verdicts(*runs, run("allreduce", 1, target_s=9.0))[sooner] == OPEN  # 1.34 times, or more
    assert _verdicts(run("crossover", target_s=None), run("allreduce", target_s=25.0))[sooner] == NOT_REPRODUCED


def test_dynamic_batching_has_to_save_a_fifth_and_the_weighted_update_a_tenth() -> None:
    without, unweighted = "dlion:batching=fixed,aggregation=mean", "dlion:aggregation=mean"
    runs = run(without, target_s=10.0), run(unweighted, target_s=7.7), run("dlion", target_s=7.0)
    assert _verdicts(*runs) == {
        "dynamic batching takes 22 to 37 % less time": CONSISTENT,
        "the weighted update takes 12 to 13 % less again": NOT_REPRODUCED,
    }


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


def test_accuracy_is_compared_within_its_interval() -> None:
    def ends(*pairs: tuple[float, float]) -> str:
        runs = [
            run(name, seed, accuracy=each)
            for seed, pair in enumerate(pairs)
            for name, each in zip(("crossover", "sgp"), pair, strict=True)
        ]
        return _verdicts(*runs)["crossover ends with more accuracy than sgp"]

    assert ends((0.8, 0.7), (0.81, 0.7), (0.82, 0.7)) == CONSISTENT
    assert ends((0.7, 0.8), (0.7, 0.81), (0.7, 0.82)) == NOT_REPRODUCED
    assert ends((0.8, 0.7), (0.7, 0.8), (0.75, 0.75)) == OPEN


def test_the_hierarchical_form_is_held_against_all_reduce_after_as_many_steps() -> None:
    """It makes fewer of them in the time where all links are slow."""
    few, many = ([Point(each, 10 * each, 0.1 * each, "a") for each in range(1, most)] for most in (4, 9))
    (told,) = (
        claim
        for claim in claims(entries([run("crossover-hierarchical", curve=few), run("allreduce", curve=many)]))
        if "hierarchical" in claim.claim
    )
    assert (told.measured, told.verdict) == ("+0.0 points", CONSISTENT)


def test_dense_strategies_are_to_fill_their_busiest_link() -> None:
    found = _verdicts(run("baseline", traffic=TRAFFIC._replace(line_share=0.89)))
    assert found["baseline keeps its busiest link at 90 % of its rate"] == NOT_REPRODUCED


def test_cards_that_sent_more_than_the_program_counts_are_told() -> None:
    found = _verdicts(run("ako", traffic=TRAFFIC), run("gaia", traffic=TRAFFIC._replace(sent_bytes=1100)))
    assert found == {
        "ako: cards sent what the program counts, within 7 %": CONSISTENT,
        "gaia: cards sent what the program counts, within 7 %": NOT_REPRODUCED,
    }


def test_environments_are_not_mixed() -> None:
    assert _verdicts(run("dlion"), run("hop", environment="there")) == {}
