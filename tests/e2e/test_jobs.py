"""Jobs of a user's own over real SSH servers: the examples train on two devices."""

import json
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from backends.data import dataset
from planner.jobs.reference import find_job
from planner.json_records import save
from planner.plan.file import load_plan
from planner.profile.file import load_profile
from tests.e2e.clean_environments import CleanPython
from tests.e2e.conftest import SLOWDOWNS
from tests.installed import computes_with
from tests.planner.plans import replan
from tests.running import FASHION, HANG_S, ROOT, Command, gone, plan_file, run

pytestmark = computes_with("tensorflow")  # one process makes all of these, one after the other


@pytest.fixture(scope="module")
def fleet(ssh_fleet: Path) -> Path:
    """A folder with a trusted fleet, the example jobs, and pictures on each device."""
    for name in SLOWDOWNS:
        assert run(ssh_fleet, "trust", "--yes", name, HOME=str(ssh_fleet)).popen.returncode == 0
    shutil.copytree(ROOT / "examples/jobs", ssh_fleet / "jobs")
    _pictures(ssh_fleet / "set")
    entries = (ssh_fleet / "fleet.toml").read_text()
    (ssh_fleet / "fleet.toml").write_text(entries.replace("idle_watts", f'data = "{ssh_fleet}/set"\nidle_watts'))
    return ssh_fleet


def _pictures(folder: Path) -> None:
    """Real images as files: a folder a class."""
    images = dataset.load(str(FASHION))
    for part, pixels, labels in (
        ("train", images.train_images[:600], images.train_labels[:600]),
        ("test", images.test_images[:100], images.test_labels[:100]),
    ):
        for number, (picture, label) in enumerate(zip(pixels, labels, strict=True)):
            path = folder / part / f"class-{label}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture[:, :, 0]).save(path)


def planner(folder: Path, *arguments: str) -> Command:
    command = run(folder, *arguments, HOME=str(folder))
    assert command.popen.returncode == 0, command.errors
    return command


def planned(folder: Path, job: str, steps: int, framework: str = "torch", **settings: Any) -> None:
    """A plan made by hand for both devices."""
    frameworks = dict.fromkeys(SLOWDOWNS, framework)
    path = plan_file(folder / "plan.json", job, SLOWDOWNS, steps, "as it was", frameworks)
    replan(path, job=True, batch=16, **settings)


