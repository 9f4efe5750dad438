"""A program runs in a device's network namespace and control groups; its /sys shows only these."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

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


def start(
    namespace: str, procs_files: Iterable[Path], folder: Path, program: str, command: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Start a program in the background, in a namespace and control groups.

    procs_files: the ``cgroup.procs`` files of the control groups.
    folder: for mounts and for the program's output, PROGRAM.log.
    """
    cgroups, shadow = folder / "cgroup", folder / "shadow"
    cgroups.mkdir(parents=True, exist_ok=True)
    shadow.write_text(_SHADOW)
    shadow.chmod(0o600)
    shell = ["unshare", "--mount", "sh", "-c", _ENTER, "enter", str(cgroups), str(shadow)]
    enter = ["setsid", "--fork", "nsenter", f"--net=/run/netns/{namespace}", *shell]
    enter += [*map(str, procs_files), "--"]
    enter += command
    with _log(folder, program).open("wb") as log:
        subprocess.run(enter, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def last_log_line(folder: Path, program: str) -> str:
    lines = _log(folder, program).read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _log(folder: Path, program: str) -> Path:
    return folder / f"{program}.log"
