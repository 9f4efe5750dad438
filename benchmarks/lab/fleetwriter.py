"""A lab's fleet file is written as an operator would write that of real devices."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from profilers.file_tree import ROOT_VARIABLE

from . import sshd
from .errors import LabError
from .spec import DeviceSpec
from .state import LabNames, LabState

MARK = "# Written by `python -m benchmarks.lab up`"


def fleet_text(names: LabNames, state: LabState, devices: Sequence[DeviceSpec]) -> str:
    """The fleet file of these devices, without their processors and rates."""
    head = f"{MARK}, which writes it again. {_owner(names)}\n"
    watts = "# Watts are nameplate figures of such boards: nothing here measures power.\n"
    config = f"ssh_config = {_quoted(str(sshd.config_of(names.folder)))}\n"
    return "\n".join([head + watts + config, *(_entry(names, state, device) for device in devices)])


def require_ours(path: Path, names: LabNames) -> None:
    """Raise LabError for a fleet file that cannot be written or is not this lab's."""
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
    if _owner(names) not in first:
        raise LabError(f"{path} exists and is another lab's; name another file with --out, or remove it")


def _entry(names: LabNames, state: LabState, device: DeviceSpec) -> str:
    environment = {
        "XDG_CACHE_HOME": str(names.of(device.name) / "cache"),
        ROOT_VARIABLE: str(names.tree(device.name)),
        "CUDA_VISIBLE_DEVICES": "",  # a GPU would be equally fast for each device
    }
    values: dict[str, str | float | None] = {
        "address": f"root@{state.address(state.of(device.name).host)}",
        "key": str(names.client),
        "kind": device.kind,
        "python": sys.executable,
        "idle_watts": device.idle_watts,
        "max_watts": device.max_watts,
    }
    lines = [f"{key} = {_quoted(value)}" for key, value in values.items() if value is not None]
    pairs = ", ".join(f"{key} = {_quoted(value)}" for key, value in environment.items())
    return "\n".join([f"[devices.{device.name}]", *lines, f"environment = {{ {pairs} }}", ""])


def _owner(names: LabNames) -> str:
    return f'Devices of the lab "{names.lab}".'


def _quoted(value: str | float) -> str:
    """A value in TOML, whose escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
