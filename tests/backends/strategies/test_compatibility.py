"""Parts that do not go together are refused, and the reason is said."""

import re

import pytest

from backends.peers.exchanges.registry import AGGREGATIONS
from backends.strategies.compatibility import FITS, PARTS
from backends.strategies.message import WHOLE
from backends.strategies.presets import Parts
from backends.strategies.strategy import Strategy
from backends.training.batch_size import BATCH_POLICIES


def test_parts_are_those_of_a_strategy():
    assert tuple(PARTS) == Parts._fields


def test_what_is_named_is_implemented():
    assert set(PARTS["batching"]) == set(BATCH_POLICIES)
    assert set(PARTS["aggregation"]) == set(AGGREGATIONS)


@pytest.mark.parametrize("topology", ["ring", "random", "groups"])
def test_topologies_that_need_whole_messages_take_the_compressors_that_send_them(topology):
    fitting, _ = FITS["topology", topology]["compressor"]
    assert set(fitting) == set(WHOLE)


@pytest.mark.parametrize(("part", "name"), FITS)
def test_fits_are_of_known_names_and_exclude_some(part, name):
    assert name in PARTS[part]
    for other, (fitting, _) in FITS[part, name].items():
        assert fitting
        assert set(fitting) < set(PARTS[other])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer-drop:optimizer=adam", "optimizer adam excludes compressor layer-drop, because what a compressor holds"),
        ("dlion:optimizer=adamw", "optimizer adamw excludes compressor max-n"),
        ("gaia:optimizer=adam", "optimizer adam excludes compressor gaia"),
        ("ako:optimizer=adam", "optimizer adam excludes compressor ako"),
        ("scadles:optimizer=adam", "optimizer adam excludes compressor adaptive"),
        ("parameter-server:compressor=top-k,optimizer=adam", "possible with it: dense, float16"),
        ("hop:optimizer=adam", "optimizer adam excludes sync backup with topology all, because replicas that add"),
        (
            "baseline:sync=asynchronous,optimizer=adamw",
            "drift apart; possible with it: synchronous",
        ),
        ("baseline:compressor=float16,optimizer=adam", "adds its own gradient unrounded"),
        (
            "diloco:local=time:seconds=2,reset=yes,optimizer=own",
            "local time:seconds=2,reset=yes excludes optimizer own: only the job's code can reset that",
        ),
        ("layer-drop:topology=ring", "topology ring excludes compressor layer-drop, because chunks are summed"),
        ("allreduce:compressor=top-k:share=0.1", "topology ring excludes compressor top-k"),
        ("allreduce:sync=asynchronous", "topology ring excludes sync asynchronous, because the sum is known"),
        ("allreduce:knowledge=best-to-all", "because all workers have the same weights; possible with it: none"),
        ("baseline:aggregation=push-sum", "topology all excludes aggregation push-sum, because gradients"),
        ("crossover:topology=exponential", "aggregation average, because weights travel one way"),
        ("sgp:compressor=float16", "because push-sum conserves sums"),
        ("sgp:sync=backup", "push-sum must add every share that was sent"),
        (
            "crossover:compressor=max-n",
            "what is left out of them would count as zero; possible with it: dense, float16",
        ),
        ("crossover:sync=asynchronous", "aggregation average excludes sync asynchronous, because every step"),
        ("ad-psgd:sync=bounded:staleness=2", "aggregation pairwise excludes sync bounded, because two workers average"),
        ("crossover-hierarchical:compressor=gaia", "leaders send sums and weights"),
        (
            "crossover-hierarchical:topology=groups:between=exponential,aggregation=push-sum,compressor=float16",
            "push-sum conserves sums",
        ),
        ("crossover-hierarchical:topology=groups:between=ring", "topology ring excludes aggregation average"),
        ("parameter-server:aggregation=average", "topology server excludes aggregation average"),
        ("parameter-server:aggregation=rates", "aggregation rates excludes batching fixed, because workers are"),
        (
            "gaia:optimizer=lars",
            "Gaia sends by how far weights move, which LARS scales only afterwards; possible with it: dense, float16",
        ),
        ("crossover-hierarchical:aggregation=weighted", "a leader takes the mean of its group, whatever the batches"),
        ("baseline:topology=groups:between=server", "leaders have no server"),
        ("parameter-server:knowledge=best-to-worst", "every worker takes the server's weights"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Strategy.from_text(text)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
@pytest.mark.parametrize(
    "text",
    [
        "parameter-server", "parameter-server:sync=synchronous", "parameter-server:sync=backup",
        "parameter-server:compressor=float16", "baseline", "allreduce", "allreduce:compressor=float16",
        "sgp", "sgp:sync=bounded", "crossover", "crossover-hierarchical", "ad-psgd",
        "baseline:batching=stream,aggregation=rates", "baseline:batching=dynamic,aggregation=samples",
    ],
)  # fmt: skip
def test_adam_goes_with_whole_gradients_where_all_stay_equal_or_weights_are_averaged(text, kind):
    assert Strategy.from_text(text).with_optimizer(kind).optimizer.name == kind
