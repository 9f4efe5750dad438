"""A run goes on only from a checkpoint that fits its plan."""

from pathlib import Path

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import MOMENTUM
from backends.protocol.events import Evaluated
from backends.training import checkpoint
from planner.errors import PlanError, RecordError
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.event_log import EventLog
from planner.train.resume import require_checkpoint, require_resumable
from tests.planner.plans import plan, planned, with_settings


def saved(folder: Path, step: int, *evaluated: int, model: str = "net", **described: str) -> RunFolder:
    one = np.ones(1, np.float32)
    evaluations = [Evaluated(each, "a", 1.0, {}, 1.0)._asdict() for each in evaluated]
    meta = {"model": model, "framework": "torch", "step": step, "evaluations": evaluations, **described}
    layout = Layout((Variable("w", (1,), 0, 1),), ())
    content = checkpoint.Checkpoint(one, {MOMENTUM: one}, np.empty(0, np.float32), meta, layout)
    run = RunFolder(folder)
    checkpoint.write(str(run.checkpoint), content)
    return run


def refusal(planned_run: Plan, run: RunFolder) -> str | None:
    """Why the plan cannot go on from the run's checkpoint; None where it can."""
    try:
        require_resumable(planned_run, run)
    except PlanError as error:
        return str(error)
    return None


def test_what_a_killed_run_has_left_of_a_checkpoint_is_removed_by_the_run_that_goes_on(tmp_path: Path) -> None:
    run = saved(tmp_path, 60)
    run.unfinished_checkpoint.write_bytes(b"half of")
    require_checkpoint(run)
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint.npz"]


@pytest.mark.parametrize(
    ("step", "evaluated", "refused"),
    [
        (60, (), False),
        (60, (50,), False),
        (100, (), False),
        (100, (50,), False),
        (100, (50, 100), True),
    ],
)
def test_a_run_is_resumed_while_steps_or_its_last_evaluation_are_left(
    tmp_path: Path, step: int, evaluated: tuple[int, ...], refused: bool
) -> None:
    run = saved(tmp_path, step, *evaluated)
    expected = f"{tmp_path} has made all its {step} steps; give more with --steps" if refused else None
    assert refusal(plan(planned("a"), steps=100), run) == expected


@pytest.mark.parametrize("evaluated", [(), (100,), (120,)])
def test_a_run_that_is_beyond_the_steps_that_are_asked_for_is_refused_with_both(
    tmp_path: Path, evaluated: tuple[int, ...]
) -> None:
    assert refusal(plan(planned("a"), steps=100), saved(tmp_path, 120, *evaluated)) == (
        f"cannot resume {tmp_path}: it is at step 120, and --steps, or else the plan, asks for 100 steps in all; "
        "give more than 120 with --steps"
    )


def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path) -> None:
    run = saved(tmp_path, 60)
    log = EventLog(run.events)
    with pytest.raises(PlanError, match=f"cannot resume {tmp_path}: it is still training; stop it with Ctrl-C"):
        require_checkpoint(run)
    log.close()
    require_checkpoint(run)
    run.events.unlink()
    require_checkpoint(run)


def test_a_run_goes_on_with_its_own_optimizer_only(tmp_path: Path) -> None:
    refused = refusal(plan(planned("a"), steps=100, strategy="parameter-server:optimizer=adam"), saved(tmp_path, 60))
    assert refused == (
        f"cannot resume {tmp_path}: the checkpoint is of optimizer sgd, and what that keeps (momentum) is not "
        "what adam does; go on with --optimizer sgd, or begin a new run"
    )


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        ("diloco", "diloco", False),
        ("diloco", "diloco:optimizer=adamw", True),
        ("diloco:optimizer=adamw", "diloco", True),
        ("diloco:optimizer=adamw", "diloco:optimizer=adamw", False),
    ],
)
def test_rounds_go_on_with_their_own_inner_optimizer_only(tmp_path: Path, before: str, now: str, refused: bool) -> None:
    run = saved(tmp_path, 50, strategy=before, optimizer="nesterov")
    wanted = plan(planned("a"), planned("b"), strategy=now)
    told = refusal(wanted, run)
    assert (told is not None) == refused
    assert not refused or "its local steps are by" in str(told)


def test_a_file_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match=r"file: the folder is no directory; give --resume a run folder that"):
        require_checkpoint(RunFolder(tmp_path / "file"))


def test_a_folder_without_a_checkpoint_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as refused:
        require_checkpoint(RunFolder(tmp_path))
    assert str(refused.value) == (
        f"cannot resume {tmp_path}: it has no checkpoint.npz, the run wrote none; "
        "train again without --resume, or give --resume another run folder"
    )


def test_a_known_model_goes_on_in_another_framework_and_a_model_of_the_users_own_does_not(tmp_path: Path) -> None:
    other = plan(planned("a")._replace(framework="tensorflow"), steps=100)
    assert refusal(other, saved(tmp_path, 60)) is None
    own = saved(tmp_path, 60, model="net.py:net")
    assert refusal(plan(planned("a"), steps=100, model="net.py:net"), own) is None
    refused = refusal(with_settings(other, model="net.py:net"), own)
    assert refused is not None and "net.py:net in torch, the plan computes with tensorflow" in refused
    assert refused.endswith("plan again with --framework torch")