def trained(folder: Path, *arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(planner(folder, "train", "--json", *arguments).output)
    gone(folder)
    assert set(result["workers"]) == set(SLOWDOWNS)
    return result


def reloaded(python: Path, folder: Path, to: str, then: str = "", **environment: str) -> str:
    """Export the newest run and run the printed lines by another Python; what ``then`` prints."""
    newest = max((folder / "runs").iterdir())
    made = json.loads(run(folder, "export", str(newest), "--to", to, "--json", **environment).output)
    script = folder / "use.py"
    script.write_text("\n".join([*made["lines"], then]))
    done = subprocess.run(
        [python, "-I", script], cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def judge(fleet: Path) -> str:
    """A line of Python that reads the regression's test set as lists x and y."""
    table = runpy.run_path(str(fleet / "jobs/table.py"))["table"]
    (fleet / "table.json").write_text(json.dumps([each.tolist() for each in table(2000, 2)]))
    return f"import json; x, y = json.load(open('{fleet}/table.json'))\n"


def data_for_judging(fleet: Path, job: str, **environment: str) -> str:
    """A line of Python that reads a job's test set as tensors x and y."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        test = runpy.run_path(str(fleet / job))["job"]().test
        x, y = zip(*(test[at] for at in range(len(test))), strict=True)
    judged = [[getattr(each, "tolist", lambda each=each: each)() for each in column] for column in (x, y)]
    (fleet / "judge.json").write_text(json.dumps(judged))
    return f"import json; x, y = map(torch.tensor, json.load(open('{fleet}/judge.json')))\n"


def timed_sizes(fleet: Path, job: str) -> None:
    """Each device timed the job at three batch sizes or more, and knows its peak memory at each."""
    for device in load_profile(fleet / "profile.json").devices.values():
        (steps,) = (steps for steps in device.steps if steps.model == job)
        timed = {steps.batch, steps.batch // 2, *(other.batch for other in steps.other_batches)}
        assert steps.setup.job and len(timed) >= 3
        assert steps.gradient_s.values and steps.half_batch_s.values
        assert all(other.gradient_s.values for other in steps.other_batches)
        assert steps.memory is not None
        peaks = {each.batch: each.host_bytes for each in steps.memory.batches}
        assert timed <= set(peaks) and all(peaks[batch] for batch in timed)


def test_a_regression_with_its_own_adam_goes_the_whole_way(fleet: Path, judge: str, clean_python: CleanPython) -> None:
    job = ("--job", "jobs/regression.py:job")
    planner(fleet, "profile", *job, "--batch-size", "16", "--steps", "400", "--json")
    timed_sizes(fleet, job[1])
    both = [argument for name in SLOWDOWNS for argument in ("--include", name)]
    ranked = json.loads(planner(fleet, "recommend", *job, "--metric", "time", *both, "--json").output)
    assert any("the job brings its own optimizer" in note for note in ranked["notes"])
    result = trained(fleet, "--target", "rmse=0.5", "--evaluate-every", "50")
    assert result["target"]["reached"] and result["steps_made"] < 400
    assert result["strategy"].startswith("allreduce") and "optimizer=own" in result["strategy"]
    folder = max((fleet / "runs").iterdir())
    again = planner(fleet, "train", "--resume", str(folder), "--steps", "450", "--json")
    last = json.loads(again.output)["evaluations"][-1]
    assert last["metrics"]["rmse"] < 0.55
    with_torch = f"{judge}x, y = torch.tensor(x), torch.tensor(y)\nprint(float((model(x) - y).square().mean()))"
    run_onnx = "(found,) = session.run(None, {'input_0': numpy.array(x, 'float32')})"
    with_numpy = f"{judge}{run_onnx}\nprint(((found - y) ** 2).mean())"
    for to, packages, then in (
        ("model.pth", ["torch", "numpy"], with_torch),  # the job imports numpy
        ("model.pt", ["torch"], with_torch),
        ("model.safetensors", ["torch", "safetensors", "numpy"], with_torch),
        ("model.onnx", ["onnxruntime"], with_numpy),
    ):
        found = reloaded(clean_python(*packages), fleet, to, then)
        assert float(found) == pytest.approx(last["loss"], rel=1e-4)


def test_an_export_beside_the_job_and_another_metric_need_no_new_profile(fleet: Path) -> None:
    job = "jobs/regression.py:job"
    fingerprint = find_job(job, fleet).fingerprint
    planned(fleet, job, 10, strategy="allreduce:optimizer=own")
    replanned = load_plan(fleet / "plan.json")._replace(fingerprint=fingerprint)
    save(replanned, fleet / "plan.json")
    trained(fleet)
    newest = max((fleet / "runs").iterdir())
    planner(fleet, "export", str(newest), "--to", "jobs/model.pth")
    source = (fleet / "jobs/regression.py").read_text()
    (fleet / "jobs/regression.py").write_text(source.replace('"rmse"', '"error"'))
    try:
        result = trained(fleet)
    finally:
        (fleet / "jobs/regression.py").write_text(source)
    assert result["evaluations"][-1]["metrics"].keys() == {"error"}
    assert not any("has changed" in note for note in result["notes"])
    assert [path for name in SLOWDOWNS for path in (fleet / f"cache-{name}").rglob("model.pth")] == []


def test_a_network_learns_to_write_with_torch_distributed(fleet: Path, clean_python: CleanPython) -> None:
    planned(fleet, "jobs/characters.py:job", 120, engine="torch", strategy="allreduce:optimizer=own")
    result = trained(fleet, "--allow-plaintext")
    assert result["engine"] == "torch" and result["evaluations"][-1]["metrics"]["perplexity"] < 25
    loss = "torch.nn.functional.cross_entropy(found.flatten(0, 1), y.flatten())"
    shapes = "assert model(inputs[0]).shape == (1, 32, 86)"
    judge = f"{data_for_judging(fleet, 'jobs/characters.py')}{shapes}\nfound = model(x)\nprint(float({loss}))"
    found = float(reloaded(clean_python("torch"), fleet, "writer.pt", judge))
    assert found == pytest.approx(result["evaluations"][-1]["loss"], rel=1e-4)


def test_pictures_that_are_on_the_devices_are_read_there(fleet: Path, clean_python: CleanPython) -> None:
    planned(fleet, "jobs/pictures.py:job", 150, strategy="parameter-server:optimizer=adam")
    result = trained(fleet)
    last = result["evaluations"][-1]
    assert last["metrics"]["accuracy"] > 0.4
    sent = [path for name in SLOWDOWNS for path in (fleet / f"cache-{name}").rglob("*.png")]
    assert sent == []
    place = {"PLANNER_DATA": f"{fleet}/set"}
    measures = "float(torch.nn.functional.cross_entropy(found, y)), float((found.argmax(1) == y).float().mean())"
    third = "extra['classes.txt'].decode().split()[3]"
    judge = data_for_judging(fleet, "jobs/pictures.py", **place)
    judge += f"found = model(x)\nprint(json.dumps([{third}, {measures}]))"
    name, loss, accuracy = json.loads(reloaded(clean_python("torch"), fleet, "pictures.pt", judge, **place))
    assert name == "class-3"
    assert loss == pytest.approx(last["loss"], rel=1e-4)
    assert accuracy == pytest.approx(last["metrics"]["accuracy"])


def test_each_device_reads_the_pictures_of_its_own_labels(fleet: Path) -> None:
    planned(fleet, "jobs/pictures.py:job", 20)
    held = trained(fleet, "--partition", "labels=5")["partition"]["labels"]
    first, second = (held[name] for name in SLOWDOWNS)
    assert len(first) == len(second) == 5 and not first.keys() & second.keys()
    assert sum(first.values()) + sum(second.values()) == 600


def test_an_error_in_the_job_names_its_own_line_and_leaves_nothing_running(fleet: Path) -> None:
    source = (fleet / "jobs/regression.py").read_text()
    broken = source.replace(
        "        loss=nn.functional.mse_loss,", "        loss=lambda outputs, targets: outputs / 0 + {},"
    )
    (fleet / "jobs/broken.py").write_text(broken)
    line = 1 + broken.splitlines().index("        loss=lambda outputs, targets: outputs / 0 + {},")
    planned(fleet, "jobs/broken.py:job", 50, strategy="allreduce:optimizer=own")
    command = run(fleet, "train", HOME=str(fleet))
    assert command.popen.returncode == 1
    assert f"{fleet}/jobs/broken.py:{line}" in command.errors.splitlines()[-1]
    assert "TypeError" in command.errors and "Traceback" not in command.errors
    gone(fleet)
