"""Which runs an audit makes, and that it makes only those that are missing: on local devices, for real."""

import json
from pathlib import Path

import pytest

from planner.audit.folder import AuditFolder
from planner.audit.runner import jobs_of, noise, places, recommended, short
from planner.audit.settings import Settings, settings
from planner.errors import AuditError
from planner.profilefile import Profile
from tests.planner.plans import plan, planned
from tests.planner.profiles import device, profile, step
from tests.running import run

THREE = profile({"slow": device(step(0.4)), "fast": device(step(0.1)), "middle": device(step(0.2))})


def asked(held: Profile = THREE, servers: str = "fastest", repetitions: int = 1, seed: int = 0) -> Settings:
    return settings(held, "lab", "fleet.toml", (), None, None, 1000, 10.0, repetitions, seed, servers)


def test_the_papers_seven_configurations_of_three_devices_have_their_servers_on_the_fastest() -> None:
    ranked = recommended(asked(), THREE, "net")
    found = {(row.server, frozenset(row.workers)) for p in places(ranked, "fastest") for row in [ranked.row(p).config]}
    assert found == {
        ("slow", frozenset({"slow"})), ("fast", frozenset({"fast"})), ("middle", frozenset({"middle"})),
        ("fast", frozenset({"fast", "slow"})), ("fast", frozenset({"fast", "middle"})),
        ("middle", frozenset({"middle", "slow"})), ("fast", frozenset({"fast", "middle", "slow"})),
    }  # fmt: skip


def test_with_every_server_there_are_twelve() -> None:
    assert len(places(recommended(asked(), THREE, "net"), "every")) == 12


def test_each_repetition_has_all_of_them_in_an_order_that_the_seed_decides(tmp_path: Path) -> None:
    def names(seed: int) -> list[str]:
        return [job.name for job in jobs_of(asked(repetitions=2, seed=seed), THREE, AuditFolder(tmp_path))]

    first, second = names(0)[:7], names(0)[7:]
    assert sorted(first) == sorted(name.replace("repetition 2", "repetition 1") for name in second)
    assert names(0) == names(0) != names(1)


def test_a_sample_is_the_same_for_the_same_seed_and_whole_where_it_exceeds_what_there_is(tmp_path: Path) -> None:
    def names(sample: int, seed: int = 0) -> set[str]:
        wanted = asked(servers="every", seed=seed)._replace(sample=sample)
        return {job.name for job in jobs_of(wanted, THREE, AuditFolder(tmp_path))}

    assert len(names(5)) == 5 and names(5) == names(5) != names(5, seed=1)
    assert len(names(99)) == 12


def test_no_two_runs_share_a_folder(tmp_path: Path) -> None:
    jobs = list(jobs_of(asked(servers="every", repetitions=2), THREE, AuditFolder(tmp_path)))
    assert len({job.folder.path for job in jobs}) == len(jobs) == 24


def test_a_run_lasts_until_the_slowest_worker_that_counts_has_made_enough_steps() -> None:
    fast, slow = planned("a")._replace(cycle_s=0.1), planned("b")._replace(cycle_s=4.0)
    assert short(plan(fast), 10.0).prediction.time_s < 20
    assert short(plan(fast, slow), 10.0).prediction.time_s > 5 * 4.0
    hopeless = planned("b")._replace(cycle_s=400.0)  # one step in 4,000: its absence changes nothing
    assert short(plan(fast, hopeless), 10.0).prediction.time_s < 20


def test_the_images_are_of_the_models_own_shape_or_the_data_sets() -> None:
    own = noise(asked()._replace(models=("cifar10",)), "cifar10")
    assert own.train_images.shape[1:] == (32, 32, 3) and own.classes == 10
    given = noise(asked()._replace(input_shape=(28, 28, 1), classes=7), "cipher")
    assert given.train_images.shape[1:] == (28, 28, 1) and given.classes == 7


def test_a_models_file_does_not_say_what_images_it_takes() -> None:
    with pytest.raises(AuditError, match=r"mine.py:net: what images it takes is not known here; .*--data"):
        noise(asked(), "mine.py:net")


@pytest.mark.xdist_group("processes")
@pytest.mark.timeout(300)
def test_an_audit_that_was_stopped_goes_on_and_is_judged_again_offline(tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text(
        "".join(
            f'[devices.{name}]\naddress = "local"\nslowdown = {slowdown}\nidle_watts = 3\nmax_watts = {watts}\n'
            for name, slowdown, watts in (("tx2", 2, 15), ("tx1", 3, 10))
        )
    )
    made = run(tmp_path, "profile", "--model", "cipher", "--batch-size", "4", "--steps", "2000", "--json")
    assert made.popen.returncode == 0, made.errors
    command = ("audit", "--seconds", "5", "--json", "--plot", "plot.png")
    first = run(tmp_path, *command, timeout_s=150)
    assert first.popen.returncode == 0, first.errors
    results = sorted(tmp_path.glob("audit/runs/*/*/*/result.json"))
    assert len(results) == 3 and (tmp_path / "plot.png").stat().st_size > 1000
    assert not list(tmp_path.glob("audit/runs/*/*/*/checkpoint.npz"))
    results[0].unlink()
    kept = results[1].stat().st_mtime_ns
    again = run(tmp_path, *command, timeout_s=60)
    assert again.popen.returncode == 0, again.errors
    assert results[0].exists() and results[1].stat().st_mtime_ns == kept
    offline = run(tmp_path, "audit", "audit", "--json")
    assert json.loads(offline.output) == json.loads(again.output)

    refused = run(tmp_path, "audit", "--seconds", "6")
    assert refused.popen.returncode == 1 and "has seconds 5.0, not 6.0" in refused.errors
