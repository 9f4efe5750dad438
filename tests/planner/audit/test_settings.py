from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from planner.audit.settings import Settings, audited_strategy, audited_values
from planner.errors import AuditError, PlanError
from planner.plan.request import parse_strategy
from planner.profile.file import Profile
from profilers.records.json_values import SCHEMA
from tests.planner.profiles import device, profile, step

PROFILE = profile({"a": device(step(0.1)), "b": device(step(0.2))}, steps_planned=7_000)


def requested(held: Profile = PROFILE, models: tuple[str, ...] = (), **changes: Any) -> Settings:
    audited = audited_values(held, models, None, None, None)
    return Settings(SCHEMA, "lab", "fleet.toml", *audited, 15.0, 2, 0, "fastest")._replace(**changes)


def test_what_is_not_asked_for_is_as_profiled() -> None:
    found = requested()
    assert (found.models, found.framework, found.batch, found.steps) == (("net",), "torch", 32, 7_000)


def test_a_device_whose_memory_holds_a_part_of_the_batch_does_not_make_it_smaller() -> None:
    small = step(0.1)._replace(batch=16, requested_batch=32)
    assert requested(profile({"a": device(small), "b": device(step(0.2))})).batch == 32


def test_where_several_frameworks_were_profiled_each_device_has_its_own() -> None:
    mixed = profile({"a": device(step(0.1)), "b": device(step(0.2, framework="tensorflow"))})
    assert requested(mixed).framework is None


def test_an_unknown_model_is_named_with_those_there_are() -> None:
    with pytest.raises(PlanError, match="model: nett is not in the profile; profiled: net"):
        requested(models=("nett",))


def test_a_profile_without_models_is_no_use() -> None:
    with pytest.raises(AuditError, match="run `planner profile`"):
        requested(profile({"a": device(step(0.1))._replace(steps=())}))


def test_models_repetitions_and_seconds_may_be_added_to_an_audit() -> None:
    more = requested(repetitions=3, seconds=20.0).added_to(requested()._replace(models=("other",)))
    assert (more.models, more.repetitions, more.seconds) == (("other", "net"), 3, 20.0)


@given(some.integers(1, 9), some.integers(1, 9))
def test_an_audit_never_shrinks(before: int, after: int) -> None:
    assert requested(repetitions=after).added_to(requested(repetitions=before)).repetitions == max(before, after)


@pytest.mark.parametrize("change", [{"steps": 5}, {"seed": 1}, {"servers": "every"}, {"batch": 8}])
def test_an_audit_of_something_else_is_not_gone_on_with(change: dict[str, object]) -> None:
    (name,) = change
    with pytest.raises(AuditError, match=f"the audit in this folder has {name} .*--out"):
        requested(**change).added_to(requested())


def test_batches_that_grow_over_a_run_stay_as_they_begin() -> None:
    assert audited_strategy("dlion").batching == "fixed"
    assert audited_strategy("dlion").compressor.name == "max-n"
    assert audited_strategy("diloco") == parse_strategy("diloco")
