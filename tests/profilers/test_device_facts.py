"""Facts are parsed from recorded texts, and collected on the real machine without its tools."""

import sys
from importlib import metadata

import pytest

from profilers import commands, device_facts
from profilers.records.json_values import json_value

FLEET = ("json", "no_such_framework")


@pytest.mark.parametrize(
    "text, name",
    [
        ('NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 18.04.6 LTS"\nID=ubuntu\n', "Ubuntu 18.04.6 LTS"),
        ("PRETTY_NAME='Alpine Linux v3.19'\n", "Alpine Linux v3.19"),
        ("ID=x\n", None),
    ],
)
def test_os_release(text, name):
    assert device_facts.parse_os_release(text) == name


@pytest.mark.parametrize(
    "text, version",
    [
        ("iperf 3.12 (cJSON 1.7.15)\nLinux vm 6.1\n", "3.12"),
        ("iperf 3.0.11\n", "3.0.11"),
        ("iperf 3.1.3+ (cJSON)\n", "3.1.3+"),
        ("", None),
        ("command not found", None),
    ],
)
def test_iperf3(text, version):
    assert device_facts.parse_iperf3(text) == version


@pytest.mark.parametrize(
    "name, beside, version",
    [
        ("torch", ["torch", "torch-2.13.0+cpu.dist-info", "torchvision-0.9.dist-info"], "2.13.0+cpu"),
        ("tensorflow", ["tensorflow_cpu-2.6.2.dist-info", "tensorflow_estimator-2.6.0.dist-info"], "2.6.2"),
        ("tensorflow", ["tensorflow-1.15.4+nv20.12-py3.6.egg-info"], "1.15.4+nv20.12"),
        ("torch", ["torch"], None),
    ],
)
def test_a_framework_version_is_read_from_the_files_beside_it(name, beside, version):
    assert device_facts.parse_distribution(name, beside) == version


def test_processor_names(tx2):
    assert device_facts.parse_processor(tx2["proc/cpuinfo"]) == "0x41/0xd07, ARMv8 Processor"
    assert device_facts.parse_processor("") is None


def test_a_framework_is_found_without_importing_it():
    known = "torch" in sys.modules
    found = device_facts.framework("torch")
    assert ("version" in found) != ("error" in found)
    assert ("torch" in sys.modules) == known
    missing = device_facts.framework("no_such_framework")
    assert missing == {"error": "no_such_framework is not installed for this Python"}


def test_a_jetson(plant, tx2):
    found = device_facts.collect((), plant(tx2).root)
    assert (found.board, found.gpus) == ("quill", ("integrated 17000000.gp10b",))
    assert found.memory == (8000000 * 1024, 6000000 * 1024)
    assert found.system.startswith("unknown distribution, ")


def test_an_empty_tree_still_gives_facts(tmp_path):
    found = device_facts.collect(FLEET, str(tmp_path))
    assert (found.board, found.processor.name, found.gpus, found.sensors) == (None, None, (), ())
    assert found.memory.total_bytes >= found.memory.available_bytes > 0
    assert found.processor.usable_cores >= 1 and found.disk_free_bytes > 0


def test_this_machine():
    found = json_value(device_facts.collect(FLEET))
    assert found["processor"]["online_cores"] >= found["processor"]["usable_cores"] > 0
    assert "error" in found["frameworks"]["no_such_framework"]


def test_the_free_space_of_a_folder_that_does_not_exist_is_that_of_its_parent(tmp_path):
    assert device_facts.disk_free(str(tmp_path / "a" / "b")) > 0
    assert device_facts.disk_free("~") > 0  # of a user without a home


def test_the_output_of_an_absent_or_failing_program_is_empty(tmp_path):
    (tmp_path / "not_executable").write_text("")
    assert commands.output([str(tmp_path / "none")]) == ""
    assert commands.output([str(tmp_path / "not_executable")]) == ""


def test_installed_packages_have_their_version_and_others_none():
    found = device_facts.package_versions(["numpy", "no-such-package"])
    assert found == {"numpy": metadata.version("numpy"), "no-such-package": None}
