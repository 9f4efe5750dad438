import pytest

from backends.strategies.engine import Engine
from planner.audit.scoring.baselines import FittedFactors, recommended
from planner.audit.scoring.cases import cases_of
from planner.audit.scoring.measured import MeasuredRun
from planner.errors import AuditError, PlanError
from planner.predict.costs import OWN_ENGINE
from tests.planner import audits


def test_a_contest_is_one_model_in_one_repetition_smaller_and_faster_first() -> None:
    fleet = audits.fleet(0.2, 0.1)
    first, second = cases_of(audits.audit(fleet, reversed(audits.as_predicted(fleet, repetitions=2))))
    assert (first.repetition, second.repetition) == (1, 2)
    assert [(run.server, *sorted(run.workers)) for run in first.runs] == [
        ("b", "b"), ("a", "a"), ("b", "a", "b"), ("a", "a", "b"),
    ]  # fmt: skip
    assert [key[2].workers for key in first.keys] == [("b",), ("a",), ("a", "b"), ("a", "b")]
    assert first.measured.time_s[0] == pytest.approx(100_000 * 0.11)


def test_runs_by_torch_are_compared_with_predictions_of_torch() -> None:
    torch, fleet = Engine.from_text("torch:hook=fp16"), audits.fleet(0.2, 0.1)
    made = audits.audit(fleet, audits.as_predicted(fleet, engine=torch))
    (by_torch,), (by_server,) = (cases_of(made._replace(engine=engine)) for engine in (torch, OWN_ENGINE))
    time_s = recommended(by_torch, FittedFactors()).time_s
    assert time_s == pytest.approx(by_torch.measured.time_s)
    assert recommended(by_server, FittedFactors()).time_s[-1] != pytest.approx(time_s[-1], rel=0.01)


def test_drawn_rates_of_streams_are_those_of_the_audits_seed() -> None:
    made = audits.audit(audits.fleet(0.1, 0.2), [audits.run({"a": 1.0})])
    assert [cases_of(made._replace(seed=seed))[0].costs.rates_seed for seed in (0, 3)] == [0, 3]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (audits.run({"a": 1.0, "z": 1.0}), "100: net on a+z: z cannot be predicted (it is not in the profile)"),
        (audits.run({"a": 1.0}, server="b"), "its server b is no member"),
        (audits.run({"a": 0.0}), "no step was made"),
    ],
)
def test_a_run_without_counterpart_in_the_profile_is_named(run: MeasuredRun, message: str) -> None:
    with pytest.raises(AuditError) as raised:
        cases_of(audits.audit(audits.fleet(0.1, 0.2), [run]))
    assert message in str(raised.value)


def test_a_link_that_was_not_profiled_is_named() -> None:
    fleet = audits.fleet(0.1, 0.2)._replace(links=())
    with pytest.raises(AuditError, match="the link b-a was not measured"):
        cases_of(audits.audit(fleet, [audits.run({"a": 1.0, "b": 1.0})]))


def test_a_model_that_was_not_profiled_is_named() -> None:
    with pytest.raises(PlanError, match="other is not in the profile"):
        cases_of(audits.audit(audits.fleet(0.1), [audits.run({"a": 1.0}, model="other")]))
