"""Fleet files: what they mean, and every way in which they can be wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example as case
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import FleetError
from planner.fleet.device import Address, Device, Fleet, Interpreter, SshLogin, device_at, example, parse_address
from planner.fleet.file import load_fleet
from planner.fleet.quantities import RATE_UNITS, parse_rate
from tests.mutations import MUTATIONS, damaged, mutated


def fleet(tmp_path: Path, text: str) -> Fleet:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return load_fleet(path)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    """The lines of the error, without the folder of the test."""
    with pytest.raises(FleetError) as caught:
        fleet(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "").splitlines()


class TestMeaning:
    def test_a_device_with_nothing_but_an_address(self, tmp_path: Path) -> None:
        [device] = fleet(tmp_path, '[devices.tx2]\naddress = "tx2"').devices
        assert device == Device(name="tx2", ssh=SshLogin("tx2"))
        assert (device.local, device.emulated, device.interpreter.python) == (False, False, "python3")

    def test_this_machine_uses_the_python_that_runs_the_planner(self, tmp_path: Path) -> None:
        [device] = fleet(tmp_path, '[devices.here]\naddress = "local"\nslowdown = 2').devices
        assert device == Device(name="here", interpreter=Interpreter(sys.executable), slowdown=2.0)
        assert (device.local, device.emulated) == (True, True)

    def test_a_device_with_everything(self, tmp_path: Path) -> None:
        (tmp_path / "keys").mkdir()
        (tmp_path / "keys" / "id").touch()
        (tmp_path / "config").touch()
        text = """
            ssh_config = "config"
            [devices.tx2]
            address = "nvidia@10.0.0.3:2222"
            key = "keys/id"
            jump = "me@gate:22,inner"
            kind = "jetson-tx2"
            device = "mps"
            data_address = "10.1.0.3"
            data_interface = "eth1"
            idle_watts = 5
            max_watts = 15.5
            meters = ["shelly://10.0.0.9", "csv:///var/log/watts.csv?offset_s=1.5"]
            power_model = "keys/id"
            python = "python3.8"
            prefix = "docker exec -i 'my torch'"
            rate = "100mbit"
            slowdown = 1.5
            [devices.tx2.environment]
            OMP_NUM_THREADS = "4"
        """
        [device] = fleet(tmp_path, text).devices
        assert device == Device(
            name="tx2",
            ssh=SshLogin(
                "10.0.0.3",
                port=2222,
                user="nvidia",
                key=tmp_path / "keys" / "id",
                jump="me@gate:22,inner",
                ssh_config=tmp_path / "config",
            ),
            kind="jetson-tx2",
            computes_on="mps",
            data_address="10.1.0.3",
            data_interface="eth1",
            idle_watts=5.0,
            max_watts=15.5,
            meters=("shelly://10.0.0.9", "csv:///var/log/watts.csv?offset_s=1.5"),
            power_model=tmp_path / "keys" / "id",
            interpreter=Interpreter(
                "python3.8", prefix=("docker", "exec", "-i", "my torch"), environment={"OMP_NUM_THREADS": "4"}
            ),
            rate_bytes_per_s=12.5e6,
            slowdown=1.5,
        )

    @pytest.mark.parametrize(
        ("address", "line", "python"),
        [
            ("tx2", 'venv = "/opt/torch/"', "/opt/torch/bin/python"),
            ("tx2", 'venv = "~/torch"', "~/torch/bin/python"),
            ("tx2", 'python = "~/bin/python3"', "~/bin/python3"),
            ("local", 'venv = "~/torch"', str(Path.home() / "torch/bin/python")),
        ],
    )
    def test_which_python(self, tmp_path: Path, address: str, line: str, python: str) -> None:
        [device] = fleet(tmp_path, f'[devices.a]\naddress = "{address}"\n{line}').devices
        assert device.interpreter.python == python

    @pytest.mark.parametrize(
        ("written", "read"), [("a, me@b:2200 ,c", "a,me@b:2200,c"), (" none ", "none"), ("ssh://me@a", "ssh://me@a")]
    )
    def test_jump_hosts_are_given_as_ssh_takes_them(self, tmp_path: Path, written: str, read: str) -> None:
        [device] = fleet(tmp_path, f'[devices.a]\naddress = "a"\njump = "{written}"').devices
        assert device.ssh is not None and device.ssh.jump == read

    @pytest.mark.parametrize("address", ["ssh://me@gate:2200", "ssh://me@gate:2200/"])
    def test_an_address_may_be_written_as_for_ssh(self, tmp_path: Path, address: str) -> None:
        [device] = fleet(tmp_path, f'[devices.a]\naddress = "{address}"').devices
        assert device.ssh == SshLogin("gate", 2200, "me")

    def test_a_prefix_may_be_a_list(self, tmp_path: Path) -> None:
        [device] = fleet(tmp_path, '[devices.a]\naddress = "a"\nprefix = ["nice", "-n", "5"]').devices
        assert device.interpreter.prefix == ("nice", "-n", "5")

    def test_the_ssh_program_is_chosen_for_one_device_or_for_all(self, tmp_path: Path) -> None:
        devices = '[devices.a]\naddress = "a"\n[devices.b]\naddress = "b"\n'
        for text, chosen in (
            ('ssh = "program"\n' + devices, [True, True]),
            (devices + 'ssh = "program"\n', [False, True]),
        ):
            logins = [device.ssh for device in fleet(tmp_path, text).devices]
            assert [login.program for login in logins if login is not None] == chosen
        [found] = mistakes(tmp_path, '[devices.a]\naddress = "local"\nssh = "program"')
        assert "means nothing where address is" in found
        [found] = mistakes(tmp_path, '[devices.a]\naddress = "a"\nssh = "openssh"')
        assert "fleet.toml:3: devices.a.ssh" in found and "'program'" in found

    def test_devices_keep_their_order_and_are_found_by_name(self, tmp_path: Path) -> None:
        three = fleet(tmp_path, "".join(f'[devices.{name}]\naddress = "local"\n' for name in ("tx2", "pc", "nano")))
        assert [device.name for device in three.devices] == ["tx2", "pc", "nano"]
        assert three.device("pc").name == "pc"
        with pytest.raises(FleetError, match=r'no device "tx"; did you mean "tx2"\? \(known: tx2, pc, nano\)'):
            three.device("tx")

    def test_the_example_is_a_fleet_and_so_is_all_that_it_comments_out(self, tmp_path: Path) -> None:
        assert [device.name for device in fleet(tmp_path, example()).devices] == ["here"]
        (tmp_path / "ssh_config").touch()
        (tmp_path / "id").touch()
        (tmp_path / "power-here.json").touch()
        lines = [line.removeprefix("# ") if " = " in line or "[" in line else line for line in example().splitlines()]
        everything = "\n".join(lines).replace("~/.ssh/id_ed25519", "id")
        assert [device.name for device in fleet(tmp_path, everything).devices] == ["here", "desktop", "tx2"]

    def test_pydantic_is_not_loaded_before_a_file_is(self) -> None:
        code = "import sys, planner.remote; sys.exit(bool({'pydantic', 'paramiko'} & set(sys.modules)))"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestMistakes:
    @pytest.mark.parametrize(
        ("line", "told"),
        [
            (f"idle_watts = {'9' * 5000}", "fleet.toml:3: a number has too many digits"),
            (f"unknown = -{'9' * 5000}", "fleet.toml:3: a number has too many digits"),
            (f"idle_watts = 0x{'f' * 5000}", "fleet.toml:3: devices.a.idle_watts: "),
            (f"kind = 0x{'f' * 5000}", "fleet.toml:3: devices.a.kind: "),
            (f"max_watts = {10**400}", "fleet.toml:3: devices.a.max_watts: "),
            (f'rate = "{"9" * 5000}mbit"', "fleet.toml:3: devices.a.rate: "),
            (f"prefix = {'[' * 5000}", "fleet.toml: nested too deeply"),
            (f"prefix = {'[' * 5000}{']' * 5000}", "fleet.toml: nested too deeply"),
        ],
        ids=["a watt", "no key", "in hexadecimal", "for a text", "more than a float", "a rate", "brackets", "lists"],
    )
    def test_enormous_values_are_one_line(self, tmp_path: Path, line: str, told: str) -> None:
        [found] = mistakes(tmp_path, f'[devices.a]\naddress = "local"\n{line}')
        assert found.startswith(told) and len(found) < 700

    @pytest.mark.parametrize(
        "line",
        [
            'prefix = ["a\\nb"]',
            'python = "a\\u001b"',
            'data = "a\\u0000"',
            'environment = { A = "\\u0000" }',
            'kind = "\\u009b"',
        ],
    )
    def test_control_characters_are_no_part_of_a_command_or_a_path(self, tmp_path: Path, line: str) -> None:
        [found] = mistakes(tmp_path, f'[devices.a]\naddress = "a"\n{line}')
        assert "holds a control character; remove it" in found and found.isprintable()

    def test_all_are_told_at_once_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        text = """
            [devices.tx2]
            adress = "tx2"
            pyhton = "python3"
            max_watts = 3
            idle_watts = 5
            [devices."b d"]
            address = "b"
            rate = "fast"
        """
        found = mistakes(tmp_path, text)
        assert [line.partition(" ")[0] for line in found] == [
            "fleet.toml:2:",
            "fleet.toml:3:",
            "fleet.toml:4:",
            "fleet.toml:5:",
            "fleet.toml:7:",
            "fleet.toml:9:",
        ]
        assert found[0] == "fleet.toml:2: devices.tx2.address: is missing"
        assert found[2].startswith(
            'fleet.toml:4: devices.tx2.pyhton: unknown key; did you mean "python"? (known: address, key, '
        )

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            (
                "idle_watts = 5\nmax_watts = 3",
                "3: devices.a.max_watts: 3 W is below idle_watts, 5 W; exchange",
            ),
            ("max_watts = 0", "2: devices.a.max_watts: input should be greater than 0, not 0"),
            (
                'device = "gpu"',
                "2: devices.a.device: input should be 'cpu', 'cuda' or 'mps', not 'gpu'",
            ),
            (
                'meters = ["http://plug"]',
                "2: devices.a.meters: http://plug is no meter; known are shelly://, shelly1://, tasmota:// and csv://",
            ),
            (
                'power_model = "none.json"',
                "2: devices.a.power_model: there is no power model",
            ),
            ("idle_watts = nan", "2: devices.a.idle_watts: input should be a finite number, not nan"),
            ('key = "absent"', "2: devices.a.key: there is no key file "),
            (
                'key = "~nosuchuser/id"',
                '2: devices.a.key: "~nosuchuser/id": nobody here has that home directory; write the whole path',
            ),
            ('rate = "100"', '2: devices.a.rate: "100" is not a rate; write a number and one of bit, kbit, '),
            ('rate = "0mbit"', '2: devices.a.rate: rate "0mbit" is not above zero'),
            ('jump = "a b"', '2: devices.a.jump: "a b" is not an address'),
            ('jump = "gate,-oProxyCommand=x"', '2: devices.a.jump: "-oProxyCommand=x" is not an address'),
            ('prefix = "docker \'exec"', "2: devices.a.prefix: no shell reads "),
            (
                'prefix = "bash -lc"',
                '2: devices.a.prefix: -lc takes one word as its command; write \'exec "$0" "$@"\' after',
            ),
            ("prefix = 3", "2: devices.a.prefix: input should be a valid list, not 3"),
            ('environment = {"A B" = "c"}', "2: devices.a.environment: not names of variables: 'A B'"),
            ('python = "x"\nvenv = "/x"', "3: devices.a.venv: and python both name an interpreter; keep one"),
            ('python = "~you/python"', '2: devices.a.python: "~you/python": no shell expands this ~'),
            ('prefix = "nice"\nvenv = "~/x"', '3: devices.a.venv: "~/x": no shell expands this ~'),
            ("[devices.a.enviroment]", '2: devices.a.enviroment: unknown key; did you mean "environment"?'),
        ],
    )
    def test_of_one_device(self, tmp_path: Path, line: str, told: str) -> None:
        # Blank at first, so that the line under test is the second one.
        found = mistakes(tmp_path, f'devices.a.address = "a"\n{_dotted(line)}')
        assert len(found) == 1
        assert found[0].startswith(f"fleet.toml:{told}")

    @pytest.mark.parametrize(
        ("address", "told"),
        [
            ("a:0", 'port 0 of "a:0" is not between 1 and 65535'),
            ("a:65536", "is not between 1 and 65535"),
            ("a:ssh", '"a:ssh" is not an address; write [user@]host[:port], or "local"'),
            ("", '"" is not an address'),
            ("-oProxyCommand=x", "is not an address"),
            ("-l@a", "is not an address"),
        ],
    )
    def test_of_an_address(self, tmp_path: Path, address: str, told: str) -> None:
        [found] = mistakes(tmp_path, f'[devices.a]\naddress = "{address}"')
        assert found.startswith("fleet.toml:2: devices.a.address: ")
        assert told in found

    def test_keys_that_mean_nothing_without_ssh(self, tmp_path: Path) -> None:
        found = mistakes(tmp_path, '[devices.a]\naddress = "local"\nkey = "x"\njump = "y"')
        assert found == [
            f'fleet.toml:{line}: devices.a.{key}: means nothing where address is "local"; remove it'
            for line, key in ((3, "key"), (4, "jump"))
        ]

    @pytest.mark.parametrize("name", ["b d", "", "-a", "ä", "a.b", "a,b", "a=b"])
    def test_of_a_name(self, tmp_path: Path, name: str) -> None:
        [found] = mistakes(tmp_path, f'\n[devices."{name}"]\naddress = "local"')
        assert found.startswith(f"fleet.toml:2: devices.{name}: a name has letters, digits, - and _")

    def test_of_names_that_repeat(self, tmp_path: Path) -> None:
        text = "".join(f'[devices.{name}]\naddress = "local"\n' for name in ("a", "b", "a", "b"))
        assert mistakes(tmp_path, text) == [
            "fleet.toml:5: devices.a is declared twice; rename one",
            "fleet.toml:7: devices.b is declared twice; rename one",
        ]

    def test_of_the_form(self, tmp_path: Path) -> None:
        [found] = mistakes(tmp_path, '[devices.a]\naddress = "local\n')
        assert found.startswith("fleet.toml:2: not TOML: ")
        [found] = mistakes(tmp_path, "\n\nx = ")
        assert found.startswith("fleet.toml:3: not TOML: ")

    def test_of_a_folder_of_that_name(self, tmp_path: Path) -> None:
        with pytest.raises(FleetError, match=r"cannot be read: it is a folder, and no file; name a file that you may"):
            load_fleet(tmp_path)

    @pytest.mark.parametrize("text", ["", "[devices]", "# nothing\n"])
    def test_no_devices(self, tmp_path: Path, text: str) -> None:
        [found] = mistakes(tmp_path, text)
        assert found.endswith('add [devices.NAME] with address = "user@host" or "local"')

    def test_something_else_where_a_device_belongs(self, tmp_path: Path) -> None:
        assert mistakes(tmp_path, "[devices]\na = 3") == ["fleet.toml:2: devices.a: should be a table, not 3"]
        assert mistakes(tmp_path, "devices = 3") == ["fleet.toml:1: devices: should be a table, not 3"]

    def test_a_typo_at_the_top(self, tmp_path: Path) -> None:
        [found] = mistakes(tmp_path, 'ssh_confg = "x"\n[devices.a]\naddress = "local"')
        known = "known: ssh_config, ssh, trusted_network, devices"
        assert found == f'fleet.toml:1: ssh_confg: unknown key; did you mean "ssh_config"? ({known})'

    def test_an_ssh_configuration_that_is_not_there(self, tmp_path: Path) -> None:
        [found] = mistakes(tmp_path, 'ssh_config = "x"\n[devices.a]\naddress = "local"')
        assert found.startswith("fleet.toml:1: ssh_config: there is no file ")

    def test_an_ssh_configuration_of_nobody(self, tmp_path: Path) -> None:
        [found] = mistakes(tmp_path, 'ssh_config = "~nosuchuser/x"\n[devices.a]\naddress = "local"')
        assert found.startswith('fleet.toml:1: ssh_config: "~nosuchuser/x": nobody here has that home directory')

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FleetError, match="no such fleet file; `planner init` writes an example"):
            load_fleet(tmp_path / "fleet.toml")

    def test_a_file_that_is_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "fleet.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(FleetError, match="cannot be read as UTF-8 text: .*; save it as UTF-8"):
            load_fleet(tmp_path / "fleet.toml")

    def test_a_mark_of_windows_editors_does_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / "fleet.toml").write_text('[devices.a]\r\naddress = "local"\r\n', encoding="utf-8-sig")
        assert load_fleet(tmp_path / "fleet.toml").devices[0].name == "a"


WHOLE = {
    "trusted_network": True,
    "devices": {
        "a": {"address": "local", "kind": "pc", "idle_watts": 5.0, "max_watts": 20.0, "slowdown": 2.0},
        "b": {
            "address": "me@b:22", "jump": "me@c", "python": "/usr/bin/python3", "environment": {"HOME": "/x"},
            "prefix": ["nice", "-n", "5"], "rate": "10 Mbit/s", "meters": ["shelly://plug"], "data": "/mnt/set",
            "data_address": "10.0.0.2",
        },
    },
}  # fmt: skip


def as_toml(value: Any) -> str:
    """A table as TOML, in which nothing stands for None."""
    if isinstance(value, dict):
        keys = (f"{json.dumps(str(key))} = {as_toml(each)}" for key, each in value.items() if each is not None)
        return f"{{{', '.join(keys)}}}"
    if isinstance(value, list):
        return f"[{', '.join(as_toml(each) for each in value if each is not None)}]"
    return json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")


class TestDamage:
    """A file is a fleet, whose figures fit together, or an error that names the file."""

    @MUTATIONS
    @given(mutated(WHOLE))
    def test_of_values(self, tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
        text = "\n".join(f"{json.dumps(str(key))} = {as_toml(each)}" for key, each in value.items() if each is not None)
        self._judge(tmp_path_factory, text.encode("utf-8", "replace"))

    @MUTATIONS
    @given(damaged(example().encode()))
    def test_of_bytes(self, tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
        self._judge(tmp_path_factory, content)

    def _judge(self, folders: pytest.TempPathFactory, content: bytes) -> None:
        path = folders.getbasetemp() / "damaged-fleet.toml"
        path.write_bytes(content)
        try:
            found = load_fleet(path)
        except FleetError as error:
            assert all(line.startswith(str(path)) for line in str(error).splitlines())
            return
        for device in found.devices:
            if device.idle_watts is not None and device.max_watts is not None:
                assert 0 <= device.idle_watts <= device.max_watts


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("tx2", Address(None, "tx2", None)),
            ("[::1]", Address(None, "::1", None)),
            ("::1", Address(None, "::1", None)),
            ("me@fe80::1%eth0", Address("me", "fe80::1%eth0", None)),
            ("me@[fe80::1%eth0]:2222", Address("me", "fe80::1%eth0", 2222)),
            ("me@corp.org@tx2", Address("me@corp.org", "tx2", None)),
        ],
    )
    def test_they_have_a_user_a_host_and_a_port(self, text: str, address: Address) -> None:
        assert parse_address(text) == address

    def test_a_device_outside_the_fleet_has_its_address_for_a_name(self) -> None:
        assert device_at("me@gate:2222") == Device(name="me@gate:2222", ssh=SshLogin("gate", user="me", port=2222))


class TestRates:
    @pytest.mark.parametrize(
        ("text", "bytes_per_s"),
        [
            ("100mbit", 12.5e6),
            ("1gbit", 125e6),
            ("2.5 Gbit/s", 312.5e6),
            (".8kbit", 100),
            (" 8bit ", 1),
        ],
    )
    def test_they_are_bits_per_second_in_decimal_units(self, text: str, bytes_per_s: float) -> None:
        assert parse_rate(text) == pytest.approx(bytes_per_s)

    @given(st.floats(min_value=1e-3, max_value=1e6), st.sampled_from(sorted(RATE_UNITS)))
    def test_any_number_with_any_unit(self, number: float, unit: str) -> None:
        assert parse_rate(f"{number:.6f}{unit}") == pytest.approx(float(f"{number:.6f}") * RATE_UNITS[unit] / 8)

    @given(st.text(max_size=12))
    @case("100")
    @case("mbit")
    @case("100MB")
    @case("1e3mbit")
    @case("-1mbit")
    @case("0gbit")
    @case("9" * 400 + "gbit")
    def test_anything_else_is_a_value_error_that_shows_the_text(self, text: str) -> None:
        try:
            assert parse_rate(text) > 0
        except ValueError as error:
            assert text in str(error)


def _dotted(line: str) -> str:
    """Lines of ``devices.a`` that may follow one that made it with a dotted key.

    No header may reopen such a table, so that their keys are dotted too.
    """
    return "\n".join(part if part.startswith("[") else f"devices.a.{part}" for part in line.splitlines())
