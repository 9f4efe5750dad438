"""What a job's steps depend on is read from its text: metrics, and what only they use, are not."""

import ast

import pytest

from planner.jobs.step_code import step_code

JOB = """
from types import SimpleNamespace
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.layer = nn.Linear(8, classes)

    def forward(self, x):
        return self.layer(x)


def loss(outputs, targets):
    return nn.functional.mse_loss(outputs, targets)


def mae(outputs, targets):
    return (outputs - targets).abs().mean()


def job():
    torch.set_num_threads(2)
    names = ["a", "b"]
    data = torch.ones(4, 8)
    return SimpleNamespace(
        model=Net(classes=2), train=data, test=data, loss=loss, metrics={"mae": mae}, classes=names,
    )
"""


def code(text: str) -> dict[str, str]:
    return step_code({"train.py": ast.parse(text)}, "job")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def loss(outputs, targets):", 'def loss(outputs, targets):  # nats\n    """The loss."""'),
        ("torch.ones(4, 8)", "torch.ones(\n        4,\n        8,\n    )"),
        ("import torch\n", "import torch, math\n"),
        ("(outputs - targets).abs().mean()", "(outputs - targets).abs().median()"),
        (', metrics={"mae": mae}', ""),
        ("return (outputs - targets)", "return scale(outputs - targets)\n\n\ndef scale(x):\n    return 2 * x"),
        ("import torch\n", "import torch\nimport torchmetrics\nppl = torchmetrics.Perplexity()\n"),
        ('{"mae": mae}', '{"mae": mae, "ppl": (lambda outputs, targets: loss(outputs, targets).exp(), "lower")}'),
        ("    names =", "    def mse(outputs, targets):\n        return loss(outputs, targets)\n\n    names ="),
        ('["a", "b"]', '["cat", "dog"]'),
        ("import torch\n", 'import torch\n\nif __name__ == "__main__":\n    print(loss(1, 2))\n'),
    ],
)
def test_what_no_step_depends_on_is_left_out(before: str, after: str) -> None:
    assert before in JOB
    changed = JOB.replace(before, after)
    if "torchmetrics" in after:  # what a metric has used is known by its name only while it uses it
        changed = changed.replace("mae}", 'mae, "ppl": ppl}')
    assert code(changed) == code(JOB)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mse_loss", "l1_loss"),
        ("classes=2", "classes=3"),
        ("nn.Linear(8, classes)", "nn.Linear(8, classes, bias=False)"),
        ("torch.set_num_threads(2)", "torch.set_num_threads(1)"),
        ("def loss(outputs, targets):", "def loss(outputs, targets):\n    mae(outputs, targets)"),
        ("torch.ones(4, 8)", "torch.ones(5, 8)"),
    ],
)
def test_what_a_step_depends_on_counts(before: str, after: str) -> None:
    assert before in JOB
    assert code(JOB.replace(before, after)) != code(JOB)


@pytest.mark.parametrize(
    "given",
    [
        "def job():\n    found = Job()\n    found.metrics = METRICS\n    return found\n",
        "def job():\n    metrics = {}\n    metrics['mae'] = METRICS\n    return SimpleNamespace(metrics=metrics)\n",
        "def job():\n    return SimpleNamespace(**{'model': 1, 'metrics': METRICS})\n",
        "class job:\n    metrics = METRICS\n    model = 1\n    loss = 2\n",
        "class job:\n    def metrics(self):\n        return METRICS\n    model = 1\n    loss = 2\n",
        "class job:\n    def __init__(self):\n        self.model, self.loss = 1, 2\n        self.metrics = METRICS\n",
        "RATES = {}\nRATES['mae'] = METRICS\ndef job():\n    return Job(metrics=RATES)\n",
    ],
)
def test_metrics_are_known_however_they_are_given(given: str) -> None:
    assert code(given.replace("METRICS", "{'mae': one}")) == code(given.replace("METRICS", "{'mse': [two, three()]}"))


@pytest.mark.parametrize(
    "text",
    [
        "class Net(Module):\n    def __init__(self):\n        self.metrics = SIZE\n",
        "class Net(Module):\n    metrics = SIZE\n",
        "class Net(Module):\n    def metrics(self, x):\n        return SIZE\n",
        "def loss(outputs, targets):\n    metrics = {}\n    metrics['aux'] = SIZE\n    return metrics\n",
        "CONFIG = {'model': 'net', 'loss': 'mse', 'classes': SIZE}\n",
        "CONFIG = {'metrics': SIZE}\n",
        "net = Net(metrics=SIZE)\n",
        "if __name__ != '__main__':\n    set_threads(SIZE)\n",
        "def __getattr__(name):\n    return SIZE\n",
        "def samples():\n    given = yield SIZE\n",
        "def loss(outputs, targets):\n    given = (size := SIZE)\n    return size\n",
        "class Deep(Base, name='deep'):\n    size = SIZE\n",
        "class Base:\n    def __init_subclass__(cls):\n        register(cls)\nclass Deep(Base):\n    size = SIZE\n",
        "class Deep(Base):\n    size = SIZE\nnets = Base.__subclasses__()\n",
        "class Deep:\n    size = SIZE\nnet = attrgetter(name)(nets)\n",
        "from inspect import getmembers\nclass Deep:\n    size = SIZE\n",
    ],
)
def test_what_may_reach_a_step_by_another_way_counts(text: str) -> None:
    job = text + "\ndef job():\n    return Job(model=Net(CONFIG), loss=loss, train=samples)\n"
    assert code(job.replace("SIZE", "1")) != code(job.replace("SIZE", "2"))


def test_a_function_of_another_file_that_only_metrics_use_is_left_out() -> None:
    job = {"train.py": ast.parse("from metrics import ppl\ndef job():\n    return Job(metrics={'ppl': ppl})\n")}
    found = step_code({**job, "metrics.py": ast.parse("EPSILON = 1\ndef ppl(x, y):\n    return EPSILON\n")}, "job")
    assert list(found) == ["train.py"] and "ppl" not in found["train.py"]


def test_a_function_that_may_be_used_by_a_computed_name_counts_unless_metrics_have_used_it() -> None:
    text = "import nets\ndef one(): {}\ndef mae(): {}\ndef job():\n    return Job(getattr(nets, name), metrics=[mae])\n"
    assert code(text.format(1, 1)) == code(text.format(1, 2)) != code(text.format(2, 2))
