"""A strategy is parsed once: names, parts, options and aliases."""

import re

import pytest

from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.optimizer_spec import OptimizerSpec
from backends.strategies.presets import PRESETS
from backends.strategies.strategy import PARAMETER_SERVER, Strategy, parts_of
from backends.strategies.synchronisation import SYNC_POLICIES, SyncPolicy
from backends.strategies.topologies.registry import TopologySpec


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_parsed_into_its_parts(name):
    found, parts = Strategy.from_text(name), PRESETS[name]
    assert found.text == name
    assert (found.compressor.name, found.topology.name, found.sync) == (
        parts.compressor,
        parts.topology,
        SYNC_POLICIES[parts.sync],
    )
    assert found[3:6] == parts[3:6]
    assert found.optimizer == OptimizerSpec(parts.optimizer)


def test_parts_that_are_given_take_the_place_of_the_presets():
    found = Strategy.from_text("dlion:compressor=top-k:share=0.1,sync=bounded:staleness=3,knowledge=none")
    assert found.compressor == CompressorSpec("top-k", (("share", 0.1),))
    assert found.sync == SyncPolicy(staleness=3, backups=float("inf"))
    assert (found.topology.name, found.batching, found.aggregation, found.knowledge) == (
        "all",
        "dynamic",
        "weighted",
        "none",
    )


def test_options_of_options_belong_to_the_part_before_them():
    found = Strategy.from_text("scadles:compressor=adaptive:of=max-n,n=80,delta=0.1,optimizer=lars")
    assert found.compressor == CompressorSpec("adaptive", (("delta", 0.1),), CompressorSpec("max-n", (("n", 80.0),)))
    assert found.optimizer == OptimizerSpec("lars")
    groups = Strategy.from_text("crossover-hierarchical:topology=groups:count=3,between=ring,aggregation=mean")
    assert groups.topology == TopologySpec("groups", (("count", 3), ("between", TopologySpec("ring"))))
    assert groups.topology.between.name == "ring"


def test_an_alias_may_be_changed_like_a_preset():
    found = Strategy.from_text("sync-ps:compressor=float16")
    assert found.same_as(Strategy.from_text("parameter-server:sync=synchronous,compressor=float16"))
    assert parts_of("sync-ps:sync=bounded") == PRESETS["parameter-server"]._replace(sync="bounded")


def test_strategies_are_alike_by_their_parts():
    assert PARAMETER_SERVER.same_as(Strategy.from_text("parameter-server:sync=asynchronous"))
    assert not PARAMETER_SERVER.same_as(Strategy.from_text("parameter-server:sync=bounded"))


@pytest.mark.parametrize(
    ("text", "workers", "stops"),
    [("baseline", 4, True), ("hop", 4, True), ("ako", 4, False), ("ako", 1, True), ("parameter-server", 2, False)],
)
def test_an_evaluation_stops_all_who_wait_for_one_another(text, workers, stops):
    assert Strategy.from_text(text).evaluation_stops_all(workers) == stops


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dlon", "unknown strategy 'dlon'; did you mean dlion? known: parameter-server, layer-drop, baseline, dlion"),
        ("", "unknown strategy ''; known: parameter-server"),
        ("dlion:speed=3", "'speed=3' is not key=value with a key of compressor, topology, sync, batching, aggregation"),
        ("dlion:sync=bounded,staleness=3", "'staleness=3' is not key=value"),
        ("dlion:sync=bounded,sync=backup", "sync is given twice"),
        ("dlion:sync=sometimes", "unknown sync 'sometimes'; known: synchronous, asynchronous, bounded, backup"),
        ("dlion:aggregation=weighted:more=1", "unknown aggregation 'weighted:more=1'; did you mean weighted?"),
        ("dlion:compressor=top-k:share=2", "share above 0 and at most 1, not 2.0"),
        ("crossover:topology=groups:between=star", "unknown topology 'star'; known: server, all, ring"),
        ("crossover:topology=random:size=2", "random:size=2: 'size=2' is not key=value with a key of segments"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_can(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Strategy.from_text(text)
