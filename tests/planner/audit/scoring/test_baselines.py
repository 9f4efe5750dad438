import numpy as np
import pytest

from planner.audit.scoring.baselines import PLANNER, RULES, FittedFactors, estimate, fit
from planner.audit.scoring.cases import Case, Estimates, cases_of
from planner.audit.scoring.measured import MeasuredRun, SteadyWorker
from planner.profile.file import Profile
from profilers.records.readings import Reading
from tests.planner import audits, profiles


def case(fleet: Profile, runs: list[MeasuredRun] | None = None) -> Case:
    return cases_of(audits.audit(fleet, runs or audits.as_predicted(fleet)))[0]


def estimates(rule: str, of: Case) -> Estimates:
    found = RULES[rule](of, FittedFactors())
    assert isinstance(found, Estimates)
    return found


def named(of: Case, workers: str, server: str) -> int:
    return next(i for i, each in enumerate(of.configs) if each[:2] == (server, tuple(workers)))


def with_facts(fleet: Profile, clocks_hz: dict[str, float | None], **changes: dict[str, object]) -> Profile:
    devices = {}
    for name, device in fleet.devices.items():
        window = device.steps[0].window._replace(counters={"f_cpu": Reading("Hz", clocks_hz.get(name), 0.0, 1)})
        assert device.facts is not None
        devices[name] = device._replace(
            steps=(device.steps[0]._replace(window=window),), facts=device.facts._replace(**changes.get(name, {}))
        )
    return fleet._replace(devices=devices)


def test_ours_is_what_was_predicted() -> None:
    of = case(audits.fleet(0.1, 0.2))
    assert estimates(PLANNER, of).time_s == pytest.approx(of.measured.time_s)
    assert estimates(PLANNER, of).power_w == pytest.approx(of.measured.power_w)
    assert PLANNER == "planner"


def test_all_devices_and_the_fastest_are_fixed_choices() -> None:
    of = case(audits.fleet(0.3, 0.1, 0.2))
    assert of.configs[RULES["all devices"](of, FittedFactors())][:2] == ("b", ("a", "b", "c"))
    assert of.configs[RULES["fastest device"](of, FittedFactors())][:2] == ("b", ("b",))


def test_the_sum_of_rates_knows_no_network() -> None:
    of = case(audits.fleet(0.09, 0.19))
    found, both = estimates("sum of rates", of), named(of, "ab", "a")
    assert found.time_s[both] == pytest.approx(100_000 / (10 + 5))
    assert found.power_w[both] == pytest.approx(100.0)
    assert found.time_s[both] == found.time_s[named(of, "ab", "b")]


def test_by_flops_times_the_strongest_and_takes_the_others_in_proportion() -> None:
    fleet = with_facts(audits.fleet(0.09, 0.19), {"a": 2e9, "b": 1e9}, b={"usable_cores": 2.0})
    of = case(fleet)
    found = estimates("by FLOPS", of)
    assert found.time_s[named(of, "a", "a")] == pytest.approx(100_000 * 0.1)
    assert found.time_s[named(of, "b", "b")] == pytest.approx(100_000 * 0.1 * 4)
    assert found.time_s[named(of, "ab", "a")] == pytest.approx(100_000 / (10 + 2.5))


def test_by_flops_counts_cores_alone_where_a_clock_is_unknown() -> None:
    of = case(with_facts(audits.fleet(0.09, 0.19), {"a": 2e9, "b": None}, b={"usable_cores": 2.0}))
    assert estimates("by FLOPS", of).time_s[named(of, "b", "b")] == pytest.approx(100_000 * 0.1 * 2)


def test_by_memory() -> None:
    of = case(with_facts(audits.fleet(0.09, 0.19), {}, a={"memory_bytes": 2**32}, b={"memory_bytes": 2**33}))
    found = estimates("by memory", of)
    assert found.time_s[named(of, "b", "b")] == pytest.approx(100_000 * 0.2)
    assert found.time_s[named(of, "a", "a")] == pytest.approx(100_000 * 0.4)


def test_alpha_and_beta_by_hand() -> None:
    of = case(audits.fleet(0.09, 0.19))
    found = estimate(of, FittedFactors(1.1, 2.0, 0.9, 0.5))
    assert found.time_s[named(of, "a", "a")] == pytest.approx(100_000 * 0.1)
    assert found.time_s[named(of, "ab", "a")] == pytest.approx(100_000 / (1 / 0.11 + 1 / 0.44))
    assert found.time_s[named(of, "ab", "b")] == pytest.approx(100_000 / (1 / 0.22 + 1 / 0.22))
    assert found.power_w[named(of, "ab", "b")] == pytest.approx(50 * 0.45 + 50 * 0.9)


def test_a_fit_finds_the_alpha_and_beta_that_made_the_measurements() -> None:
    fleet, true = audits.fleet(0.1, 0.2, 0.4), FittedFactors(1.2, 1.7, 0.8, 0.6)

    def obey(run: MeasuredRun) -> MeasuredRun:
        workers = {}
        for name in run.workers:
            several, remote = len(run.workers) > 1, name != run.server
            time = true.alpha_time**several * true.beta_time**remote
            power = true.alpha_power**several * true.beta_power**remote
            step_s = profiles.step().update_s.values[0] + fleet.devices[name].steps[0].gradient_s.values[0]
            workers[name] = SteadyWorker(1 / (step_s * time), 0.0, 50 * power, audits.SOURCE)
        return run._replace(workers=workers)

    of = case(fleet, audits.as_predicted(fleet, shake=obey))
    assert fit([of]) == pytest.approx(true, rel=1e-4)
    assert RULES["one α, one β"](of, fit([of])).time_s == pytest.approx(of.measured.time_s, rel=1e-4)


def test_a_fit_to_devices_alone_changes_nothing() -> None:
    assert fit([case(audits.fleet(0.1), [audits.run({"a": 3.0})])]) == FittedFactors()


def test_unknown_watts_stay_unknown() -> None:
    device = profiles.device(idle_w=None, max_w=None)
    of = case(profiles.profile({"a": device}), [audits.run({"a": 3.0}, watts=None)])
    for rule in RULES.values():
        found = rule(of, fit([of]))
        assert isinstance(found, int) or np.isnan(found.power_w).all()
