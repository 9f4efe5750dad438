"""What OpenSSH's configuration says, and what the fleet file says above it."""

import getpass
import os
import pwd
from pathlib import Path
from shutil import which

import pytest

from planner.errors import RemoteError
from planner.fleet.device import Device, SshLogin
from planner.remote.openssh import parse_options
from planner.remote.ssh_config import SshTarget, resolve, target_from

HOME = Path.home()
needs_ssh = pytest.mark.skipif(which("ssh") is None, reason="OpenSSH's ssh not installed")

# ssh -G, OpenSSH 9.2p1, shortened.
RECORDED = """\
host tx2
user nvidia
hostname 10.0.0.3
port 2222
identitiesonly no
stricthostkeychecking ask
ciphers chacha20-poly1305@openssh.com,aes128-ctr
identityfile ~/.ssh/id_rsa
identityfile %d/keys/%n-%r
identityfile none
canonicaldomains none
globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2
userknownhostsfile /home/op/.ssh/known_hosts ~/.ssh/lab_hosts
sendenv LANG
sendenv LC_*
proxycommand exec nc -X 5 %h %p
"""


def target(device: Device, text: str = RECORDED) -> tuple[SshTarget, str | None]:
    return target_from(device, parse_options(text))


def test_options_keep_every_value_of_a_repeated_keyword() -> None:
    options = parse_options(RECORDED)
    assert options["sendenv"] == ("LANG", "LC_*")
    assert options["hostname"] == ("10.0.0.3",)


def test_what_ssh_says_about_a_host() -> None:
    found, jump = target(Device(name="tx2", ssh=SshLogin("tx2")))
    assert jump is None
    assert found == SshTarget(
        alias="tx2",
        hostname="10.0.0.3",
        port=2222,
        user="nvidia",
        key_files=(HOME / ".ssh/id_rsa", HOME / "keys/tx2-nvidia"),
        known_hosts=(
            Path("/home/op/.ssh/known_hosts"),
            HOME / ".ssh/lab_hosts",
            Path("/etc/ssh/ssh_known_hosts"),
            Path("/etc/ssh/ssh_known_hosts2"),
        ),
        proxy_command="nc -X 5 10.0.0.3 2222",
    )


def test_the_fleet_file_wins(tmp_path: Path) -> None:
    device = Device(name="tx2", ssh=SshLogin("tx2", port=22, user="me", key=tmp_path / "id", jump="gate"))
    found, jump = target(device)
    assert (found.port, found.user, found.key_files) == (22, "me", (tmp_path / "id",))
    assert found.identities_only
    assert (jump, found.proxy_command) == ("gate", None)


def test_the_user_of_a_path_is_that_of_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    found, _ = target(Device(name="tx2", ssh=SshLogin("tx2")), "identityfile /keys/%u\n")
    assert found.key_files == (Path("/keys") / pwd.getpwuid(os.getuid()).pw_name,)


def test_a_path_may_hold_the_hash_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "desk")
    found, _ = target(Device(name="tx2", ssh=SshLogin("tx2", 22, "me")), "hostname board\nidentityfile /keys/%C\n")
    assert found.key_files == (Path("/keys/77d5a933596e58e8cdad9efcecdb251b6a497581"),)


def test_a_jump_host_may_be_named_by_signs_of_the_host() -> None:
    _, jump = target(Device(name="tx2", ssh=SshLogin("tx2")), "hostname board\nuser me\nproxyjump %r@gate-%n:%p,a%%b\n")
    assert jump == "me@gate-tx2:22,a%b"


@pytest.mark.parametrize(
    ("hostname", "port", "alias", "name"),
    [
        ("Tx2", 22, None, "tx2"),
        ("10.0.0.3", 2222, None, "[10.0.0.3]:2222"),
        ("10.0.0.3", 2222, "Board", "board"),
    ],
)
def test_the_name_in_known_hosts(hostname: str, port: int, alias: str | None, name: str) -> None:
    found = SshTarget("a", hostname, port, "me", (), (Path("known_hosts"),), host_key_alias=alias)
    assert found.known_name == name


def test_without_openssh_the_fleet_file_and_the_usual_places_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    found = resolve(Device(name="tx2", ssh=SshLogin("10.0.0.3", jump="me@gate:2222,inner")))
    assert (found.hostname, found.port, found.user) == ("10.0.0.3", 22, getpass.getuser())
    assert HOME / ".ssh/id_ed25519" in found.key_files
    assert found.known_hosts[0] == HOME / ".ssh/known_hosts"
    assert [(hop.user, hop.hostname, hop.port) for hop in found.jumps] == [
        ("me", "gate", 2222),
        (getpass.getuser(), "inner", 22),
    ]


@pytest.mark.parametrize("option", ["identityfile", "userknownhostsfile"])
def test_a_file_of_nobody_is_named(option: str) -> None:
    with pytest.raises(RemoteError, match='tx2: ssh configuration: "~nosuchuser/x": nobody here has that home'):
        target(Device(name="tx2", ssh=SshLogin("tx2")), f"{option} ~nosuchuser/x\n")


