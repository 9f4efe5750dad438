"""A user's job is found, called in its folder and checked; its errors name the user's own line."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.jobs import user_job
from backends.jobs.failure import JobFailure, own_code, place_in
from backends.jobs.job import Job, Metric
from backends.protocol.member_specs import JobSpec


@pytest.fixture(autouse=True)
def _here_again(monkeypatch, tmp_path):
    """Loading enters the project's folder; the test process returns to its own."""
    monkeypatch.chdir(os.getcwd())
    yield
    user_job._enter(str(tmp_path))


def spec(folder: Path, module: str = "task", function: str = "job", data: str | None = None) -> JobSpec:
    return JobSpec(f"{module}.py:{function}", str(folder), module, function, data)


def project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def whole(**others: object) -> SimpleNamespace:
    return SimpleNamespace(**{"model": 1, "train": [1], "test": [1], "loss": max, **others})


def test_the_function_is_called_in_its_folder_with_its_siblings_and_the_folder_of_its_data(tmp_path) -> None:
    folder = project(
        tmp_path,
        task="import os\nfrom helpers.words import WORD\n\n"
        "def job():\n    return WORD, open('note.txt').read(), os.environ['PLANNER_DATA']\n",
        helpers__words="WORD = 'sibling'\n",
    )
    (folder / "note.txt").write_text("beside it")
    assert user_job.call(spec(folder, data=str(tmp_path))) == ("sibling", "beside it", str(tmp_path))


def test_a_function_may_be_in_a_package(tmp_path) -> None:
    folder = project(
        tmp_path,
        models____init__="",
        models__net="from . import size\n\ndef job():\n    return size.WIDTH\n",
        models__size="WIDTH = 7\n",
    )
    assert user_job.call(spec(folder, "models.net")) == 7


def test_another_project_with_modules_of_the_same_name_is_loaded_anew(tmp_path) -> None:
    first = project(tmp_path / "a", task="import part\n\ndef job():\n    return part.NAME\n", part="NAME = 'a'\n")
    second = project(tmp_path / "b", task="import part\n\ndef job():\n    return part.NAME\n", part="NAME = 'b'\n")
    assert [user_job.call(spec(folder)) for folder in (first, second, first)] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("module", "function", "message"),
    [("other", "job", r"there is no other\.py in its project"), ("task", "absent", "has no function absent")],
)
def test_a_job_that_is_not_there_is_named(tmp_path, module, function, message) -> None:
    project(tmp_path, task="def job():\n    return 1\n")
    with pytest.raises(ValueError, match=message):
        user_job.call(spec(tmp_path, module, function))


# -- attributes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", user_job.REQUIRED)
def test_a_job_without_a_required_attribute_is_refused(name) -> None:
    with pytest.raises(ValueError, match=f"without {name}; return an object with model, train, test, loss"):
        user_job.checked(whole(**{name: None}))


@pytest.mark.parametrize("returned", [None, 3, {"model": 1}])
def test_so_is_anything_else(returned) -> None:
    with pytest.raises(ValueError, match="without model, train, test, loss"):
        user_job.checked(returned)


@pytest.mark.parametrize("name", ["loss", "optimizer", "scheduler", "collate", "forward"])
def test_what_must_be_a_function_is_one(name) -> None:
    with pytest.raises(ValueError, match=f"its {name} is a value of type str, and must be a function"):
        user_job.checked(whole(**{name: "mse"}))


@pytest.mark.parametrize(
    ("name", "value", "higher"),
    [
        ("accuracy", max, True),
        ("rmse", max, False),
        ("Validation Loss", max, False),
        ("zork", max, False),
        ("error_rate", (max, "higher"), True),
        ("bleu", (max, "lower"), False),
    ],
)
def test_a_metric_has_a_direction_by_its_name_or_as_stated(name, value, higher) -> None:
    metrics = user_job.checked(whole(metrics={name: value})).metrics
    assert metrics[name].function is max
    assert Job(None, max, max, metrics).higher_is_better == ((name,) if higher else ())


def test_a_metric_may_be_of_the_whole_test_set_or_a_function_of_the_mean() -> None:
    given = {"f1": (max, "higher", "epoch"), "ppl": (max, None, abs)}
    found = user_job.checked(whole(metrics=given)).metrics
    assert found == {"f1": Metric(max, "higher", of_whole=True), "ppl": Metric(max, finish=abs)}


@pytest.mark.parametrize(
    "metrics",
    [{"a": 1}, {"a": (max, "up")}, {"a": (max, "lower", "all")}, {"a": (max, "lower", abs, 1)}, {"a": ()}, [max]],
)
def test_metrics_of_another_form_are_refused(metrics) -> None:
    with pytest.raises(ValueError, match="metric"):
        user_job.checked(whole(metrics=metrics))


def test_a_metric_has_no_name_that_the_loss_has_already() -> None:
    with pytest.raises(ValueError, match="its metric loss has the name of the loss itself, .*; rename it"):
        user_job.checked(whole(metrics={"mae": max, "loss": max}))


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("loss", lambda outputs: 1, r"its loss takes \(outputs\), and must take outputs and targets"),
        ("optimizer", lambda: 1, r"its optimizer takes \(\), and must take parameters"),
        ("scheduler", lambda optimizer, steps: 1, r"its scheduler takes \(optimizer, steps\), and must take optimizer"),
        ("collate", lambda: 1, r"its collate takes \(\), and must take samples"),
        ("forward", lambda model: 1, r"its forward takes \(model\), and must take model and batch"),
    ],
)
def test_a_function_takes_what_it_is_called_with(name, function, message) -> None:
    with pytest.raises(ValueError, match=message):
        user_job.checked(whole(**{name: function}))


