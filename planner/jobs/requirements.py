"""Packages that a job's requirements.txt names are compared with those of a device. Pure."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from planner.errors import PlanError
from planner.jobs import pip_lines

#: In the folder of the job's project, in the form that pip reads.
FILE = "requirements.txt"
_SCHEME = re.compile(r"[a-z][a-z+]*:/|file:")
_OF_CONDA = re.compile(r"[\w.-]+=[^=]")


def requirements_in(folder: Path, on_left: Callable[[str], None] = lambda text: None) -> tuple[Requirement, ...]:
    """The requirements of a project, with their constraints; none without such a file.

    on_left: told each line that only pip can judge: an index, or a path or a URL without a name.
    Raises PlanError that names the line of what is no requirement.
    """
    path = folder / FILE
    if not path.is_file():
        return ()
    found: list[Requirement] = []
    constraints: list[Requirement] = []
    for line in pip_lines.read(path):
        if line.text in pip_lines.SOURCES:
            on_left(f"{line.where}: {line.text} is left to pip: add it to each `pip install` that is named here")
        elif line.is_location or line.text.startswith(("-e ", "-r ", "-c ")):
            on_left(f"{line.where}: {line.text} is left to pip: what it installs is not known here")
        else:
            (constraints if line.constrains else found).append(_requirement(line))
    marked = []
    for requirement, constraint in itertools.product(found, constraints):
        if _key(constraint) == _key(requirement) and constraint.marker is None:
            requirement.specifier &= constraint.specifier
        elif _key(constraint) == _key(requirement):
            marked.append(_narrowed(requirement, constraint))
    return (*found, *marked)


def _key(requirement: Requirement) -> str:
    return canonicalize_name(requirement.name)


def _narrowed(requirement: Requirement, constraint: Requirement) -> Requirement:
    """A constraint with a marker, as a requirement that holds where both markers do."""
    narrowed = Requirement(f"{requirement.name}{constraint.specifier}")
    markers = [f"({each.marker})" for each in (requirement, constraint) if each.marker is not None]
    narrowed.marker = Marker(" and ".join(markers)) if markers else None
    return narrowed


def _requirement(line: pip_lines.PipLine) -> Requirement:
    try:
        found = Requirement(line.text)
        if found.url and not _SCHEME.match(found.url):
            raise InvalidRequirement("its URL has no scheme; write git+ssh://git@HOST/PATH for a repository")
        return found
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]  # the others point at a column
        form = "conda's form, which pip does not read" if _OF_CONDA.match(line.text) else f"no requirement: {reason}"
        raise PlanError(f"{line.where}: {line.text!r} is {form}") from error


def applicable(
    requirements: Sequence[Requirement], python: str, machine: str, kernel: str = "Linux"
) -> list[Requirement]:
    """Those whose markers hold on a device, one of each name.

    python: its version, as 3.10.12. kernel: its name and release, as Linux 5.15.148-tegra.
    """
    found: dict[str, Requirement] = {}
    for requirement in requirements:
        if applies(requirement, python, machine, kernel):
            known = found.setdefault(_key(requirement), Requirement(str(requirement)))
            known.specifier &= requirement.specifier
            known.extras |= requirement.extras
    return list(found.values())


def applies(requirement: Requirement, python: str, machine: str, kernel: str = "Linux") -> bool:
    """Whether a requirement's marker holds on a device."""
    if requirement.marker is None:
        return True
    system, _, release = kernel.partition(" ")
    about = {
        "implementation_name": "cpython", "implementation_version": python, "os_name": "posix",
        "platform_machine": machine, "platform_python_implementation": "CPython", "platform_release": release,
        "platform_system": system, "sys_platform": system.lower(),
        "python_full_version": python, "python_version": ".".join(python.split(".")[:2]),
    }  # fmt: skip
    return requirement.marker.evaluate({**about, "extra": ""})


def unmet(requirements: Sequence[Requirement], installed: Mapping[str, str | None]) -> list[str]:
    """What is missing or of another version, each as it is to be shown.

    installed: versions by name. Of a requirement with a URL only the name counts.
    """
    found = []
    for requirement in requirements:
        version = installed.get(requirement.name)
        if version is None:
            found.append(f"{pip_words(requirement)} is not installed")
        elif not _fits(requirement, version):
            found.append(f"{requirement.name} is {version}, and {requirement.specifier} is asked for")
    return found


def pip_words(requirement: Requirement) -> str:
    """The requirement without its URL, which may name a folder of another machine."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def is_vendors_build(version: str | None) -> bool:
    """Whether a package is not from PyPI, which takes no local versions and no other schemes."""
    if version is None:
        return False
    try:
        return Version(version).local is not None
    except InvalidVersion:
        return True


def asks_for_vendors_build(requirement: Requirement) -> bool:
    """Whether only a local version fits, such as 2.1.0+cu118, which PyPI does not have."""
    return any("+" in each.version and each.operator.startswith("==") for each in requirement.specifier)


def _fits(requirement: Requirement, version: str) -> bool:
    try:
        found = Version(version)
    except InvalidVersion:  # of a vendor's own scheme, which nobody can compare
        return True
    if requirement.specifier.contains(found, prereleases=True):
        return True
    # NVIDIA builds 2.1 from a commit shortly before it, and calls it 2.1.0a0+41361538.nv23.06
    return found.is_prerelease and found.local is not None and requirement.specifier.contains(found.base_version)
