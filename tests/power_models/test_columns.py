import numpy as np
import pytest

from power_models.columns import choose, is_clock, is_load, is_memory, is_outcome
from power_models.table import Table
from profilers.column_units import unit


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("core_frequency", True),
        ("coreF", True),
        ("F_cpu", True),
        ("gpu_hz", True),
        ("FP32A", False),
        ("inst_fp_32", False),
    ],
)
def test_clocks(name: str, is_one: bool) -> None:
    assert is_clock(name) is is_one


def test_memory_and_loads() -> None:
    assert is_memory("memF") and is_memory("DRAMA") and is_memory("F_emc") and not is_memory("coreF")
    assert is_load("u_cpu") and is_load("utilization.gpu [%]") and is_load("busy")
    assert not is_load("u_mem") and not is_load("shared_load_transactions")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("time_per_epoch", True), ("time/ms", True), ("average_power", True), ("energy_j", True), ("step_s", True),
        ("run_seconds", True), ("used_kWh", True), ("power_limit", False), ("power_mode", False),
        ("idle_watts", False), ("gld_throughput", False), ("U_cpu", False),
    ],
)  # fmt: skip
def test_outcomes_of_a_run(name: str, is_one: bool) -> None:
    assert is_outcome(name) is is_one


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("average_power", "W"),
        ("power/W", "W"),
        ("rail_mw", "mW"),
        ("rail_mW", "mW"),
        ("time/ms", "ms"),
        ("time_per_epoch", "s"),
        ("run_seconds", "s"),
        ("energy_kj", "kJ"),
        ("nodes_energy_kJ", "kJ"),
        ("energy_kWh", "kWh"),
        ("systemW", "W"),
        ("power_kW_mean", "kW"),
        ("kilowatts", "kW"),
        ("power (uW)", "uW"),
        ("loss", ""),
    ],
)
def test_units(name: str, is_one: str) -> None:
    assert unit(name) == is_one


def test_default_features() -> None:
    table = Table.of(
        {
            "network": ["a", "a", "b", "b"],
            "batch": [1, 2, 1, 2],
            "board": ["x", "y", "x", "y"],
            "fixed": [5, 5, 5, 5],
            "empty": ["", "", "", ""],
            "time_s": [9, 8, 7, 6],
            "watts": [1, 2, 3, 4],
        }
    )
    chosen = choose(table, "watts", table.keys(["network"]))
    assert chosen.features == ("batch", "board")
    assert set(chosen.left_out) == {"network", "fixed", "empty", "time_s"}
    assert "more than one group" in chosen.left_out["network"]


def test_identifiers_are_no_features() -> None:
    table = Table.of({"run": [f"r{i}" for i in range(200)], "x": list(range(200)), "watts": [1] * 200})
    assert choose(table, "watts", np.zeros(200, dtype=np.intp)).features == ("x",)


@pytest.mark.parametrize("name", ["", ".1", "Unnamed: 0", "Unnamed: 0.1"])
def test_a_column_without_a_name_is_no_feature(name: str) -> None:
    table = Table({name: np.arange(8.0), "0": np.arange(8.0), "x": np.arange(8.0), "watts": np.arange(8.0)})
    chosen = choose(table, "watts", np.arange(8))
    assert chosen.features == ("0", "x") and chosen.left_out[name].startswith("has no name")


def numbered(**columns: object) -> Table:
    """Three rows each of eight programs."""
    return Table({"watts": np.arange(1.0, 25), "x": np.tile([1.0, 2, 3], 8), **columns})


@pytest.mark.parametrize(
    ("name", "number"),
    [("program", 3 * np.arange(8) + 17), ("run_id", 100 * np.arange(8)), ("which", np.arange(8))],
)
def test_a_number_of_the_group_is_no_feature(name: str, number: np.ndarray) -> None:
    table = numbered(**{name: np.repeat(number, 3).astype(float), "app": np.repeat(list("abcdefgh"), 3)})
    by = (name,) if name == "program" else ("app",)
    chosen = choose(table, "watts", table.keys(by), by)
    assert chosen.features == ("x",)
    assert "numbers the groups" in chosen.left_out[name]


@pytest.mark.parametrize("name", ["power_limit", "batch_size", "core_frequency", "nodes"])
def test_a_quantity_that_rows_are_grouped_by_is_a_feature(name: str) -> None:
    table = numbered(**{name: np.repeat(np.arange(100.0, 300, 25), 3)})
    assert name in choose(table, "watts", table.keys((name,)), (name,)).features
