"""Strategies by name: presets, overrides, and what is refused and why."""

import pytest

from backends.strategies.presets import FITS, PARTS, PRESETS, TOPOLOGIES, Strategy, checked, strategy


def refusal(text):
    """Why a strategy is refused."""
    with pytest.raises(ValueError) as refused:
        strategy(text)
    return str(refused.value)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_goes_together_and_has_known_parts(name):
    chosen = strategy(name)
    assert chosen == checked(chosen) == PRESETS[name]
    for part, value in chosen._asdict().items():
        assert value in PARTS[part]


def test_every_method_of_the_papers_has_a_preset():
    assert set(PRESETS) >= {
        "parameter-server",
        "layer-drop",
        "baseline",
        "dlion",
        "ako",
        "gaia",
        "hop",
        "allreduce",
        "sgp",
        "crossover",
        "crossover-hierarchical",
    }


def test_every_topology_has_a_preset():
    assert set(TOPOLOGIES) == {preset.topology for preset in PRESETS.values()}


@pytest.mark.parametrize(("part", "name"), FITS)
def test_fits_are_of_known_names_and_exclude_some(part, name):
    assert name in PARTS[part]
    for other, (fitting, _) in FITS[part, name].items():
        assert fitting
        assert set(fitting) < set(PARTS[other])


def test_parts_are_the_fields_of_a_strategy():
    assert tuple(PARTS) == Strategy._fields


def test_the_parameter_server_does_what_it_does_today():
    assert strategy("parameter-server") == Strategy(
        sender="everything",
        topology="server",
        gate="asynchronous",
        batching="fixed",
        merge="mean",
        knowledge="none",
        optimiser="sgd",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dlion:sender=top-k,knowledge=none", PRESETS["dlion"]._replace(sender="top-k", knowledge="none")),
        ("sgp:optimiser=lars", PRESETS["sgp"]._replace(optimiser="lars")),
        ("allreduce:sender=float16", PRESETS["allreduce"]._replace(sender="float16")),
        (
            "parameter-server:batching=dynamic,merge=weighted,optimiser=lars",
            Strategy("everything", "server", "asynchronous", "dynamic", "weighted", "none", "lars"),
        ),
        ("dlion:sender=max-n:n=5", PRESETS["dlion"]._replace(sender="max-n:n=5")),
        (
            "scadles:sender=adaptive:of=top-k,share=0.1,gate=bounded:staleness=3,optimiser=lars",
            Strategy("adaptive:of=top-k,share=0.1", "all", "bounded:staleness=3", "stream", "rates", "none", "lars"),
        ),
        (
            "crossover-hierarchical:topology=groups:count=3,between=ring,merge=mean",
            Strategy("everything", "groups:count=3,between=ring", "synchronous"),
        ),
    ],
)
def test_parts_and_their_options_override_those_of_the_preset(text, expected):
    assert strategy(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dlon", "unknown strategy 'dlon'; known: parameter-server, layer-drop, baseline, dlion"),
        ("", "unknown strategy ''; known: parameter-server"),
        ("dlion:speed=3", "strategy dlion: 'speed=3' is not part=value with a part of sender, topology, gate"),
        ("dlion:asynchronous", "'asynchronous' is not part=value"),
        ("dlion:", "'' is not part=value"),
        ("dlion:gate", "'gate' is not part=value"),
        ("dlion:gate=bounded,", "'' is not part=value"),
        ("dlion:gate=bounded,staleness=3", "'staleness=3' is not part=value"),
        ("dlion:gate=", "unknown gate ''; known: synchronous, asynchronous, bounded, backup"),
        ("dlion:gate=sometimes", "unknown gate 'sometimes'; known: synchronous, asynchronous, bounded, backup"),
        ("dlion:merge=weighted:more=1", "unknown merge 'weighted:more=1'; known: mean, weighted, samples, rates"),
        ("dlion:gate=bounded,gate=backup", "strategy dlion: gate is given twice"),
        ("crossover:topology=groups:between=star", "unknown topology 'star'; known: server, all, ring"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_known_names(text, message):
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer-drop:topology=ring", "topology ring does not go with sender layer-drop, because chunks are summed"),
        ("allreduce:sender=top-k:share=0.1", "topology ring does not go with sender top-k, because chunks are summed"),
        ("allreduce:gate=asynchronous", "topology ring does not go with gate asynchronous, because nobody has the sum"),
        ("allreduce:knowledge=best-to-all", "because all workers have the same weights; it goes with none"),
        ("sgp:topology=random", "topology random does not go with merge push-sum"),
        ("baseline:merge=push-sum", "topology all does not go with merge push-sum, because gradients travel"),
        ("crossover:topology=exponential", "merge average, because weights travel one way"),
        ("sgp:sender=float16", "because what is rounded or left out would be lost to the sums"),
        ("sgp:gate=backup", "a share that is not waited for must still be taken in"),
        ("crossover:sender=max-n", "what is left out of them would count as zero; it goes with everything, float16"),
        ("crossover:gate=asynchronous", "merge average does not go with gate asynchronous, because every step draws"),
        ("ad-psgd:gate=bounded:staleness=2", "merge pairwise does not go with gate bounded, because two average"),
        ("crossover-hierarchical:sender=gaia", "leaders pass on sums and weights"),
        (
            "crossover-hierarchical:topology=groups:between=exponential,merge=push-sum,sender=float16",
            "lost to the sums that push-sum conserves",
        ),
        ("crossover-hierarchical:merge=mean", "topology random does not go with merge mean"),
        ("crossover-hierarchical:topology=groups:between=ring", "topology ring does not go with merge average"),
        ("parameter-server:merge=average", "topology server does not go with merge average, because gradients travel"),
        ("parameter-server:merge=rates", "merge rates does not go with batching fixed, because workers are weighed"),
        ("gaia:optimiser=lars", "how far a weight moves, which LARS settles later; it goes with everything, float16"),
        ("crossover-hierarchical:merge=weighted", "a leader has the mean of its group, whatever their batches"),
        ("baseline:topology=groups:between=server", "leaders have no server"),
        ("parameter-server:knowledge=best-to-worst", "every worker takes the server's weights"),
        ("baseline:merge=rates", "merge rates does not go with batching fixed, because workers are weighed"),
    ],
)
def test_what_makes_no_sense_is_refused_and_says_why(text, message):
    assert message in refusal(text)