@pytest.mark.parametrize("address", ["10.0.0.3;reboot", "$(reboot)", "-oProxyCommand=x"])
def test_a_name_that_a_shell_would_run_is_no_part_of_a_proxy_command(address: str) -> None:
    text = f"hostname {address}\nproxycommand nc %h %p\n"
    with pytest.raises(RemoteError, match="ProxyCommand passes .* to a shell; correct the address"):
        target(Device(name="tx2", ssh=SshLogin("tx2")), text)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without an entry in the password database, as `docker run --user` makes."""

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("stranger")
class TestUnknownUsers:
    def test_the_fleet_file_and_a_home_are_enough(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        found = resolve(Device(name="tx2", ssh=SshLogin("10.0.0.3", user="me")))
        assert (found.user, found.known_hosts[0]) == ("me", tmp_path / ".ssh/known_hosts")

    def test_each_thing_that_lacks_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(RemoteError, match="has no home directory here.*set HOME"):
            resolve(Device(name="tx2", ssh=SshLogin("10.0.0.3", user="me")))
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(RemoteError, match="tx2: user .* has no name here; write address = user@host"):
            resolve(Device(name="tx2", ssh=SshLogin("10.0.0.3")))

    @needs_ssh
    def test_a_configuration_that_ssh_would_not_read_for_them_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh/config").touch()
        with pytest.raises(RemoteError, match="/.ssh/config needs an entry for user .* in /etc/passwd; add one"):
            resolve(Device(name="tx2", ssh=SshLogin("10.0.0.3", user="me")))


@needs_ssh
class TestOpenSsh:
    @pytest.fixture
    def config(self, tmp_path: Path) -> Path:
        (tmp_path / "more").write_text("Host inner\n HostName 10.0.0.9\n ProxyJump outer\n")
        path = tmp_path / "config"
        path.write_text(
            f"Include {tmp_path}/more\n"
            "Host outer\n HostName gate.lab\n User porter\n"
            "Host tx2\n HostName 10.0.0.3\n ProxyJump inner\n HostKeyAlias board\n"
            "Host two\n ProxyJump me@outer:2200,inner\n"
            "Host egg\n ProxyJump hen\nHost hen\n ProxyJump egg\n"
            "Host piped\n ProxyCommand exec nc %h %p\n"
            f"Host *\n UserKnownHostsFile {tmp_path}/known_hosts\n GlobalKnownHostsFile none\n"
        )
        return path

    def test_includes_aliases_and_known_hosts(self, config: Path) -> None:
        found = resolve(Device(name="a", ssh=SshLogin("inner", jump="none", ssh_config=config)))
        assert (found.hostname, found.jumps) == ("10.0.0.9", ())
        assert found.known_hosts == (config.parent / "known_hosts",)

    def test_another_home_counts_for_configuration_keys_and_known_hosts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "my home"))
        own = tmp_path / "my home" / ".ssh"
        found = resolve(Device(name="a", ssh=SshLogin("tx2")))
        assert own / "known_hosts" in found.known_hosts and own / "id_ed25519" in found.key_files
        own.mkdir(parents=True)
        (own / "config").write_text("Host tx2\n HostName 10.0.0.3\n UserKnownHostsFile ~/.ssh/lab %d/other\n")
        found = resolve(Device(name="a", ssh=SshLogin("tx2")))
        assert found.hostname == "10.0.0.3"
        assert found.known_hosts[0] == own / "lab"
        (own / "config").chmod(0o666)  # which ssh would refuse
        assert resolve(Device(name="a", ssh=SshLogin("tx2"))).hostname == "tx2"

    def test_jumps_of_jumps(self, config: Path) -> None:
        found = resolve(Device(name="a", ssh=SshLogin("tx2", ssh_config=config)))
        assert [(hop.user, hop.hostname) for hop in found.jumps] == [
            ("porter", "gate.lab"),
            (getpass.getuser(), "10.0.0.9"),
        ]
        assert found.known_name == "board"

    def test_of_several_jumps_only_the_first_has_its_own_way(self, config: Path) -> None:
        found = resolve(Device(name="a", ssh=SshLogin("two", ssh_config=config)))
        assert [(hop.user, hop.hostname, hop.port) for hop in found.jumps] == [
            ("me", "gate.lab", 2200),
            (getpass.getuser(), "10.0.0.9", 22),
        ]

    def test_a_circle_of_jumps(self, config: Path) -> None:
        with pytest.raises(RemoteError, match="jump hosts form a circle: a → hen → egg → hen; "):
            resolve(Device(name="a", ssh=SshLogin("egg", ssh_config=config)))

    def test_a_mistake_in_the_configuration(self, tmp_path: Path) -> None:
        config = tmp_path / "config"
        config.write_text("Hots a\n")
        with pytest.raises(RemoteError, match=r"`ssh -G a` fails: .*line 1.* correct the ssh configuration"):
            resolve(Device(name="a", ssh=SshLogin("a", ssh_config=config)))
        config.write_text("UserKnownHostsFile ${NO_SUCH_VARIABLE}/known ~/known\n")
        with pytest.raises(RemoteError, match=r"fails: .*NO_SUCH_VARIABLE.* correct the ssh configuration"):
            resolve(Device(name="a", ssh=SshLogin("a", ssh_config=config)))
