"""A user's project folder is sent to devices, which get only the contents that they lack."""

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath

from backends.protocol.orders import AssembleProject, FindMissing, ProjectFile, StoreFile, cached_as
from planner.agents.call import Call
from planner.agents.client import AgentClient, stored_within_s
from planner.agents.exported import MARK, is_exported
from planner.errors import AgentError, ProjectError
from planner.paths import AUDIT, FLEET, PLAN, SAMPLE_EFFICIENCY
from planner.units import bytes_text
from profilers import text_files

#: More than this is data, for which there are other ways, or not a project's folder.
LIMIT_BYTES = 100_000_000
LIMIT_FILES = 10_000
IGNORE_FILE = ".plannerignore"
#: Names of folders that programs make anew.
_MADE_FOLDERS = ("__pycache__", "node_modules")
_MADE_FILES = ("*.pyc", "*.prom", "events.out.tfevents.*")
#: Names of what this program writes into the folder where it is called.
_OWN_FOLDERS = ("runs",)
_OWN_FILES = ("profile*.json", PLAN, FLEET, AUDIT, SAMPLE_EFFICIENCY, IGNORE_FILE)
#: Bytes of a file that may name others.
_MOST_OF_TEXT = 1_000_000
#: A walk over links ends here.
LIMIT_DEEP, LIMIT_ENTRIES = 64, 100_000
#: How many of the largest files an error names.
_NAMED = 5
#: How many files are on their way to a device at once, without an answer.
_AT_ONCE = 16
_FIND_TIMEOUT_S = 60.0
#: Device and inode of a real folder.
_Place = tuple[int, int]


@dataclass(frozen=True)
class Project:
    """The files of a folder as they were when it was read.

    contents: by SHA-256.
    outside: paths of links that lead out of the folder, or nowhere; they are left out.
    """

    folder: Path
    files: tuple[ProjectFile, ...]
    contents: Mapping[str, bytes] = field(repr=False)
    outside: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, command: Sequence[str] = ()) -> "Project":
        """Read a folder; command: the words of one that is to run in it.

        Left out are hidden folders, virtual environments, what Python and this program write (but
        an exported model that a file or the command names), and what the lines of .plannerignore
        match: names, or paths relative to the folder, with * and ?; a line that ends with a slash
        matches folders only.
        Raises ProjectError where it cannot be read, or is too large to be a project.
        """
        try:
            root = folder.resolve(strict=True)
            walk = _Walk(root, _patterns(root / IGNORE_FILE))
            found = _without_exports(dict(walk.files(root, (_place(root),))), " ".join(command))
            _check_size(folder, {path: file.stat().st_size for path, file in found.items()})
            read = {path: file.read_bytes() for path, file in sorted(found.items())}
        except OSError as error:
            raise ProjectError(f"{error.filename or folder}: {error.strerror}") from error
        digests = {path: hashlib.sha256(content).hexdigest() for path, content in read.items()}
        files = tuple(ProjectFile(path, digests[path], _mode(found[path])) for path in read)
        return cls(folder, files, {digests[path]: content for path, content in read.items()}, tuple(walk.outside))

    def with_file(self, path: str, content: bytes) -> "Project":
        """With one more file, which is not in its folder."""
        digest = hashlib.sha256(content).hexdigest()
        files = (*self.files, ProjectFile(path, digest, 0o644))
        return replace(self, files=files, contents={**self.contents, digest: content})

    @cached_property
    def fingerprint(self) -> str:
        """Equal for equal paths and contents."""
        lines = (f"{file.digest} {file.mode:o} {file.path}\0" for file in self.files)
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def send_project(agent: AgentClient, project: Project) -> str:
    """Send what the device lacks of a project; returns the path of the project's folder there.

    Errors of the device then name the files of this machine. Raises RemoteError.
    """
    waiting: deque[Call] = deque()
    for digest in agent.call(FindMissing(tuple(project.contents)), _FIND_TIMEOUT_S):
        content = project.contents.get(digest)
        if content is None:
            raise AgentError(f"{agent.name}: find missing: it asks for a file that is not of the project: {digest}")
        waiting.append(agent.start(StoreFile(cached_as(digest), len(content)), content))
        if len(waiting) == _AT_ONCE:
            waiting.popleft().result(stored_within_s(LIMIT_BYTES))
    for call in waiting:
        call.result(stored_within_s(LIMIT_BYTES))
    order = AssembleProject(f"project-{project.fingerprint}", project.files)
    path: str = agent.call(order, stored_within_s(LIMIT_BYTES))
    agent.stands_for(path, str(project.folder))
    return path


