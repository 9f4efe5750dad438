"""The system's own list, beside that of the program `ip`."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profilers.addresses_and_ports import interface_address, interface_with
from profilers.interface_addresses import InterfaceAddress, interface_addresses
from tests.profilers import macs

SECOND = """
import subprocess, time
from profilers.addresses_and_ports import interface_address
from profilers.interface_addresses import interface_addresses
for command in ("link set lo up", "address add 10.9.0.1/24 dev lo label lo:1", "address add 10.9.0.2/24 dev lo",
                "address add fd99::1/64 dev lo", "address add 10.8.0.1 peer 10.8.0.2 dev lo",
                "address add fd98::1/64 dev lo preferred_lft 0", "address add 169.254.7.7/16 dev lo",
                "address add fe80::9/64 dev lo"):
    subprocess.run(["ip", *command.split()], check=True)
subprocess.run(["ip", "link", "property", "add", "dev", "lo", "altname", "loop"], check=False)  # by Linux 5.5
while any(int(line.split()[4], 16) & 0x40 for line in open("/proc/net/if_inet6")):  # tentative: the kernel still works
    time.sleep(0.01)
names = ("lo", "lo:1", "lo:2", "loop")
print([tuple(each) for each in interface_addresses()], {name: interface_address(None, name) for name in names}, sep=",")
"""


def test_loopback_has_its_addresses() -> None:
    assert InterfaceAddress("lo", "127.0.0.1", False, False, "lo") in interface_addresses()


def test_elsewhere_ifconfig_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{macs.plant(tmp_path)}:{os.environ['PATH']}")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert interface_addresses() == [
        InterfaceAddress("lo0", "127.0.0.1", False, False),
        InterfaceAddress("lo0", "::1", False, False),
        InterfaceAddress("lo0", "fe80::1", False, True),
        InterfaceAddress("en0", "fe80::451:fde8:31fc:cb02", False, True),
        InterfaceAddress("en0", "2001:db8::f86a:2677:f8bd:58a2", True, False),
        InterfaceAddress("en0", "2001:db8::14c8:a203:4bc2:9d99", False, False),
        InterfaceAddress("en0", "192.0.2.56", False, False),
        InterfaceAddress("utun3", "198.51.100.2", False, False),
    ]
    assert interface_address(None, "en0") == "192.0.2.56"
    assert interface_with("192.0.2.56") == "en0"


@pytest.mark.skipif(shutil.which("ip") is None, reason="ip(8) not installed")
def test_all_that_ip_lists_is_found() -> None:
    listed = json.loads(subprocess.run(["ip", "-json", "address"], capture_output=True, check=True).stdout)
    known = {
        (each["ifname"], info["local"]) for each in listed for info in each["addr_info"] if not info.get("tentative")
    }
    assert known <= {(each.interface, each.address) for each in interface_addresses()}


@pytest.mark.skipif(shutil.which("ip") is None or shutil.which("unshare") is None, reason="no ip(8) or unshare(1)")
def test_every_address_of_an_interface_is_listed() -> None:
    namespace = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the system lets this user make no network namespace")
    done = subprocess.run(
        [*namespace, sys.executable, "-c", SECOND], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    listed, by_name = ast.literal_eval(done.stdout)
    assert set(listed) == {
        ("lo", "127.0.0.1", False, False, "lo"),
        ("lo", "10.9.0.1", False, False, "lo:1"),
        ("lo", "10.9.0.2", False, False, "lo"),
        ("lo", "10.8.0.1", False, False, "lo"),
        ("lo", "169.254.7.7", False, True, "lo"),
        ("lo", "::1", False, False, ""),
        ("lo", "fd99::1", False, False, ""),
        ("lo", "fd98::1", True, False, ""),
        ("lo", "fe80::9", False, True, ""),
    }
    assert by_name.pop("loop") in ("127.0.0.1", None)  # None where Linux has no second names
    assert by_name == {"lo": "127.0.0.1", "lo:1": "10.9.0.1", "lo:2": None}
