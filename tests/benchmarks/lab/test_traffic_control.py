"""The arguments of tc: buckets as large as was found to be right, and rates that add up."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lab.traffic_control import Command, bucket_bytes, one_rate, rates_by_target

RATES = st.floats(1e4, 1e9)


def option(command: Command, name: str) -> float:
    return float(command[command.index(name) + 1].removesuffix("bit"))


def test_a_port_of_one_rate() -> None:
    assert one_rate("eth0", 12.5e6) == [
        ("qdisc", "add", "dev", "eth0", "root", "handle", "1:",
         "tbf", "rate", "100000000bit", "burst", "7000", "latency", "20ms"),
    ]  # fmt: skip


@given(RATES)
def test_a_bucket_holds_two_packets_and_no_more_than_its_share_of_a_second(rate: float) -> None:
    assert bucket_bytes(rate) >= 3200
    assert bucket_bytes(rate) == 3200 or abs(bucket_bytes(rate) / rate - 0.56e-3) < 1 / rate


@given(RATES, st.lists(RATES, min_size=1, max_size=8))
def test_classes_are_promised_no_more_than_the_port_has(rate: float, links: list[float]) -> None:
    targets = {f"10.77.1.{host}": link for host, link in enumerate(links, 1)}
    commands = rates_by_target("eth0", rate, targets)
    port, *classes = [command for command in commands if command[0] == "class"]
    assert sum(option(leaf, "rate") for leaf in classes) <= option(port, "rate") + len(classes)
    ceilings = [option(leaf, "ceil") for leaf in classes]
    assert ceilings == [round(8 * each) for each in (rate, *(min(link, rate) for link in links))]
