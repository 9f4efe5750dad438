"""The fleet file of a lab: what an operator would write about devices that are real."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.errors import LabError
from planner.lab import sshd
from planner.lab.spec import DeviceSpec
from planner.lab.state import LabState, Names
from profilers.tree import ROOT_VARIABLE

MARK = "# Written by `planner lab up`"


def fleet_text(where: Names, state: LabState, devices: Sequence[DeviceSpec]) -> str:
    """The fleet file of these devices, in their order. It tells nothing of processors, rates and power models."""
    head = f"{MARK}, which writes it again. {_owner(where)}\n"
    config = f"ssh_config = {_quoted(str(sshd.config_of(where.folder)))}\n"
    return "\n".join([head + config, *(_entry(where, state, device) for device in devices)])


def require_ours(path: Path, where: Names) -> None:
    """Raises LabError where the fleet file cannot be written, or one is in the way that this lab has not written."""
    if not path.parent.is_dir():
        raise LabError(f"{path}: there is no folder {path.parent}; make it, or name another file with --out")
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.readline()
    except FileNotFoundError:
        return
    except OSError as error:
        raise LabError(f"{path}: cannot be read ({error.strerror}); name another file with --out") from error
    if not first.startswith(MARK):
        raise LabError(f"{path} exists and no lab has written it; name another file with --out")
    if _owner(where) not in first:
        raise LabError(f"{path} exists and is another lab's; name another file with --out, or remove it")


def _entry(where: Names, state: LabState, device: DeviceSpec) -> str:
    environment = {
        "XDG_CACHE_HOME": str(where.of(device.name) / "cache"),
        ROOT_VARIABLE: str(where.tree(device.name)),
        "CUDA_VISIBLE_DEVICES": "",  # a GPU is the machine's, and as fast for each device
    }
    values: dict[str, str | float | None] = {
        "address": f"root@{state.address(state.of(device.name).host)}",
        "key": str(where.client),
        "kind": device.kind,
        "python": sys.executable,
        "idle_watts": device.idle_watts,
        "max_watts": device.max_watts,
    }
    lines = [f"{key} = {_quoted(value)}" for key, value in values.items() if value is not None]
    pairs = ", ".join(f"{key} = {_quoted(value)}" for key, value in environment.items())
    return "\n".join([f"[devices.{device.name}]", *lines, f"environment = {{ {pairs} }}", ""])


def _owner(where: Names) -> str:
    return f'Devices of the lab "{where.lab}".'


def _quoted(value: str | float) -> str:
    """As TOML has it: its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
