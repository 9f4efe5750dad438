"""A job is found by its text, with the project that it belongs to and the framework it imports."""

from pathlib import Path

import pytest

from planner.agents.exported import marked
from planner.errors import PlanError
from planner.jobs.reference import find_job


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


JOB = "import torch\n\ndef job():\n    return 1\n"


@pytest.mark.parametrize(
    ("files", "text", "module", "project"),
    [
        ({"task.py": JOB}, "task.py:job", "task", "."),
        ({"src/task.py": JOB}, "src/task.py:job", "task", "src"),
        ({"net/__init__.py": "", "net/task.py": JOB}, "net/task.py:job", "net.task", "."),
        ({"net/__init__.py": "", "net/task.py": JOB}, "net.task:job", "net.task", "."),
        ({"net/__init__.py": JOB}, "net:job", "net", "."),
    ],
)
def test_the_project_is_the_folder_from_which_the_module_is_imported(tmp_path, files, text, module, project) -> None:
    job = find_job(text, write(tmp_path, files))
    assert (job.module, job.function, job.project.folder) == (module, "job", (tmp_path / project).resolve())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task.py", "write FILE.py:function or package.module:function"),
        ("task.py:", "write FILE.py:function"),
        (":job", "write FILE.py:function"),
        ("none.py:job", "there is no file .*/none.py"),
        ("none:job", "there is no module none in"),
        ("task.py:jop", r'task.py has no function jop; did you mean "job"\? \(known: job\)'),
        ("broken.py:job", r"broken\.py:1: not Python"),
    ],
)
def test_a_job_that_is_not_there_is_named(tmp_path, text, message) -> None:
    write(tmp_path, {"task.py": JOB, "broken.py": "def job(:\n"})
    with pytest.raises(PlanError, match=message):
        find_job(text, tmp_path)


@pytest.mark.parametrize(
    "text", ["def job():\n    pass\n", "job = make()\n", "from other import job\n", "from other import *\n"]
)
def test_a_function_may_be_bound_in_any_way(tmp_path, text) -> None:
    assert find_job("task.py:job", write(tmp_path, {"task.py": text})).function == "job"


@pytest.mark.parametrize(
    ("files", "framework"),
    [
        ({"task.py": JOB}, "torch"),
        ({"task.py": "import keras\njob = 1\n"}, "tensorflow"),
        ({"task.py": "from parts import net\njob = 1\n", "parts/net.py": "import tensorflow as tf\n"}, "tensorflow"),
        ({"task.py": "import torch, keras\njob = 1\n"}, None),
        ({"task.py": "job = 1\n", "beside.py": "import torch\n"}, None),
    ],
)
def test_its_framework_is_the_one_that_it_imports(tmp_path, files, framework) -> None:
    assert find_job("task.py:job", write(tmp_path, files)).framework == framework


def test_its_fingerprint_changes_with_the_code_that_it_imports_only(tmp_path) -> None:
    def fingerprint() -> str:
        return find_job("task.py:job", tmp_path).fingerprint

    write(tmp_path, {"task.py": f"from net import layers\n{JOB}    layers.A\n", "notes.txt": "one"})
    write(tmp_path, {"net/__init__.py": "", "net/layers.py": "A = 1\n", "beside.py": "A = 1\n"})
    first = fingerprint()
    write(tmp_path, {"notes.txt": "two", "beside.py": "A = 2\n", "broken.py": "def (\n"})
    assert fingerprint() == first
    write(tmp_path, {"net/layers.py": "A = 2\n"})
    second = fingerprint()
    write(tmp_path, {"net/__init__.py": "import torch\ntorch.manual_seed(1)\n"})
    assert len({first, second, fingerprint()}) == 3


@pytest.mark.parametrize(
    "reached",
    [
        "import importlib\nimportlib.import_module(name)\n",
        "import sys\nsys.path.insert(0, 'net')\n",
        "import sys as system\nsystem.path.insert(0, 'net')\n",
        "from sys import path\npath.insert(0, 'net')\n",
        "import torch\ntorch.hub.load('.', 'net', source='local')\n",
        "exec(text)\n",
    ],
)
def test_where_modules_are_found_at_run_time_all_of_the_project_counts(tmp_path, reached) -> None:
    def fingerprint() -> str:
        return find_job("task.py:job", tmp_path).fingerprint

    write(tmp_path, {"task.py": reached + JOB, "net/layers.py": "A = 1\n", "broken.py": "def (\n"})
    seen = [fingerprint()]
    write(tmp_path, {"net/layers.py": "A = 2\n"})
    seen.append(fingerprint())
    write(tmp_path, {"broken.py": "def [\n"})
    seen.append(fingerprint())
    assert len(set(seen)) == 3


@pytest.mark.parametrize(
    ("named", "counts"),
    [
        ("open('conf/small.yaml')", True),
        ("open(f'conf/{size}.yaml')", True),
        ("open(f'{size}ll.yaml')", True),
        ("Path('conf').glob('*')", True),
        ("compose(config_name='small')", True),
        ("open('large.yaml')", False),
        ("open('notes.md')", False),
    ],
)
def test_its_fingerprint_changes_with_files_that_its_code_names(tmp_path, named, counts) -> None:
    write(tmp_path, {"task.py": f"def job():\n    return {named}\n", "conf/small.yaml": "layers: 1"})
    before = find_job("task.py:job", tmp_path).fingerprint
    write(tmp_path, {"conf/small.yaml": "layers: 2"})
    assert (find_job("task.py:job", tmp_path).fingerprint != before) == counts


def test_an_export_that_its_code_names_is_no_change_of_it(tmp_path) -> None:
    write(tmp_path, {"task.py": "def job():\n    return load('model.pth')\n"})
    before = find_job("task.py:job", tmp_path).fingerprint
    (tmp_path / "model.pth").write_bytes(marked(b"weights"))
    assert find_job("task.py:job", tmp_path).fingerprint == before
