"""Record what ``recommend --json`` says of the golden profiles, to compare every later tree with.

    python -m tests.golden.record

It overwrites recommend.json.gz. Record again only when a change of these figures or words is
intended, and say in the commit what changed.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

HERE = Path(__file__).parent
RECORDED = HERE / "recommend.json.gz"

METRICS = ("time", "power", "energy", "edp")
PROFILES = {"local": ("cipher", "resnet"), "lab": ("cipher",)}
PRESETS = (
    "parameter-server", "layer-drop", "baseline", "dlion", "ako", "gaia", "hop", "allreduce", "sgp", "crossover",
    "crossover-hierarchical", "ad-psgd", "scadles", "local-sgd", "diloco", "async-diloco",
)  # fmt: skip
#: Put together from parts, in the names that parts had when the golden files were recorded.
FORMER_NAMES = (
    "baseline:sender=top-k:share=0.01,gate=bounded:staleness=3",
    "parameter-server:sender=float16,gate=synchronous,batching=dynamic,merge=weighted",
    "allreduce:optimiser=lars",
)
STRATEGIES = (*PRESETS, *FORMER_NAMES, "auto")


def questions() -> Iterator[tuple[str, str, str, str]]:
    """Profile, model, strategy and metric of everything that is recorded."""
    for profile, models in PROFILES.items():
        for model in models:
            for strategy in STRATEGIES:
                for metric in METRICS:
                    yield profile, model, strategy, metric


def answer(app: Any, profile: str, model: str, strategy: str, metric: str, folder: Path) -> dict[str, Any]:
    """{"recommend": what is printed, "plan": what is written}."""
    plan = folder / "plan.json"
    asked = ["--model", model, "--strategy", strategy, "--metric", metric, "--steps", "1000"]
    command = ["recommend", str(HERE / f"{profile}.profile.json"), *asked, "-o", str(plan), "--json"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return {"recommend": json.loads(done.stdout), "plan": json.loads(plan.read_text())}


def key(profile: str, model: str, strategy: str, metric: str) -> str:
    return " ".join((profile, model, strategy, metric))


def record(app: Any, folder: Path) -> None:
    """Answer every question and write the answers."""
    answers = {key(*question): answer(app, *question, folder) for question in questions()}
    with gzip.GzipFile(RECORDED, "wb", mtime=0) as stream:
        stream.write(json.dumps(answers, separators=(",", ":")).encode())


if __name__ == "__main__":
    import tempfile

    from planner.cli.main import app

    record(app, Path(tempfile.mkdtemp()))
