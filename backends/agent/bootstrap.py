"""The bootstrap starts the agent on a device, where its file has to be brought first.

Its source travels to any Python, which it names where it is too old, and imports nothing of ours.
It reads raw bytes only, so that nothing meant for the agent is swallowed. Only a file with the
right content is started, from a folder in which nobody else can put another in its place.
"""

import contextlib
import hashlib
import os
import stat
import sys

ROOT = 0
FOLDER_MODE, FILE_MODE = 0o700, 0o600
PROGRAMS = ("/opt/homebrew/bin", "/usr/local/bin")


def say(text):
    # type: (str) -> None
    """One line to the operator; cut in two here, because a terminal shows this text as well."""
    os.write(1, ("planner" + ":" + text + "\n").encode())


def refuse(text):
    # type: (str) -> None
    say(text)
    sys.exit(1)


def read(size):
    # type: (int) -> bytes
    data = b""
    while len(data) < size:
        part = os.read(0, min(size - len(data), 1 << 20))
        if not part:
            refuse("cut")
        data += part
    return data


def unsafe(folder, home):
    # type: (str, str) -> str
    """Why somebody else could change what is in a folder, or ""; sshd judges keys by such a rule.

    Checked are the folder and those that it is in, up to the home or the root, links included.
    home: of the user, who may have none.
    """
    last = os.path.realpath(home) if os.path.isabs(home) else os.sep
    for place in (os.path.abspath(folder), os.path.realpath(folder)):
        reason = of_place(place, is_parent=False)
        while not reason and place not in (last, os.sep):
            place = os.path.dirname(place)
            reason = of_place(place, is_parent=True)
        if reason:
            return reason
    return ""


def of_place(place, is_parent):
    # type: (str, bool) -> str
    """Why somebody else could change what is in one folder, or that a link leads elsewhere."""
    found = os.lstat(place)
    if found.st_uid not in (ROOT, os.geteuid()):
        return "%s belongs to user %d" % (place, found.st_uid)
    keeps_owners = is_parent and found.st_mode & stat.S_ISVTX  # as /tmp does
    if not stat.S_ISLNK(found.st_mode) and others_write(found) and not keeps_owners:
        return "other users may write to %s" % place
    return ""


def others_write(found):
    # type: (os.stat_result) -> bool
    if not found.st_mode & stat.S_IWGRP:
        return bool(found.st_mode & stat.S_IWOTH)
    return bool(found.st_mode & stat.S_IWOTH) or not is_private(found.st_gid)


def is_private(number):
    # type: (int) -> bool
    """Whether a group is this user's alone, on which a umask of 002 relies."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def is_whole(path, digest):
    # type: (str, str) -> bool
    """Whether a file, and no link or pipe, has the content with that SHA-256."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would wait for a writer
        with open(descriptor, "rb") as stream:
            return stat.S_ISREG(os.fstat(descriptor).st_mode) and hashlib.sha256(stream.read()).hexdigest() == digest
    except OSError:
        return False


def fetch(path, size):
    # type: (str, int) -> None
    part = "%s.%d" % (path, os.getpid())
    with open(part, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, FILE_MODE)) as file:
        try:
            say("need")
            file.write(read(size))
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.unlink(part)


def claim(path):
    # type: (str) -> list[str]
    """Claim the file as ``claims`` does; returns the descriptor and the name of the claim."""
    import fcntl
    import tempfile

    folder = os.path.dirname(path)
    try:
        descriptor, hidden = tempfile.mkstemp(prefix=".claims-", dir=folder)
        shown = os.path.join(folder, os.path.basename(hidden)[1:])
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, os.path.basename(path).encode() + b"\n")
        os.rename(hidden, shown)
        os.set_inheritable(descriptor, True)
        return [str(descriptor), shown]
    except OSError:
        return []


def cache_home():
    # type: () -> str
    """XDG_CACHE_HOME, .cache in the home, or a temporary folder for a user without a home."""
    told, home = os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~")
    if os.path.isabs(told):
        return told
    usual = os.path.join(home, ".cache")
    if os.path.isabs(home) and (os.path.isdir(usual) or os.access(home, os.W_OK)):
        return usual
    import tempfile

    return os.path.join(tempfile.gettempdir(), "planner-%d" % os.geteuid())


def names_any_file():
    # type: () -> bool
    """Whether the locale of the variables is there, and its encoding has every sign."""
    import locale

    try:
        locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        return False
    return locale.nl_langinfo(locale.CODESET).upper() == "UTF-8"


def settle():
    # type: () -> None
    """Tell the agent, and what it runs, the cache, and a home and a name where there are none.

    In the locale C, Python 3.6 takes names of files for ASCII.
    """
    import pwd

    if not names_any_file():
        os.environ["LC_ALL"], os.environ["PYTHONUTF8"] = "C.UTF-8", "1"

    cache = os.environ["XDG_CACHE_HOME"] = cache_home()
    if not os.path.isabs(os.path.expanduser("~")):
        os.environ["HOME"] = cache
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:  # as in a container that runs as a number
        os.environ.setdefault("LOGNAME", "user-%d" % os.getuid())


def find_programs():
    # type: () -> None
    """Add to PATH where Homebrew puts programs, which a Mac's sshd leaves out."""
    known = os.environ.get("PATH", os.defpath).split(os.pathsep)
    more = [folder for folder in PROGRAMS if folder not in known and os.path.isdir(folder)]
    os.environ["PATH"] = os.pathsep.join(known + more)


def closed_folder(home):
    # type: (str) -> str
    """The cache folder, which ``files.cache`` names as well, closed to other users."""
    folder = os.path.join(cache_home(), "planner")
    chosen = os.umask(0o077)  # what it is in is made for this user alone too
    os.makedirs(folder, FOLDER_MODE, exist_ok=True)
    os.umask(chosen & 0o077)  # none that keeps this user from its own files
    reason = unsafe(folder, home)
    if reason:
        refuse("unsafe " + reason)
    os.chmod(folder, FOLDER_MODE)
    return folder


def main(digest, size, environment):
    # type: (str, int, dict[bytes, bytes]) -> int
    """Start the agent as a child; returns its number.

    The claim is made before it is said to be there, and handed over: ``planner clean`` never
    removes what is about to start.
    environment: variables for it, which come this way because a command line is for all to read.
    """
    if sys.version_info < (3, 6):
        refuse("old %d.%d" % sys.version_info[:2])
    if os.isatty(0):
        refuse("terminal")
    os.environb.update(environment)
    if b"PATH" not in environment:
        find_programs()
    home = os.path.expanduser("~")
    claimed = []  # type: list[str]
    path = ""
    try:
        settle()
        path = os.path.join(closed_folder(home), "agent-" + digest[:16] + ".pyz")
        if not is_whole(path, digest):
            fetch(path, size)
        claimed = claim(path)
        if not is_whole(path, digest):
            fetch(path, size)
        say("have")
    except OSError as error:
        refuse("fail " + str(error))
    agent = os.fork()
    if not agent:
        os.execv(sys.executable, [sys.executable, path] + claimed)
    if claimed:
        os.close(int(claimed[0]))
    return agent
