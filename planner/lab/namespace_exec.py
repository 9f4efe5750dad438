"""A program runs inside a lab device, in its network namespace and control groups.

Its /sys shows only these.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: A shell in the network namespace and a new mount namespace. It joins the control groups, mounts
#: the /sys of its network with the machine's control groups, and executes the program.
_ENTER = """\
cgroups=$1 shadow=$2; shift 2
while [ "$1" != -- ]; do echo $$ >"$1" || exit; shift; done; shift
mount --rbind /sys/fs/cgroup "$cgroups" && mount -t sysfs sysfs /sys && mount --rbind "$cgroups" /sys/fs/cgroup &&
mount --bind "$shadow" /etc/shadow && exec "$@"
"""

#: Without PAM, sshd refuses users with a locked password, as root often has; "*" is not locked.
_SHADOW = "root:*:1:0:99999:7:::\n"


class Confinement(NamedTuple):
    """The limits within which a program runs.

    namespace: its network namespace.
    procs_files: the ``cgroup.procs`` files of the control groups to join.
    folder: for logs and mounts.
    """

    namespace: str
    procs_files: Sequence[Path]
    folder: Path


def start(
    within: Confinement, program: str, command: Sequence[str], environment: Mapping[str, str] | None = None
) -> None:
    """Start a program in the background; its output goes to PROGRAM.log in the folder."""
    cgroups, shadow = within.folder / "cgroup", within.folder / "shadow"
    cgroups.mkdir(parents=True, exist_ok=True)
    shadow.write_text(_SHADOW)
    shadow.chmod(0o600)
    shell = ["unshare", "--mount", "sh", "-c", _ENTER, "enter", str(cgroups), str(shadow)]
    enter = ["setsid", "--fork", "nsenter", f"--net=/run/netns/{within.namespace}", *shell]
    enter += [*map(str, within.procs_files), "--"]
    with _log(within.folder, program).open("wb") as log:
        subprocess.run(
            [*enter, *command], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )


def last_log_line(folder: Path, program: str) -> str:
    """The last line in the log of a program."""
    lines = _log(folder, program).read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _log(folder: Path, program: str) -> Path:
    return folder / f"{program}.log"
