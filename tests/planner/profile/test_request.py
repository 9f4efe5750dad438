"""A profile request and what it asks of each device."""

from typing import Any

import pytest

from planner.errors import PlanError
from planner.profile.request import ProfileRequest
from profilers.records.steps import ComputeSettings
from tests.planner import profiles

HERE, ABSENT = {"version": "2.0"}, {"error": "it is not installed for this Python"}


def on(framework: str | None = None, **frameworks: dict[str, Any]) -> str:
    return ProfileRequest(("net",), framework=framework).framework_on(profiles.facts()._replace(frameworks=frameworks))


def test_a_device_computes_with_what_is_asked_for_or_with_what_it_has() -> None:
    assert on(torch=HERE, tensorflow=HERE) == "torch"
    assert on(torch=ABSENT, tensorflow=HERE) == "tensorflow"
    assert on("tensorflow", torch=HERE, tensorflow=HERE) == "tensorflow"


def test_what_a_device_lacks_is_named_with_where_to_find_the_remedy() -> None:
    with pytest.raises(PlanError, match="^it is not installed for this Python; `planner check` tells what to install$"):
        on("tensorflow", torch=HERE, tensorflow=ABSENT)
    with pytest.raises(PlanError, match="not installed .*; it is not installed"):
        on(torch=ABSENT, tensorflow=ABSENT)


@pytest.mark.parametrize(
    ("precision", "needs"),
    [
        ("bf16", "AMX or AVX-512, an Apple processor from M2 on, or a GPU of compute capability 8.0 or later"),
        ("fp16", "a GPU of compute capability 7.0 or later"),
    ],
)
def test_a_device_without_the_instructions_is_refused_with_the_remedy(precision: str, needs: str) -> None:
    request = ProfileRequest(("net",), compute=ComputeSettings(0, precision))
    request.check_precision(profiles.facts()._replace(precisions=(precision,)))
    with pytest.raises(PlanError, match=f"^{precision} needs {needs}; profile it with --precision fp32$"):
        request.check_precision(profiles.facts())
    ProfileRequest(("net",)).check_precision(profiles.facts())


def test_float16_is_refused_where_the_framework_is_not_torch() -> None:
    facts = profiles.facts()._replace(frameworks={"torch": ABSENT, "tensorflow": HERE})
    with pytest.raises(PlanError, match="^fp16 needs torch, which scales the loss; profile it with --framework torch"):
        ProfileRequest(("net",), compute=ComputeSettings(0, "fp16")).framework_on(facts)
    assert ProfileRequest(("net",), compute=ComputeSettings(0, "bf16")).framework_on(facts) == "tensorflow"