class _Walk:
    """Finds the files of a folder, over links that stay inside of it."""

    def __init__(self, root: Path, patterns: tuple[str, ...]) -> None:
        self._root = root
        self._patterns = patterns
        self._count = self._entries = 0
        self.outside: list[str] = []

    def files(
        self, folder: Path, above: tuple[_Place, ...], behind_link: set[_Place] | None = None
    ) -> Iterator[tuple[str, Path]]:
        """Paths relative to the root, and the files themselves.

        above: the places of the folder and of those that lead here.
        behind_link: of the folders found behind the link that led here; each is there once.
        """
        self._check_walk(folder, len(above))
        for path in sorted(folder.iterdir()):
            self._entries += 1
            relative = path.relative_to(self._root).as_posix()
            if self._left_out(path, relative):
                continue
            if path.is_symlink() and not self._stays_inside(path):
                self.outside.append(relative)
            elif path.is_dir():
                place, found = _place(path), behind_link
                if found is None and path.is_symlink():
                    found = set(above)  # a link to a folder that it is in has no end
                if found is None or place not in found:
                    if found is not None:
                        found.add(place)
                    yield from self.files(path, (*above, place), found)
            elif path.is_file():
                self._count += 1
                if self._count > LIMIT_FILES:
                    raise ProjectError(
                        f"{self._root} has more than {LIMIT_FILES} files; is it the folder of your project alone? "
                        f"Name in {self._root / IGNORE_FILE} what is not to be sent"
                    )
                yield relative, path

    def _check_walk(self, folder: Path, deep: int) -> None:
        problem = f"is more than {LIMIT_DEEP} folders deep" if deep > LIMIT_DEEP else ""
        if self._entries > LIMIT_ENTRIES:
            problem = f"makes more than {LIMIT_ENTRIES} entries, links included"
        if problem:
            raise ProjectError(
                f"{folder} {problem}; is {self._root} the folder of your project alone? "
                f"Name in {self._root / IGNORE_FILE} what is not to be sent"
            )

    def _left_out(self, path: Path, relative: str) -> bool:
        name, is_top = path.name, "/" not in relative
        if path.is_dir():
            made = name.startswith(".") or name in _MADE_FOLDERS or (path / "pyvenv.cfg").exists()
            return made or (is_top and name in _OWN_FOLDERS) or self._ignored(relative, is_folder=True)
        made = any(fnmatchcase(name, pattern) for pattern in (*_MADE_FILES, *(_OWN_FILES if is_top else ())))
        return made or self._ignored(relative, is_folder=False)

    def _ignored(self, relative: str, is_folder: bool) -> bool:
        name = PurePosixPath(relative).name
        patterns = (pattern.rstrip("/") for pattern in self._patterns if is_folder or not pattern.endswith("/"))
        return any(fnmatchcase(name, pattern) or fnmatchcase(relative, pattern) for pattern in patterns)

    def _stays_inside(self, link: Path) -> bool:
        try:
            return link.resolve(strict=True).is_relative_to(self._root)
        except (OSError, RuntimeError):  # it leads nowhere, or in a circle
            return False


def _without_exports(files: Mapping[str, Path], command: str) -> dict[str, Path]:
    """The files but for exported models, unless a file names them: it may load them."""
    exported = {path for path, file in files.items() if is_exported(file)}
    texts = [command.encode("utf-8", "surrogateescape")]
    if exported:
        small = (file for path, file in files.items() if path not in exported and file.stat().st_size < _MOST_OF_TEXT)
        texts += (text for text in (file.read_bytes() for file in small) if MARK not in text)
    unnamed = {path for path in exported if not any(os.fsencode(files[path].name) in text for text in texts)}
    return {path: file for path, file in files.items() if path not in unnamed}


def _place(folder: Path) -> _Place:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _patterns(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    content = path.read_bytes()
    encoding, mark_bytes = text_files.encoding_of(content)
    unreadable = "surrogateescape" if encoding == "utf-8" else "replace"  # names of files are any bytes
    lines = (line.strip() for line in content[mark_bytes:].decode(encoding, unreadable).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _check_size(folder: Path, sizes: Mapping[str, int]) -> None:
    total = sum(sizes.values())
    if total > LIMIT_BYTES:
        largest = sorted(sizes, key=lambda path: -sizes[path])[:_NAMED]
        named = ", ".join(f"{path} ({bytes_text(sizes[path])})" for path in largest)
        raise ProjectError(
            f"{folder}: {bytes_text(total)} of files are more than the {bytes_text(LIMIT_BYTES)} that are sent; "
            f"the largest are {named}; name in {folder / IGNORE_FILE} what is not to be sent"
        )


def _mode(path: Path) -> int:
    """The permissions that count: whether it can be executed."""
    return 0o755 if path.stat().st_mode & 0o100 else 0o644
