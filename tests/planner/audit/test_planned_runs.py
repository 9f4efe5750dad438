"""Which runs an audit makes, of a fleet of three."""

import itertools

import pytest

from planner.audit.planned_runs import audit_images, audited_ranks, long_run, planned_runs, ranking, run_duration_s
from planner.audit.settings import Settings, audited_values
from planner.errors import AuditError
from planner.plan.request import parse_strategy
from planner.profile.file import Profile
from planner.train.training_data import load_dataset
from profilers.records.json_values import SCHEMA
from tests.planner.plans import plan, planned
from tests.planner.profiles import device, profile, step
from tests.running import FASHION

THREE = profile({"slow": device(step(0.4)), "fast": device(step(0.1)), "middle": device(step(0.2))})


def requested(held: Profile = THREE, servers: str = "fastest", repetitions: int = 1, seed: int = 0) -> Settings:
    audited = audited_values(held, (), None, None, 1000)
    return Settings(SCHEMA, "lab", "fleet.toml", *audited, 10.0, repetitions, seed, servers)


def test_the_papers_seven_configurations_of_three_devices_have_their_servers_on_the_fastest() -> None:
    ranked = ranking(requested(), THREE, "net")
    found = {
        (row.server, frozenset(row.workers)) for p in audited_ranks(ranked, "fastest") for row in [ranked.row(p).config]
    }
    assert found == {
        ("slow", frozenset({"slow"})), ("fast", frozenset({"fast"})), ("middle", frozenset({"middle"})),
        ("fast", frozenset({"fast", "slow"})), ("fast", frozenset({"fast", "middle"})),
        ("middle", frozenset({"middle", "slow"})), ("fast", frozenset({"fast", "middle", "slow"})),
    }  # fmt: skip


def test_with_every_server_there_are_twelve() -> None:
    assert len(audited_ranks(ranking(requested(), THREE, "net"), "every")) == 12


def test_members_that_exchange_among_themselves_have_no_server_and_are_one_configuration() -> None:
    settings = requested()._replace(engine="torch:hook=bf16")
    ranked = ranking(settings, THREE, "net")
    for servers in ("fastest", "every"):
        places = audited_ranks(ranked, servers)
        assert len({frozenset(ranked.row(place).config.workers) for place in places}) == len(places) == 7
    engines = {run.plan.engine for run in planned_runs(settings, THREE) if len(run.config.workers) > 1}
    assert engines == {"torch:hook=bf16"}


def test_each_repetition_has_all_of_them_in_an_order_that_the_seed_decides() -> None:
    def names(seed: int) -> list[str]:
        return [run.name for run in planned_runs(requested(repetitions=2, seed=seed), THREE)]

    first, second = names(0)[:7], names(0)[7:]
    assert sorted(first) == sorted(name.replace("repetition 2", "repetition 1") for name in second)
    assert names(0) == names(0) != names(1)


def test_rates_that_are_drawn_are_those_of_the_seed_with_which_runs_are_made() -> None:
    rates = [
        ranking(requested(seed=seed)._replace(strategy="scadles"), THREE, "net").costs.rates_seed for seed in (0, 3)
    ]
    assert rates == [0, 3]


def test_runs_of_one_model_follow_one_another() -> None:
    """What is compared runs in the same minutes."""
    models = ("net", "tiny", "vast")
    steps = [tuple(step(0.1 * (at + 1), model=model) for model in models) for at in range(3)]
    held = profile({name: device()._replace(steps=each) for name, each in zip("abc", steps, strict=True)})
    orders = set()
    for seed in range(5):
        made = [run.model for run in planned_runs(requested(held, repetitions=2, seed=seed), held)]
        blocks = [name for name, _ in itertools.groupby(made[:21])]
        assert sorted(blocks) == sorted(models) == sorted(set(made[21:]))
        orders.add(tuple(blocks))
    assert len(orders) > 1


def test_a_sample_is_the_same_for_the_same_seed_and_whole_where_it_exceeds_what_there_is() -> None:
    def names(sample: int, seed: int = 0) -> set[str]:
        sampled = requested(servers="every", seed=seed)._replace(sample=sample)
        return {run.name for run in planned_runs(sampled, THREE)}

    assert len(names(5)) == 5 and names(5) == names(5) != names(5, seed=1)
    assert len(names(99)) == 12


def test_a_sample_does_not_depend_on_what_is_predicted() -> None:
    """So that an audit that was stopped goes on with a later version of the program."""
    slower = profile({"slow": device(step(4.0)), "fast": device(step(0.1)), "middle": device(step(0.101))})
    drawn = [{run.config for run in planned_runs(requested()._replace(sample=3), held)} for held in (THREE, slower)]
    assert drawn[0] == drawn[1]


def test_the_long_run_is_a_longer_one_of_a_short_run() -> None:
    runs = list(planned_runs(requested(), THREE))
    longer = long_run(runs, 10.0)
    (same,) = (run for run in runs if run.config == longer.config)
    assert len(longer.config.workers) == 3 and longer.seconds > same.seconds + 15


def test_a_run_lasts_until_the_slowest_worker_that_counts_has_made_enough_steps() -> None:
    fast, slow = planned("a")._replace(cycle_s=0.1), planned("b")._replace(cycle_s=4.0)
    assert run_duration_s(plan(fast), 10.0) < 20
    assert run_duration_s(plan(fast, slow), 10.0) > 5 * 4.0
    hopeless = planned("b")._replace(cycle_s=400.0)  # one step in 4,000: its absence changes nothing
    assert run_duration_s(plan(fast, hopeless), 10.0) < 20


@pytest.mark.parametrize("local", ["time:seconds=7", "steps:every=70"])
def test_a_run_of_rounds_lasts_for_several_of_them(local: str) -> None:
    """Workers report whole rounds only."""
    workers = [planned(name)._replace(cycle_s=0.1) for name in "ab"]
    rounds = plan(*workers)._replace(strategy=parse_strategy(f"local-sgd:local={local}"))
    assert run_duration_s(rounds, 10.0) > 4 * 7.0
    assert run_duration_s(plan(*workers), 10.0) < 20 < 40 < run_duration_s(rounds, 40.0)
    alone = plan(workers[0])._replace(strategy=parse_strategy(f"local-sgd:local={local}"))
    assert run_duration_s(alone, 10.0) < 20  # one device makes no rounds


def test_the_images_are_of_the_models_own_shape_or_the_data_sets() -> None:
    own = audit_images(requested()._replace(models=("cifar10",)), "cifar10")
    assert own.train_images.shape[1:] == (32, 32, 3) and own.classes == 10
    given = audit_images(requested()._replace(input_shape=(28, 28, 1), classes=7), "cipher")
    assert given.train_images.shape[1:] == (28, 28, 1) and given.classes == 7


def test_a_models_file_does_not_say_what_images_it_takes() -> None:
    with pytest.raises(AuditError, match=r"mine.py:net: the shape of its images is not known here; .*--data"):
        audit_images(requested(), "mine.py:net")


def test_images_of_a_data_set_are_spread_over_all_of_it() -> None:
    whole = load_dataset(str(FASHION))
    found = audit_images(requested()._replace(data=str(FASHION)), "cipher")
    assert len(found.train_labels) == len(found.train_images) == min(512, len(whole.train_labels))
    assert len(found.test_labels) == 8
    assert (found.train_images[0] == whole.train_images[0]).all()
    assert (found.train_images[-1] == whole.train_images[-1]).all()
