"""Control groups limit a process: those that it is in and their ancestors, of either version."""

import posixpath
from typing import Dict, List, NamedTuple, Tuple

from profilers.file_tree import FileTree, Unavailable


class Mount(NamedTuple):
    """A mounted cgroup hierarchy; controllers is empty for version 2."""

    root: str
    point: str
    controllers: str


def parse_membership(text: str) -> Dict[str, str]:
    """Parse /proc/self/cgroup into the path of each controller; "" stands for version 2."""
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def parse_mounts(text: str, controller: str) -> List[Mount]:
    """Parse /proc/self/mountinfo into the cgroup mounts that may have limits of a controller."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split(" ", 2)
        if kind == "cgroup2":
            mounts.append(Mount(fields[3], fields[4], ""))
        elif kind == "cgroup" and controller in options.split(","):
            mounts.append(Mount(fields[3], fields[4], controller))
    return mounts


def folders(mount: Mount, path: str) -> List[str]:
    """Folders of a cgroup and its ancestors that this mount shows, deepest first."""
    inside = posixpath.relpath(path, mount.root)
    outside = inside.startswith("..") or path.startswith("/..")  # of the mount, or of the namespace
    here = "" if inside == "." or outside else inside
    found = [posixpath.join(mount.point, here)] if here else []
    while posixpath.dirname(here):
        here = posixpath.dirname(here)
        found.append(posixpath.join(mount.point, here))
    return found + [mount.point]


def limiting(tree: FileTree, controller: str) -> List[Tuple[str, bool]]:
    """The folders of this process's cgroups and their ancestors, and whether each is of version 2.

    Empty where there are no cgroups.
    """
    try:
        paths = parse_membership(tree.text("proc/self/cgroup"))
        mounts = parse_mounts(tree.text("proc/self/mountinfo"), controller)
    except Unavailable:
        return []
    return [
        (folder.lstrip("/"), not mount.controllers)
        for mount in mounts
        if mount.controllers in paths
        for folder in folders(mount, paths[mount.controllers])
    ]
