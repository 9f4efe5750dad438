"""OpenSSH's own program tells the settings of a host: `ssh -G` resolves Include, Match and aliases.

OpenSSH takes the home of the account from the password database. Where $HOME names another folder,
its .ssh counts here: configuration, keys and known hosts alike. Files that such a configuration
includes by a relative path, or by ~, are still those of the account. A configuration in $HOME that
ssh would refuse for its owner or its rights is left out, as if $HOME were the account's.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.errors import RemoteError
from planner.fleet.device import SshLogin

_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_SSH_TIMEOUT_S = 20.0  # a `Match exec` may use the network
_KEY_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")

#: Keyword in lower case -> its values, one a line.
Options = dict[str, tuple[str, ...]]


def options_of(login: SshLogin) -> Options:
    """What ssh's configuration says of a host; its default paths where there is no ssh.

    Raises RemoteError.
    """
    if shutil.which("ssh") is None:
        return _usual(login, "needs OpenSSH's ssh; install it")
    if account_home() is None:  # ssh says that there is no such user, and does nothing
        return _usual(login, f"needs an entry for user {os.getuid()} in /etc/passwd; add one")
    return parse_options(_ask_ssh(login))


def parse_options(text: str) -> Options:
    """The output of ``ssh -G``."""
    options: Options = {}
    for line in text.splitlines():
        keyword, _, value = line.strip().partition(" ")
        if keyword:
            options[keyword.lower()] = (*options.get(keyword.lower(), ()), value)
    return options


def account_home() -> str | None:
    """The home that OpenSSH knows of; None where this user has no entry, as in a container."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir.rstrip("/")
    except KeyError:
        return None


def home() -> Path:
    """The home whose .ssh counts. Raises RemoteError where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        raise RemoteError(f"user {os.getuid()} has no home directory here, where .ssh would be; set HOME") from None


def login_words(login: SshLogin) -> list[str]:
    """What the fleet file says of a login, as options of ssh."""
    options = ["-p", str(login.port)] if login.port else []
    options += ["-l", login.user] if login.user else []
    options += ["-o", f"ProxyJump={login.jump}"] if login.jump else []
    return options


@contextmanager
def configuration(login: SshLogin) -> Iterator[tuple[str, ...]]:
    """The option that names the configuration of ssh, where it is not that which ssh would take."""
    own = home() / ".ssh/config"
    if login.ssh_config:
        yield ("-F", str(login.ssh_config))
    elif str(home()) == account_home() or not _would_be_read(own):
        yield ()
    else:
        with tempfile.NamedTemporaryFile("w", prefix="planner-ssh-", encoding="utf-8") as file:
            file.write(f'Include "{own}"\nInclude {_SYSTEM_CONFIG}\n')
            file.flush()
            yield ("-F", file.name)


def _ask_ssh(login: SshLogin) -> str:
    try:
        with configuration(login) as file:
            answer = subprocess.run(
                ["ssh", "-G", "-T", *file, *login_words(login), "--", login.host],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_SSH_TIMEOUT_S, check=False,
                text=True, errors="surrogateescape",
            )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RemoteError(f"`ssh -G {login.host}` took over {_SSH_TIMEOUT_S:g} s; see its Match exec") from error
    if answer.returncode != 0:
        reason = (answer.stderr.strip() or f"exit status {answer.returncode}").splitlines()[0]
        raise RemoteError(f"`ssh -G {login.host}` fails: {reason}; correct the ssh configuration")
    return answer.stdout


def _would_be_read(config: Path) -> bool:
    """Whether ssh takes a configuration: nobody else can change it, or there is none."""
    try:
        found = config.stat()
    except OSError:
        return True
    return found.st_uid in (0, os.getuid()) and not found.st_mode & 0o022


def _usual(login: SshLogin, need: str) -> Options:
    """Default options where ssh cannot be asked, which ``need`` explains."""
    config = login.ssh_config or home() / ".ssh/config"
    if login.ssh_config is not None or config.exists():
        raise RemoteError(f"reading {config} {need}, or remove it")
    return {"identityfile": _KEY_FILES, "userknownhostsfile": _KNOWN_HOSTS}
