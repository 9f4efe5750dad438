"""How long a run takes to begin, by what each device took for it in the profile."""

import pytest

from planner.plan.file import Plan
from planner.plan.startup import startup_s
from planner.profile.startup import Startup
from tests.planner.plans import plan, planned, with_settings

#: a answers in 2 s and imports its framework in 3 s, b in 1 and 6 s; both are sent 1 MB/s.
A, B = Startup(2.0, {"torch": 3.0}, 1e6), Startup(1.0, {"torch": 6.0}, 1e6)


def made(*startups: Startup | None) -> Plan:
    workers = [planned(name)._replace(startup=each) for name, each in zip("ab", startups, strict=False)]
    return plan(*workers)


def test_agents_start_and_frameworks_are_imported_at_once() -> None:
    assert startup_s(made(A), {}) == pytest.approx(2.0 + 3.0)
    assert startup_s(made(A, B), {}) == pytest.approx(2.0 + 6.0)


def test_the_host_of_an_exchange_starts_one_more_agent_before_files_are_sent() -> None:
    slow = Startup(9.0, {"torch": 3.0}, 1e6)
    assert startup_s(made(slow, A), {}) == pytest.approx(9.0 + 9.0)
    assert startup_s(made(slow, A), {"a": 1_000_000}) == pytest.approx(9.0 + 9.0 + 1.0)
    assert startup_s(with_settings(made(slow, A), engine="torch"), {}) == pytest.approx(9.0 + 3.0)
    assert startup_s(made(slow), {}) == pytest.approx(9.0 + 3.0)


def test_data_are_sent_while_frameworks_are_imported() -> None:
    assert startup_s(made(A, B), {"a": 3_000_000, "b": 3_000_000}) == pytest.approx(2.0 + 6.0)
    assert startup_s(made(A, B), {"a": 9_000_000}) == pytest.approx(2.0 + 2.0 + 9.0)


def test_without_a_measurement_of_a_member_nothing_is_said() -> None:
    assert startup_s(made(A, None), {}) is None
    assert startup_s(made(A, B._replace(framework_s={"tensorflow": 9.0})), {}) is None
