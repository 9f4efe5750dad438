"""A meter's log is read in many formats and aligned with the device's clocks."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.file_tree import Unavailable
from profilers.sensors import meter_log
from profilers.sensors.meter_log import MeterLog, parse

T = 1700000000.0  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    "text",
    [
        "1700000000,5.5\n1700000001.5,6\n",
        "time,watts\n1700000000,5.5\n1700000001.5,6\n",
        "\ufefftime;watts\r\n1700000000;5,5\r\n1700000001,5;6,0\r\n",
        "1700000000\t5.5\n1700000001.5\t6\n",
        '"time","watts"\n"2023-11-14T22:13:20Z","5.5"\n"2023-11-14T22:13:21.500Z","6"\n',
        "2023-11-14 22:13:20+00:00,5.5\n2023-11-14 23:13:21.5+0100,6\n",
        "2023-11-14T17:13:20-05:00, 5.5\n\n# restarted\ntime,watts\n2023-11-14T22:13:21.5 Z, 6\n",
        "1700000001.5,6\n1700000000,5.5\n",
        'time,watts\n1700000000,"5,50"\n1700000001.5,"6,00"\n',
        "time,watts\n1700000000,5.5 W\n1700000001.5,6000 mW\n",
    ],
)
def test_the_forms_of_a_log(text):
    assert parse(text) == ([T, T + 1.5], [5.5, 6.0])


@pytest.mark.parametrize(
    "text, watts",
    [
        ('time,watts\n1700000000,"1,234.5"\n1700000001,"987.5"\n', [1234.5, 987.5]),
        ("time;watts\n1700000000;1.234,5\n1700000001;1.234\n", [1234.5, 1234.0]),
        ("time;watts\n1700000000;1 234,5\n1700000001;0,5\n", [1234.5, 0.5]),
        ("time\twatts\n1700000000\t1,234\n1700000001\t0,987\n", [1.234, 0.987]),
        ("time,watts\n1700000000,1.234\n1700000001,987\n", [1.234, 987.0]),
        ('time,watts\n1700000000,"12,345,678.9"\n1700000001,-3e1\n', [12345678.9, -30.0]),
        ("time,watts\n1700000000,1.2 kW\n1700000001,950 W\n", [1200.0, 950.0]),
        ("time;watts\n1700000000;1.234e3\n1700000001;1.301e3\n", [1234.0, 1301.0]),
        ("time;watts;\n1700000000;230,5;\n1700000001;231\n", [230.5, 231.0]),
        ("1700000000,230.5,\n1700000001,231,\n", [230.5, 231.0]),
        ("sep=;\nZeit;Leistung\n1700000000;230,5\n1700000001;231\n", [230.5, 231.0]),
        ("time,watts,volts\n1700000000,115,230\n1700000001,116,231\n", [115.0, 116.0]),
    ],
)
def test_thousands_and_decimals_by_what_the_column_shows(text, watts):
    assert parse(text)[1] == pytest.approx(watts)


@pytest.mark.parametrize(
    "text, reason",
    [
        ('time,watts\n1700000000,"1,234"\n1700000001,"987"\n', "line 2: '1,234' may be of thousands or have"),
        ("time;watts\n1700000000;1.234\n1700000001;987\n", "line 2: '1.234' may be of thousands or have"),
        ('time,watts\n1700000000,"1,5"\n1700000001,"1.5"\n', "line 3: '1.5' has other marks"),
        ('time,watts\n1700000000,5\n1700000001,"12,34,5"\n', "line 3: '12,34,5' is no number"),
        ("time,watts\n1700000000,5\n1700000001,5 V\n", "line 3: '5 V' is no number of watts"),
        ("time,watts\n1700000000,1,234.5\n1700000001,987.5\n", "line 2 has 3 cells instead of 2"),
        ("1700000000,987.5\n1700000001,1,234.5\n", "line 2 has 3 cells instead of 2"),
        ("1700000000,1,234\n1700000001,2,345\n", "line 1 has 3 cells instead of 2: give the log a header"),
        ("1700000000,1,234.5\n1700000001,999.5\n", "line 1 has 3 cells instead of 2"),
        ("1700000000,275,69\n", "line 1 has 3 cells instead of 2"),
        ("1700000000;230.1;5.5\n", "line 1 has 3 cells instead of 2"),
        ("time,power,note\n1700000000,1,234\n", "line 2: 1,234 may be one number; put it into quotes"),
        ("time,power,note\n1700000000,1,234\n1700000001,999\n", "line 3 has 2 cells instead of 3"),
        ("t;W\n1700000000;1.234\n1700000001;1.301\n", "line 2: '1.234' may be of thousands or have decimals"),
        ("t\tW\n1700000000\t1,234\n", "line 2: '1,234' may be of thousands or have decimals; write 1234,"),
        ('t,W\n1700000000,1.234\n1700000001,"1,234"\n', "'1.234' may be of thousands"),
        ("time,watts\n1700000000,5\ntime,volts,watts\n1700000001,230,5\n", "line 3: .*'volts' may hold no watts"),
        ("time,watts\n1700000000,5\ntime,watts,volts\n1700000001,5,230\n", "line 3 is a header of other columns"),
        ("time,watts\n1700000000,5\ntime,kW\n1700000001,0.005\n", "line 3 is a header of other columns"),
    ],
)
def test_a_cell_that_may_mean_several_things_is_named(text, reason):
    with pytest.raises(Unavailable, match=reason):
        parse(text)
    with pytest.raises(Unavailable, match="from the end"):
        parse(text, is_whole=False)


def test_a_time_without_a_zone_is_the_device_s(monkeypatch):
    monkeypatch.setenv("TZ", "UTC-3")
    time.tzset()
    try:
        assert parse("2023-11-15T01:13:20,5.5\n") == ([T], [5.5])
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_column_by_its_name():
    text = "time,volts,Active Power\n1700000000,230,5.5\n"
    assert parse(text, "active power") == ([T], [5.5])
    with pytest.raises(Unavailable, match="no column 'watts' but time, volts, Active Power"):
        parse(text, "watts")
    with pytest.raises(Unavailable, match="no header, so no column 'watts'"):
        parse("1700000000,5.5\n", "watts")


@pytest.mark.parametrize(
    "name, watts",
    [
        ("Power (kW)", 5500.0),
        ("power_kW_mean", 5500.0),
        ("kilowatts", 5500.0),
        ("Power [mW]", 0.0055),
        ("power1_input (uW)", 5.5e-6),
        ("Leistung", 5.5),
        ("current_power_w", 5.5),
        ("apower", 5.5),
    ],
)
def test_the_unit_of_watts_is_in_the_name_of_their_column(name, watts):
    for column in (None, name):
        assert parse(f"time,{name}\n1700000000,5.5\n", column)[1] == pytest.approx([watts])
    assert parse(f"time,{name}\n1700000000,5.5 W\n")[1] == [5.5]


@pytest.mark.parametrize(
    "name",
    [
        "voltage",
        "U [V]",
        "Strom (A)",
        "current_mA",
        "total_kwh",
        "energy",
        "Wh",
        "watt hours",
        "power_factor",
        "Power (VA)",
        "power limit",
        "Power [%]",
        "Power (MW)",
        "elapsed_ms",
    ],
)
def test_a_column_that_is_named_for_something_else_holds_no_watts(name):
    for column in (None, name):
        with pytest.raises(Unavailable, match="may hold no watts; name that of the watts by column="):
            parse(f"time,{name}\n1700000000,5.5\n", column)


def test_the_second_of_several_columns_is_taken_only_if_it_is_named_for_watts():
    assert parse("time,power,note\n1700000000,5.5,ok\n") == ([T], [5.5])
    with pytest.raises(Unavailable, match="'phase' may hold no watts; name that of the watts by column="):
        parse("time,phase,power\n1700000000,1,5.5\n")


@pytest.mark.parametrize("names", ["L1 (W),L2 (W)", "mean power,peak power", "watts,kW"])
def test_one_of_several_columns_of_watts_is_taken_only_by_its_name(names):
    text = f"time,{names}\n1700000000,5.5,7.5\n"
    with pytest.raises(Unavailable, match="several columns of watts; name one by column=, of time, "):
        parse(text)
    assert parse(text, names.partition(",")[0]) == ([T], [5.5])
    with pytest.raises(Unavailable, match="several columns 'power' but time, power, Power"):
        parse("time,power,Power\n1700000000,5.5,7.5\n", "power")


def test_a_date_may_have_slashes_with_the_year_first_only():
    assert parse("time,watts\n2023/11/14 22:13:20Z,5.5\n") == ([T], [5.5])
    assert parse("time,watts\n11/14/2023 22:13:20,5.5\n") == parse("time,watts\n2023/11-14 22:13:20Z,5\n") == ([], [])


def test_a_log_whose_rows_begin_with_something_else_is_told_so(log):
    Path(log.name).write_text("entity,state,changed\nplug,230.5,2023-11-14T22:13:20Z\nplug,off,2023-11-14T22:13:21Z\n")
    with pytest.raises(Unavailable, match="no row of watts that begins with a time, in seconds since 1970 or as 20"):
        log.sensor().read()


@pytest.mark.parametrize(
    "row",
    [
        "",
        "x",
        "1700000001",
        "1700000001,",
        "1700000001,overload",
        "1700000001,nan",
        "inf,3",
        "2023-13-01T00:00:00Z,3",
        "2023-11-14T22:13:61Z,3",
        "2023-11-14T22:13:20+99:99,3",
    ],
)
def test_rows_that_do_not_parse_are_skipped(row):
    assert parse(f"1700000000,5.5\n{row}\n1700000002,6.5\n") == ([T, T + 2], [5.5, 6.5])


@given(st.text(alphabet="0123456789-:.,;\tTZ+ \nnaif"), st.none() | st.just("watts"))
def test_any_text_parses_or_raises_unavailable(text, column):
    try:
        times_s, watts = parse(text, column)
    except Unavailable:
        return
    assert len(times_s) == len(watts) and times_s == sorted(times_s)


@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 10**6)), max_size=20))
def test_a_written_log_is_read_back(rows):
    text = "time,watts\n" + "".join(f"{at_ms / 1000!r},{milliwatts / 1000!r}\n" for at_ms, milliwatts in rows)
    samples = sorted((at_ms / 1000, milliwatts / 1000) for at_ms, milliwatts in rows)
    assert list(zip(*parse(text), strict=True)) == samples


# -- the sensor ------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    """append(seconds from now, watts) and the sensor of it."""
    path = tmp_path / "meter.csv"
    path.write_text("time,watts\n")

    class Log:
        name = str(path)

        def append(self, *rows, clock_s=None):
            with path.open("a") as file:
                for after_s, watts in rows:
                    file.write(f"{(clock_s or time.time()) + after_s:.3f},{watts}\n")

        def sensor(self, offset_s=0.0, column=None):
            return MeterLog(str(path), column, offset_s)

    return Log()


def test_a_read_gives_the_newest_row(log):
    log.append((-2, 5.0), (-1, 6.0))
    sensor = log.sensor()
    assert (sensor.read(), sensor.covers, sensor.source) == (6.0, "wall", "sensor")
    log.append((0, 7.0))
    assert sensor.read() == 7.0


def test_an_unchanged_log_is_not_parsed_again(log, monkeypatch):
    log.append((0, 5.0))
    sensor = log.sensor()
    sensor.read()
    monkeypatch.setattr(meter_log, "parse", None)
    assert sensor.read() == 5.0


def test_rows_are_on_the_monotonic_clock_and_inside_the_window_only(log):
    now_s, clock_s = time.monotonic(), time.time()
    log.append((-3, 1.0), (-2, 2.0), (-1, 3.0), (0, 4.0), clock_s=clock_s)
    times_s, watts = log.sensor().history(now_s - 2.5, now_s - 0.5)
    assert watts == [2.0, 3.0]
    assert times_s == pytest.approx([now_s - 2, now_s - 1], abs=0.05)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("rows", [3, 2000])
def test_the_end_of_a_log_in_another_encoding_is_read(log, tmp_path, encoding, rows):
    now_s = time.time()
    lines = ["Zeit;Leistung für Ofen"] + [f"{now_s - rows + row:.0f};{row},5 W" for row in range(rows)]
    (tmp_path / "meter.csv").write_bytes("\r\n".join([*lines, "17000"]).encode(encoding))
    assert log.sensor(column="leistung für ofen").read() == rows - 0.5
    assert len(log.sensor().history(time.monotonic() - 60 - rows, time.monotonic())[1]) == rows


def test_thousands_that_only_the_beginning_of_a_log_shows_are_refused(log, tmp_path):
    lines = [
        f"{time.time() - 600 + row:.0f};{980 + row % 7 if row < 300 else f'1.2{row % 90:02}'}" for row in range(600)
    ]
    (tmp_path / "meter.csv").write_text("\n".join(["time;watts", *lines, ""]))
    with pytest.raises(Unavailable, match="from the end: '1.2..' may be of thousands"):
        log.sensor().read()
    assert log.sensor().history(time.monotonic() - 590, time.monotonic()) == ([], [])


def test_lines_above_the_header_are_kept_with_the_end_of_a_long_log(log, tmp_path):
    lines = [f"{time.time() - 2000 + row:.0f},0.{row % 900 + 100}" for row in range(2000)]
    (tmp_path / "meter.csv").write_text("\n".join(["# of a meter", "time,Power (kW)", *lines, ""]))
    assert log.sensor().read() == 299.0


def test_a_byte_that_is_no_text_is_named(log, tmp_path):
    (tmp_path / "meter.csv").write_bytes(b"time,watts f\xfcr Ofen\n1,2\n")
    with pytest.raises(Unavailable, match=r"meter\.csv: 0xfc at byte 12 is no UTF-8 text"):
        log.sensor().read()


def test_a_meter_whose_clock_is_ahead(log):
    now_s, clock_s = time.monotonic(), time.time()
    log.append((99, 1.0), (100, 2.0), clock_s=clock_s)
    sensor = log.sensor(offset_s=100.0)
    times_s, watts = sensor.history(now_s - 0.5, now_s + 0.5)
    assert (times_s, watts) == (pytest.approx([now_s], abs=0.05), [2.0])
    assert sensor.read() == 2.0
    with pytest.raises(Unavailable, match="100 s ahead of this device's clock"):
        log.sensor().read()


def test_an_outdated_log_is_unavailable(log):
    log.append((-600, 5.0))
    with pytest.raises(Unavailable, match="newest row of .* is 600 s behind"):
        log.sensor().read()


def test_an_unreadable_log_has_a_reason_and_an_empty_history(tmp_path, log):
    absent = MeterLog(str(tmp_path / "none.csv"), None, 0.0)
    with pytest.raises(Unavailable, match="none.csv cannot be read: No such file"):
        absent.read()
    assert absent.history(0.0, 1e9) == ([], [])
    with pytest.raises(Unavailable, match="no row of watts that begins with a time"):
        log.sensor().read()
    with pytest.raises(Unavailable, match="no column"):
        log.sensor(column="volts").read()


def test_only_the_header_and_the_end_of_a_long_log_are_read(log, monkeypatch):
    log.append(*((second - 5000, second) for second in range(5000)))
    assert len(meter_log.tail(log.name, meter_log.ROW_BYTES)) < 2 * meter_log.ROW_BYTES
    assert log.sensor(column="watts").read() == 4999.0
    monkeypatch.setattr(meter_log, "WINDOW_BYTES", 1000)
    now_s = time.monotonic()
    _, watts = log.sensor(column="watts").history(now_s - 1e4, now_s)
    assert watts == [float(number) for number in range(int(watts[0]), 5000)]
    assert 30 < len(watts) < 60


@pytest.mark.parametrize("column", [None, "watts"])
def test_a_long_log_is_read_no_further_back_than_the_window(log, monkeypatch, column):
    log.append(*((second - 5000, second) for second in range(5001)))
    limits, now_s = [], time.monotonic()
    tail = meter_log.tail

    def counted(path, limit_bytes):
        limits.append(limit_bytes)
        return tail(path, limit_bytes)

    monkeypatch.setattr(meter_log, "tail", counted)
    assert log.sensor(column=column).history(now_s - 3.5, now_s - 0.5)[1] == [4997.0, 4998.0, 4999.0]
    assert limits == [meter_log.ROW_BYTES]
    _, watts = log.sensor(column=column).history(now_s - 1000.5, now_s - 0.5)
    assert watts == [float(second) for second in range(4000, 5000)]
    assert max(limits) == 16 * meter_log.ROW_BYTES
