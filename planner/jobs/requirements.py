"""What a job's requirements.txt asks for, beside what a device has installed. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from planner.errors import PlanError

#: In the folder of the job's project, in the form that pip reads.
FILE = "requirements.txt"


def requirements_in(folder: Path) -> tuple[Requirement, ...]:
    """The requirements of a project; none without such a file.

    Lines that are options of pip, such as -r or --index-url, are left to pip. Raises PlanError that
    names the line of anything else that is no requirement.
    """
    path = folder / FILE
    if not path.is_file():
        return ()
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = line.partition(" #")[0].strip()
        if not text or text.startswith(("#", "-")):
            continue
        try:
            found.append(Requirement(text))
        except InvalidRequirement as error:
            raise PlanError(f"{path}:{number}: {text!r} is no requirement: {error}") from error
    return tuple(found)


def unmet(requirements: Sequence[Requirement], installed: Mapping[str, str | None]) -> list[str]:
    """What is missing or of another version, each as it is to be shown.

    installed: versions by name. A requirement with a marker, for some systems only, is not judged:
    the device's own Python would have to.
    """
    found = []
    for requirement in requirements:
        if requirement.marker is not None:
            continue
        version = installed.get(requirement.name)
        if version is None:
            found.append(f"{requirement} is not installed")
        elif not _fits(requirement, version):
            found.append(f"{requirement.name} is {version}, and {requirement.specifier} is asked for")
    return found


def _fits(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:  # of a vendor's own scheme, which nobody can compare
        return True
