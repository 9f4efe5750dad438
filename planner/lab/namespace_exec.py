"""Start a program in a device: in its network namespace and its control groups, with a /sys that shows only these."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: A shell in the network namespace and a mount namespace of its own. It joins the control groups, mounts the /sys of
#: its network with the control groups of the machine, and becomes the program.
_ENTER = """\
cgroups=$1 shadow=$2; shift 2
while [ "$1" != -- ]; do echo $$ >"$1" || exit; shift; done; shift
mount --rbind /sys/fs/cgroup "$cgroups" && mount -t sysfs sysfs /sys && mount --rbind "$cgroups" /sys/fs/cgroup &&
mount --bind "$shadow" /etc/shadow && exec "$@"
"""

#: Without PAM, sshd lets nobody in whose password is locked, as root's often is; "*" is no password and not locked.
_SHADOW = "root:*:1:0:99999:7:::\n"


class Place(NamedTuple):
    """Where to run: a namespace, the ``cgroup.procs`` files to join, a folder for what is mounted and logged."""

    space: str
    entrances: Sequence[Path]
    folder: Path


def start(place: Place, program: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Start a program in the background, the child of no one here. What it says goes to PROGRAM.log in the folder."""
    cgroups, shadow = place.folder / "cgroup", place.folder / "shadow"
    cgroups.mkdir(parents=True, exist_ok=True)
    shadow.write_text(_SHADOW)
    shadow.chmod(0o600)
    shell = ["unshare", "--mount", "sh", "-c", _ENTER, "enter", str(cgroups), str(shadow)]
    enter = ["setsid", "--fork", "nsenter", f"--net=/run/netns/{place.space}", *shell, *map(str, place.entrances), "--"]
    with _log(place.folder, program).open("wb") as log:
        subprocess.run(
            [*enter, *command], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )


def last_words(folder: Path, program: str) -> str:
    """The last line that a program has said, which ``start`` has started there."""
    lines = _log(folder, program).read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _log(folder: Path, program: str) -> Path:
    return folder / f"{program}.log"
