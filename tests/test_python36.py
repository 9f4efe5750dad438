"""What ships to devices, under a real Python 3.6 where this machine has one."""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.data.dataset import Dataset
from backends.network import framing
from backends.protocol.json_messages import encode
from backends.protocol.member_specs import HostAddress, ReplicaSpec
from backends.protocol.orders import CollectFacts
from backends.strategies.presets import PRESETS
from backends.training.run_orders import HostRun
from planner.agents.bundle import agent_archive
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient
from planner.fleet.device import Device, Interpreter
from planner.remote.local import LocalRemote
from planner.train import orders as training
from planner.train.orders import Options
from planner.train.training_data import Placed, ShippedImages, packed
from tests.installed import old_path, old_python
from tests.planner.plans import plan, planned
from tests.running import HANG_S

pytestmark = pytest.mark.python36

ROOT = Path(__file__).resolve().parent.parent
NUMPY = "numpy==1.19.5"
NEEDS_A_FRAMEWORK = ("backends.pytorch", "backends.tensorflow")
STRATEGIES = (
    *PRESETS,
    "parameter-server:batching=dynamic,aggregation=weighted,optimizer=lars",
    "allreduce:compressor=float16",
)


def run(*command: str | Path, timeout_s: float = HANG_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout_s)


def is_python36(path: str | Path) -> bool:
    """Whether it is there, runs (a pyenv shim may not) and is what it says."""
    if shutil.which(path) is None:
        return False
    return run(path, "-c", "import sys; sys.exit(sys.version_info[:2] != (3, 6))").returncode == 0


def find_python36() -> Path | None:
    candidates = [found] if (found := shutil.which("python3.6")) else []
    if pyenv := shutil.which("pyenv"):
        versions = Path(run(pyenv, "root").stdout.strip(), "versions")
        candidates += sorted(map(str, versions.glob("3.6*/bin/python")))
    return next((Path(path) for path in candidates if is_python36(path)), None)


@pytest.fixture(scope="module")
def python36(pytestconfig: pytest.Config) -> Path:
    """The Python 3.6 of `make old-python`, or else one in a virtual environment with numpy.

    That environment is made once and kept in pytest's cache.
    """
    if is_python36(old_path()):
        return old_path()
    base = find_python36()
    if base is None:
        pytest.skip("no Python 3.6 on this machine (looked for python3.6 and pyenv's versions)")
    folder = pytestconfig.cache.mkdir("python36")
    python, ready = folder / "venv/bin/python", folder / "ready"
    with (folder / "lock").open("w") as lock:  # the workers of pytest-xdist share the folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (ready.exists() and is_python36(python)):
            run(base, "-m", "venv", "--clear", folder / "venv")
            installed = run(python, "-m", "pip", "install", "--quiet", NUMPY, timeout_s=HANG_S)
            if installed.returncode:
                pytest.skip(f"Python 3.6 is here, but {NUMPY} cannot be installed: {installed.stderr[-300:]}")
            ready.touch()
    return python


def shipped_modules(needing: tuple[str, ...] = ()) -> list[str]:
    """Those that need no framework, or those of one."""
    files = [path for package in ("profilers", "backends") for path in (ROOT / package).rglob("*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    wanted = {name for name in names if name.startswith(needing or NEEDS_A_FRAMEWORK) == bool(needing)}
    return sorted(name.removesuffix(".__init__") for name in wanted)


def test_every_module_imports(python36: Path) -> None:
    lines = "\n".join(f"import {name}" for name in shipped_modules())
    done = run(python36, "-B", "-c", lines)
    assert done.returncode == 0, done.stderr


def test_every_module_for_tensorflow_imports_beside_the_tensorflow_of_its_time() -> None:
    lines = "\n".join(f"import {name}" for name in shipped_modules(("backends.tensorflow",)))
    done = run(old_python(), "-B", "-c", lines)
    assert done.returncode == 0, done.stderr


def test_the_agent_answers_and_ends_with_its_input(python36: Path, tmp_path: Path) -> None:
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(agent_archive()[0])
    agent = subprocess.Popen(
        [python36, archive],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        hello = json.loads(agent.stdout.readline())["hello"]
        agent.stdin.write(json.dumps({"id": 1, "order": encode(CollectFacts())}) + "\n")
        agent.stdin.flush()
        answer = json.loads(agent.stdout.readline())
        _, errors = agent.communicate(timeout=HANG_S)
    assert hello["python"].startswith("3.6")
    assert hello["pid"] == agent.pid
    assert answer["id"] == 1
    assert answer["result"]["python"].startswith("3.6"), errors


@pytest.mark.parametrize("locale", ["C", "POSIX", "de_DE"])
def test_files_may_have_any_names_whatever_the_locale(python36: Path, tmp_path: Path, locale: str) -> None:
    cache = tmp_path / "für ☃"
    environment = {"LC_ALL": locale, "XDG_CACHE_HOME": str(cache)}
    device = Device(name="tx2", interpreter=Interpreter(str(python36), environment=environment))
    remote = LocalRemote("tx2")
    try:
        agent = AgentClient.launch(device, remote)
        path = agent.store("model-1/größe.py", b"x = 1")
        assert path == str(cache / "planner/model-1/größe.py") and Path(path).read_bytes() == b"x = 1"
    finally:
        remote.close()


def orders(name: str, folder: Path) -> dict[str, Any]:
    """What the planner tells the host and two workers of a run.

    Least squares can learn from their data.
    """
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (120, 2, 2, 1), np.uint8)
    labels = (pixels.reshape(120, -1).sum(axis=1) > 510).astype(np.int64)
    workers = [planned(name)._replace(framework="least_squares") for name in ("nano", "tx2")]
    two = plan(*workers, steps=24, batch=8, strategy=name)
    options = Options("data", rate=0.05, keep_weights=False)
    authority, peers = Authority(), not two.run.strategy.through_server
    shard = packed(pixels, labels)
    path = folder / shard.name
    path.write_bytes(shard.content)
    run = training.run_spec(two, options, ShippedImages(Dataset(pixels, labels, pixels, labels, 2)), None, None)
    host = HostRun("127.0.0.1", authority.identity(framing.SERVER), run)
    members = []
    for worker in two.workers:
        placed = Placed(ReplicaSpec("least_squares", two.run.model, (2, 2, 1), 2), str(path), str(path))
        member = training.member(two, options, worker.name, placed, folder)
        to_host = HostAddress("127.0.0.1", 0, authority.identity(worker.name, listens=peers), 10.0)
        members.append(encode(training.role(two, options, member, to_host, "127.0.0.1", 60.0)))
    return {"name": name, "host": encode(host), "members": members}


def test_every_preset_trains_with_its_workers(python36: Path, tmp_path: Path) -> None:
    """The planner's own orders work on the oldest Python there is.

    They are carried out by a host and two workers with links between them.
    """
    told = json.dumps([orders(name, tmp_path) for name in STRATEGIES])
    done = subprocess.run(
        [python36, "-B", ROOT / "tests" / "orders36.py"],
        input=told,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    accounts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [account["name"] for account in accounts] == list(STRATEGIES), done.stderr
    for account in accounts:
        assert account.get("finished"), account
        assert account["done"] == 24
        assert sum(each["steps"] for each in account["workers"].values()) >= 24
