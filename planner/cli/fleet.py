"""`planner init`, `check` and `trust` parse, call and render; they import what is heavy late."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from planner import paths
from planner.cli import options
from planner.errors import PlannerError
from planner.terminal import agrees, echo

if TYPE_CHECKING:
    from planner.fleet.device import Device
    from planner.remote.known_hosts import HostKey, KnownKey

#: How a device shows its own fingerprints.
OWN_FINGERPRINTS = "run there: for key in /etc/ssh/ssh_host_*.pub; do ssh-keygen -lf $key; done"


def init(path: Annotated[Path, Argument(help="Where to write it.")] = Path(paths.FLEET)) -> None:
    """Write a commented example of a fleet file."""
    from planner.fleet.device import example

    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(example())
    except FileExistsError:
        raise PlannerError(f"{path} exists already; name another file or remove it first") from None
    echo(f"wrote {path}: put your devices into it, then run `planner check`")


def check(
    fleet: options.FleetPath = Path(paths.FLEET),
    framework: options.Framework = None,
    job: options.Job = None,
    verbose: options.AllNotes = False,
    as_json: options.AsJson = False,
) -> None:
    """See whether every device can take part, and the remedy if not.

    Frameworks are started one after the other until one works, which takes a few seconds on a PC
    and up to a minute on a board. Where the fleet file names a folder of data, its files are
    counted. With --job, a device also needs what the requirements.txt of its project asks for. The
    exit code is 1 where a device cannot take part.
    """
    from backends.frameworks.base import FRAMEWORKS
    from planner import console
    from planner.check.run import check as examine
    from planner.fleet.file import load_fleet
    from planner.jobs.reference import find_job
    from planner.jobs.requirements import requirements_in
    from planner.views import check as view

    own = None if job is None else find_job(job)
    framework = framework or (own.framework if own else None)
    says = console.plain(stderr=True)
    required = requirements_in(own.project.folder, lambda left: says.print(left, soft_wrap=True)) if own else ()
    with console.status("checking the fleet") as on_progress:
        report = examine(load_fleet(fleet), [framework] if framework else FRAMEWORKS, on_progress, required)
    console.show(report.to_json() if as_json else view.render(report, verbose))
    if not all(report.able.values()):
        raise typer.Exit(1)


def trust(
    device: Annotated[str, Argument(help="A device of the fleet, or [user@]host[:port].")],
    fleet: options.FleetPath = Path(paths.FLEET),
    yes: Annotated[
        bool, Option("--yes", help="Store an unknown key without asking: its fingerprint was checked before.")
    ] = False,
    replace: Annotated[
        bool, Option("--replace", help="Store a changed key in place of the old one, without asking.")
    ] = False,
) -> None:
    """Show a host key's fingerprint and, if you agree, store it.

    A key that differs from the stored one is replaced with --replace only, or when you agree to
    just that.
    """
    from planner.remote import known_hosts
    from planner.remote.ssh_login import fetch_host_key

    key = fetch_host_key(_named_or_addressed(device, fleet))
    try:
        known_hosts.verify(key)
    except known_hosts.UnknownHostKeyError:
        echo(f"host key of {key.name}, unknown so far: {key.type}\n  {key.fingerprint}\nto compare, {OWN_FINGERPRINTS}")
        _agree(yes, "--yes", "Is this the key of the device itself? Store it?", key.name)
        known_hosts.store(key)
    except known_hosts.ChangedHostKeyError as changed:
        echo(_changed_text(key, changed.recorded))
        if yes and not replace:
            raise PlannerError(
                f"the host key of {key.name} has changed; --yes does not replace it, --replace does"
            ) from None
        _agree(replace, "--replace", "Is the key shown that of the device itself? Replace the stored one?", key.name)
        known_hosts.replace(key)
    else:
        echo(f"{key.name}: {key.fingerprint} was known already")
        return
    echo("stored")


def _changed_text(shown: "HostKey", stored: "KnownKey") -> str:
    return (
        f"WARNING: the host key of {shown.name} has changed\n"
        f"  stored: {stored.fingerprint} {stored.type} ({stored.path}:{stored.line})\n"
        f"  shown:  {shown.fingerprint} {shown.type}\n"
        "The device was installed anew, another one has its address, or someone intercepts the connection.\n"
        f"to compare, {OWN_FINGERPRINTS}"
    )


def _agree(given: bool, option: str, question: str, host: str) -> None:
    """Ask, unless an option has answered. Raises PlannerError for a no."""
    if not given and not agrees(question, option):
        raise PlannerError(f"the key of {host} was not stored")


def _named_or_addressed(text: str, path: Path) -> "Device":
    """A device of the fleet by its name, else a device at that address. Raises PlannerError."""
    from planner.fleet.device import device_at
    from planner.fleet.file import load_fleet

    if path.exists():
        named = [device for device in load_fleet(path).devices if device.name == text]
        if named:
            return named[0]
    try:
        return device_at(text)
    except ValueError as error:
        raise PlannerError(str(error)) from error
