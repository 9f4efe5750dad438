"""The caches of several devices are cleaned, whatever happens to one of them."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.agents.pool import AgentPool
from planner.clean import Caches
from planner.fleet.device import Device, Interpreter

DATA = "data-0123456789abcdef.npz"


@pytest.fixture
def pool() -> Iterator[AgentPool]:
    with AgentPool() as made:
        yield made


def device(name: str, home: Path) -> Device:
    """A device whose cache holds images."""
    cache = home / "planner"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / DATA).write_bytes(b"images")
    return Device(name=name, interpreter=Interpreter(sys.executable, environment={"XDG_CACHE_HOME": str(home)}))


def test_a_cache_that_devices_share_is_cleaned_once(pool: AgentPool, tmp_path: Path) -> None:
    caches = Caches(pool, [device("b", tmp_path / "own"), *(device(name, tmp_path / "shared") for name in "ca")])
    found = caches.find()
    assert [cache.devices for cache in found] == [("b",), ("c", "a")]
    assert [cache.folder for cache in found] == [f"{tmp_path}/own/planner", f"{tmp_path}/shared/planner"]
    assert [len(each.removed) for each in caches.remove(found)] == [1, 1]
    assert not any((tmp_path / name / "planner").exists() for name in ("own", "shared"))
    assert caches.errors == {}


def test_a_device_that_is_lost_holds_up_no_other(pool: AgentPool, tmp_path: Path) -> None:
    caches = Caches(pool, [device(name, tmp_path / name) for name in "ab"])
    found = caches.find()
    os.kill(pool.agents["a"].pid, signal.SIGKILL)
    (cleaned,) = caches.remove(found)
    assert (cleaned.cache.devices, [entry.name for entry in cleaned.removed]) == (("b",), [DATA])
    assert list(caches.errors) == ["a"] and str(caches.errors["a"]).startswith("a: ")
    assert (tmp_path / "a" / "planner" / DATA).exists()


def test_what_became_used_since_it_was_shown_is_kept_and_told(pool: AgentPool, tmp_path: Path) -> None:
    caches = Caches(pool, [device("a", tmp_path)])
    found = caches.find()
    pool.another("a").store(DATA, b"images")
    (cleaned,) = caches.remove(found)
    assert cleaned.removed == ()
    assert cleaned.problems == [f"a: {tmp_path}/planner/{DATA} is still there: a run under way uses it"]
