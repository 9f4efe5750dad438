"""A lab requires Linux, root, shapers in the kernel, and programs, which its devices run too."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .errors import LabError

#: Programs, each with its package in Debian and Ubuntu.
PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "iperf3": "iperf3",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setsid": "util-linux",
    "mount": "mount",
}
#: A shell in the network namespace and a new mount namespace. It joins the control groups, mounts
#: the /sys of its network, with the machine's control groups where a folder for them is named, and
#: executes the program.
_ENTER = """\
cgroups=$1 shadow=$2; shift 2
while [ "$1" != -- ]; do echo $$ >"$1" || exit; shift; done; shift
[ -z "$cgroups" ] || mount --rbind /sys/fs/cgroup "$cgroups" || exit
mount -t sysfs sysfs /sys || exit
[ -z "$cgroups" ] || mount --rbind "$cgroups" /sys/fs/cgroup || exit
mount --bind "$shadow" /etc/shadow && exec "$@"
"""

#: Without PAM, sshd refuses users with a locked password, as root often has; "*" is not locked.
_SHADOW = "root:*:1:0:99999:7:::\n"


def find_program(name: str) -> str | None:
    """The path of a program; sshd is often outside of PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def run_program(program: str, *arguments: str) -> str:
    """The output of a program. Raises LabError with what it says where it fails."""
    done = subprocess.run([find_program(program) or program, *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise LabError(f"`{' '.join((program, *arguments))}` failed: {said}")
    return done.stdout


def require_machine() -> None:
    """Raise LabError, with what to install or do, if this machine cannot host a lab."""
    if sys.platform != "linux":
        raise LabError(f"a lab needs Linux, this is {sys.platform}; run it in a virtual machine with Linux")
    if os.geteuid() != 0:
        raise LabError("a lab needs root for its networks and control groups; run it with sudo")
    missing = [name for name in PACKAGES if find_program(name) is None]
    if missing:
        packages = dict.fromkeys(PACKAGES[name] for name in missing)
        raise LabError(f"not installed: {', '.join(missing)}; remedy: apt install {' '.join(packages)}")
    if not _runs("unshare", "--mount", "--net", "true"):
        raise LabError("root may make no namespaces here; is this a container? start it with --privileged")


def require_shaper(modules: Sequence[str], commands: Iterable[Sequence[str]], otherwise: str = "") -> None:
    """Raise LabError, with kernel modules or another remedy, if commands of tc fail for lo."""
    lines = "\n".join(" ".join(command) for command in commands)
    if not _runs("unshare", "--net", str(find_program("tc")), "-batch", "-", said=lines):
        remedy = f"load them with `modprobe -a {' '.join(modules)}`{otherwise}"
        raise LabError(f"this kernel does not shape with {', '.join(modules)}; {remedy}")


def start_inside(
    namespace: str, procs_files: Iterable[Path], folder: Path, program: str, command: Sequence[str],
    environment: Mapping[str, str] | None = None, *, sees_cgroups: bool = True,
) -> None:  # fmt: skip
    """Start a program in the background, in a namespace and control groups.

    procs_files: the ``cgroup.procs`` files of the control groups.
    folder: for mounts and for the program's output, PROGRAM.log.
    sees_cgroups: whether the program can read the control groups, and so what limits it.
    """
    cgroups, shadow = folder / "cgroup", folder / "shadow"
    cgroups.mkdir(parents=True, exist_ok=True)
    shadow.write_text(_SHADOW)
    shadow.chmod(0o600)
    shell = ["unshare", "--mount", "sh", "-c", _ENTER, "enter", str(cgroups) if sees_cgroups else "", str(shadow)]
    enter = ["setsid", "--fork", "nsenter", f"--net=/run/netns/{namespace}", *shell]
    enter += [*map(str, procs_files), "--"]
    enter += command
    with _log(folder, program).open("wb") as log:
        subprocess.run(enter, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def last_log_line(folder: Path, program: str) -> str:
    lines = _log(folder, program).read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _runs(*command: str, said: str = "") -> bool:
    return subprocess.run(command, check=False, capture_output=True, text=True, input=said).returncode == 0


def _log(folder: Path, program: str) -> Path:
    return folder / f"{program}.log"
