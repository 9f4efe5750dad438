"""A scenario is a function of its seed, and all that there is to draw is drawn."""

from tests.chaos import scenario
from tests.chaos.scenario import FAULTS, STRATEGIES

CASES = [scenario.scenario(seed) for seed in range(1000)]


def test_a_seed_gives_the_same_scenario_again() -> None:
    assert [scenario.scenario(seed) for seed in range(1000)] == CASES


def test_as_many_runs_as_there_are_faults_have_each_of_them() -> None:
    assert {case.fault.kind for case in CASES[5 : 5 + len(FAULTS)]} == set(FAULTS)


def test_all_strategies_engines_and_sizes_of_fleets_are_drawn() -> None:
    assert {case.strategy for case in CASES} == set(STRATEGIES)
    assert {case.engine for case in CASES} == {"planner", "torch"}
    assert {len(case.devices) for case in CASES} == {1, 2, 3}
    assert all(len(case.steps_s) == len(case.devices) for case in CASES)
    assert any(len(set(case.steps_s)) > 1 for case in CASES)


def test_a_fault_hits_a_device_of_the_run_or_the_operator() -> None:
    assert all(case.fault.device in (*case.devices, scenario.OPERATOR) for case in CASES)
    assert {case.fault.of_host for case in CASES} == {False, True}


def test_torch_distributed_has_several_ranks_and_its_own_strategy() -> None:
    ranks = [case for case in CASES if case.engine == scenario.TORCH]
    assert all(case.strategy == "allreduce" and len(case.devices) > 1 for case in ranks)


def test_the_text_names_what_a_run_is() -> None:
    case = CASES[0]._replace(fault=scenario.Fault(scenario.STOP, "anna", True, 0.25, 1.5))
    assert case.text.startswith("seed 0: ") and case.text.endswith("stop at anna (host) after 25% for 1.5 s")