def test_a_forward_may_take_whether_it_is_called_in_training() -> None:
    for forward in (lambda model, batch, training: 1, lambda model, batch, *, training: 1):
        assert user_job.checked(whole(forward=forward)).forward is forward
    with pytest.raises(ValueError, match="its forward takes .* and must take model and batch"):
        user_job.checked(whole(forward=lambda model, batch, step: 1))


def test_a_class_is_no_loss() -> None:
    with pytest.raises(ValueError, match="its loss is the class SimpleNamespace; give an instance of it"):
        user_job.checked(whole(loss=SimpleNamespace))


@pytest.mark.parametrize(("classes", "names"), [(None, ()), (2, ("0", "1")), (["cat", "dog"], ("cat", "dog"))])
def test_classes_are_names_or_their_number(classes, names) -> None:
    assert user_job.checked(whole(classes=classes)).class_names == names


# -- errors in the user's code ---------------------------------------------------------------------


def failing(tmp_path: Path, text: str) -> str:
    project(tmp_path, task=text)
    with pytest.raises(JobFailure) as failure, own_code(str(tmp_path), "task.py:job"):
        user_job.call(spec(tmp_path))
    return str(failure.value)


def test_an_error_names_the_users_own_line(tmp_path) -> None:
    text = "import json\n\ndef job():\n    return json.loads('{')\n"
    assert failing(tmp_path, text).endswith(f"at {tmp_path}/task.py:4")
    assert failing(tmp_path, text).startswith("JSONDecodeError: Expecting property name")


def test_so_do_an_error_of_syntax_a_missing_module_and_an_exit(tmp_path) -> None:
    assert failing(tmp_path, "def job():\n    return (\n").endswith("task.py:2")
    assert failing(tmp_path, "\nimport no_such_package\n").endswith("task.py:2")
    assert failing(tmp_path, "raise SystemExit(3)\n") == f"SystemExit: 3, at {tmp_path}/task.py:1"


def test_an_error_elsewhere_is_passed_on(tmp_path) -> None:
    with pytest.raises(KeyError), own_code(str(tmp_path), "task.py:job"):
        raise KeyError("ours")


def test_so_is_ctrl_c(tmp_path) -> None:
    project(tmp_path, task="raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt), own_code(str(tmp_path), "task.py:job"):
        user_job.call(spec(tmp_path))


def raised_in(file: Path, error: BaseException) -> None:
    exec(compile("raise error", str(file), "exec"), {"error": error})


@pytest.mark.parametrize(
    "error",
    [
        OSError("Input/output error"),
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: unspecified launch failure"),
        RuntimeError("OOM when allocating tensor with shape[8,8]"),
    ],
    ids=str,
)
def test_so_is_a_fault_of_the_device_that_a_package_meets(tmp_path, error) -> None:
    with pytest.raises(type(error)) as found, own_code(str(tmp_path / "mine"), "task.py:job"):
        raised_in(tmp_path / "site-packages" / "torch" / "linear.py", error)
    assert found.value is error


def test_want_of_memory_in_the_users_own_lines_is_the_devices_too(tmp_path) -> None:
    error = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    with pytest.raises(RuntimeError, match="CUDA out of memory"), own_code(str(tmp_path), "task.py:job"):
        raised_in(tmp_path / "task.py", error)


def test_a_value_that_a_gpu_finds_out_of_range_is_the_jobs_wherever_it_is_noticed(tmp_path) -> None:
    message = "^the job cannot be used: task.py:job gave the GPU a value that is out of range, such as a label beyond"
    with pytest.raises(JobFailure, match=message), own_code(str(tmp_path), "task.py:job"):
        raised_in(tmp_path / "backends" / "replica.py", RuntimeError("CUDA error: device-side assert triggered"))


def test_other_errors_of_a_package_are_the_jobs(tmp_path) -> None:
    message = r"^IndexError: beyond, with what task\.py:job gave, at .*linear\.py:1$"
    with pytest.raises(JobFailure, match=message), own_code(str(tmp_path / "mine"), "task.py:job"):
        raised_in(tmp_path / "site-packages" / "torch" / "linear.py", IndexError("beyond"))


def test_generated_code_without_a_file_is_not_the_users(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError), own_code(str(tmp_path), "task.py:job"):
        exec(compile("1 / 0", "<string>", "exec"))


def test_a_line_that_a_framework_names_in_its_text_counts_as_well(tmp_path) -> None:
    error = RuntimeError(f'in user code:\n\n    File "{tmp_path}/task.py", line 9, in forward  *\n\n    bad shape')
    assert place_in(str(tmp_path), error) == (f"{tmp_path}/task.py", 9)
    failure = pytest.raises(JobFailure, match="RuntimeError: bad shape, at .*task.py:9")
    with failure, own_code(str(tmp_path), "task.py:job"):
        raise error
