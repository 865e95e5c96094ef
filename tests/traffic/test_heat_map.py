"""Heat maps of workloads: their numbers, and the pictures as far as a program can judge them."""

import io
import random
import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from lazulite.traffic.codec import decode, encode
from lazulite.traffic.findings import Thresholds, findings
from lazulite.traffic.heat_map import HeatMap, heat_map
from lazulite.traffic.key_sample import KeySample
from lazulite.traffic.meter import PROPERTIES_MAX, Meter, ResourceTraffic
from lazulite.traffic.picture import PICTURE_SIZE, coloured, encoded, html, png, shown, svg
from tests.traffic.test_meter import GET, ORDERS, PUT, START, Time

MINUTES, RATE = 60, 60


def key_of(name: str, number: int, chance: random.Random) -> str:
    spread = f"user{chance.randrange(10_000):05d}"
    return {
        "uniform": spread,
        "hot": "user04711" if chance.random() < 0.7 else spread,
        "append": f"{number:08d}",
        "prepend": f"{10**7 - number:08d}",
        "hashed": f"{number * 7919 % 10_007:05d}-{number:08d}",
    }[name]


@cache
def traffic_of(name: str, counts: tuple[int, ...] = PUT) -> tuple[ResourceTraffic, float]:
    time, chance = Time(), random.Random(7)
    meter = Meter(time)
    for number in range(MINUTES * RATE):
        meter.note(ORDERS, key_of(name, number, chance), counts)
        time.now += 60 / RATE
    return sent(meter, time), time.now


def sent(meter: Meter, time: Time) -> ResourceTraffic:
    """Return the traffic of the orders as a client gets it."""
    found = meter.traffic(ORDERS)
    assert found is not None
    return decode(encode(found, meter.weight(), time.now))


def map_of(name: str) -> HeatMap:
    traffic, now = traffic_of(name)
    return heat_map("Orders", traffic, now - 1, 3600)


def test_a_map_has_the_rates() -> None:
    time = Time()
    meter = Meter(time)
    for second in range(600):
        meter.note(ORDERS, "p", GET)
        if second < 60:
            meter.note(ORDERS, "p", PUT)
        time.now += 1
    found = meter.traffic(ORDERS)
    assert found is not None
    drawn = heat_map("Orders", found, time.now - 1, 1800)
    assert (drawn.begin, drawn.seconds, drawn.columns) == (START + 600 - 1800, 60, 30)
    reads = [sum(column) for column in zip(*drawn.reads, strict=True)]
    writes = [sum(column) for column in zip(*drawn.writes, strict=True)]
    assert reads == pytest.approx([0] * 20 + [1] * 10)
    assert writes == pytest.approx([0] * 20 + [1] + [0] * 9)
    assert drawn.as_json()["starts"] == ["", "p", "p\0"], "the only partition is set apart"
    assert sum(drawn.reads[1]) == pytest.approx(10)


@pytest.mark.parametrize(("last", "seconds", "columns"), [(60, 60, 1), (6 * 3600, 60, 360), (7 * 3600, 600, 42)])
def test_columns_are_as_narrow_as_are_kept(last: float, seconds: int, columns: int) -> None:
    traffic, now = traffic_of("uniform")
    drawn = heat_map("Orders", traffic, now, last)
    assert (drawn.seconds, drawn.columns) == (seconds, columns)


def test_the_hottest_range_has_the_hot_key() -> None:
    (hottest, second) = map_of("hot").hottest(2)
    assert hottest.first <= "user04711"
    assert hottest.after is not None
    assert hottest.after > "user04711"
    assert hottest.writes > 0.5
    assert second.writes < hottest.writes / 4


def test_appended_keys_are_a_diagonal() -> None:
    drawn = map_of("append")
    brightest = [
        max(range(len(drawn.starts)), key=lambda row: drawn.writes[row][column]) for column in range(5, drawn.columns)
    ]
    assert brightest == sorted(brightest)
    assert brightest[-1] > brightest[0] + 20


def test_uniform_keys_are_even() -> None:
    drawn = map_of("uniform")
    assert max(each.writes for each in drawn.hottest(1)) < 0.2


FINDINGS = {
    "uniform": [],
    "hashed": [],
    "hot": ["hot"],
    "append": ["append-only"],
    "prepend": ["prepend-only"],
}


@pytest.mark.parametrize("name", FINDINGS)
def test_each_workload_has_its_findings(name: str) -> None:
    found = list(findings(traffic_of(name)[0], thresholds=Thresholds(partition_target=2)))
    assert [each.kind for each in found] == FINDINGS[name]


def test_a_remedy_has_real_keys() -> None:
    (appended,) = findings(traffic_of("append")[0], thresholds=Thresholds(partition_target=0.1))
    assert ";00003599'" in appended.remedy
    assert "one of 20 buckets" in appended.remedy
    (hot,) = findings(traffic_of("hot")[0], KeySample(row="2026-11"), Thresholds(partition_target=1))
    assert "such as 'user04711;2026'" in hot.remedy
    assert "one of 2 buckets, by a hash of the RowKey: 'user04711;" in hot.remedy
    assert "70%" in hot.evidence or "71%" in hot.evidence
    (hot,) = findings(traffic_of("hot")[0], thresholds=Thresholds(partition_target=1))
    assert "such as" not in hot.remedy


def test_appended_times_are_reversed() -> None:
    time = Time()
    meter = Meter(time)
    for _ in range(200):
        time.now += 1
        meter.note(ORDERS, f"{int(time.now)}", PUT)
    (found,) = findings(sent(meter, time))
    assert found.kind == "append-only"
    assert "the newest first, make reversed ticks the RowKey: '2517" in found.remedy


def fine(keys: Sequence[str], rows: int = 1) -> KeySample:
    sample = KeySample()
    for key in sorted(keys):
        for _ in range(rows):
            sample.add(key)
    return sample


USERS = [f"user{number:05d}" for number in range(10_000)]


@pytest.mark.parametrize(
    ("sample", "counts", "expected"),
    [
        (fine(USERS), PUT, ["too-fine"]),
        (fine(USERS[:9_999]), PUT, []),
        (fine(USERS, 2), PUT, []),
        (fine([*USERS, *USERS[:600]]), PUT, []),
        (fine([*USERS, *USERS[:400]]), PUT, ["too-fine"]),
        (fine(USERS), (0, 0, 2, 200, 0, 1, 0), []),
        (fine(USERS), GET, []),
        (KeySample(), PUT, []),
    ],
)
def test_partitions_of_one_row_are_a_finding(sample: KeySample, counts: tuple[int, ...], expected: list[str]) -> None:
    found = list(findings(traffic_of("uniform", counts)[0], sample))
    assert [each.kind for each in found] == expected
    if found:
        assert re.search(r"the rest the RowKey: 'user\d\d\d' and '\d\d'", found[0].remedy)


def test_keys_that_share_no_beginning_become_row_keys_of_buckets() -> None:
    sample = fine([f"user-{'x' * 64}{number:05d}" for number in range(10_001)])
    (found,) = findings(traffic_of("uniform")[0], sample)
    assert re.search(r"a hash of the key the PartitionKey, and the key the RowKey: '\d\d' and 'user\d+'", found.remedy)


def test_a_hot_key_below_the_target_is_no_finding() -> None:
    assert list(findings(traffic_of("hot")[0])) == []


@pytest.mark.parametrize(("returned", "pages", "expected"), [(1, 2_000, ["scan-heavy"]), (50, 2_000, []), (1, 900, [])])
def test_queries_that_scan_much_are_a_finding(returned: int, pages: int, expected: list[str]) -> None:
    time = Time()
    meter = Meter(time)
    for _ in range(pages):
        meter.note(ORDERS, ("a", "z"), (0, 1_000, 0, 0, 0, 1, 0))
        meter.note_query(ORDERS, "table scan", 1_000, returned)
    found = meter.traffic(ORDERS)
    assert found is not None
    assert [each.kind for each in findings(found)] == expected


def test_the_property_that_most_scans_filter_by_is_named() -> None:
    meter = Meter(Time())
    for number in range(2_000):
        meter.note_query(ORDERS, "table scan", 1_000, 1, ["City"] if number % 4 else ["Name", "City"])
        meter.note_query(ORDERS, "partition scan", 10, 1, ["Zip"])
    found = meter.traffic(ORDERS)
    assert found is not None
    (finding,) = findings(found)
    assert "most by queries of the class table scan, 100% of those by City, 1,000 rows a page" in finding.evidence
    assert finding.remedy.startswith("Make City the PartitionKey")
    assert "'<City>;<RowKey>'" in finding.remedy


def test_properties_are_bounded() -> None:
    meter = Meter(Time())
    for number in range(100):
        meter.note_query(ORDERS, "table scan", 1, 1, [f"P{number}"])
    found = meter.traffic(ORDERS)
    assert found is not None
    assert list(found.queries["table scan"].properties) == [f"P{number}" for number in range(PROPERTIES_MAX)]


def pixels(data: bytes) -> list[list[tuple[int, ...]]]:
    """Return the rows of a PNG that `png` made."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = zlib.decompress(chunks[b"IDAT"])
    rows = [lines[row * (3 * width + 1) + 1 :][: 3 * width] for row in range(height)]
    return [[tuple(row[3 * column : 3 * column + 3]) for column in range(width)] for row in rows]


def test_brightness_rises_with_the_rate() -> None:
    (row,) = pixels(encoded(coloured([[0, 0.0001, 0.01, 0.1, 0.5, 1]], 1)))
    brightness = [sum(each) for each in row]
    assert brightness[0] == brightness[1] < brightness[2] < brightness[3] < brightness[4] < brightness[5]
    assert pixels(encoded(coloured([[0, 0]], 0))) == [[row[0], row[0]]]


@pytest.mark.parametrize("name", FINDINGS)
def test_a_picture_is_well_formed_and_bounded(name: str) -> None:
    text = svg(map_of(name))
    root = ET.fromstring(text)
    images = [each for each in root.iter() if each.tag.endswith("}image")]
    for image in images:
        rows = pixels(b64decode(image.attrib["href"].partition(",")[2]))
        assert 1 <= len(rows) <= 300
        assert len(rows[0]) == 60
    assert len(images) == 2
    assert len(text) < 200_000


HOSTILE = "<script>alert(1)</script>&\"'\x00\x1b\ud800\u202e"


@pytest.mark.parametrize("make", [svg, lambda drawn: html(drawn, [(HOSTILE, 0.5)])], ids=["svg", "html"])
def test_keys_are_no_markup(make: Callable[[HeatMap], str]) -> None:
    drawn = HeatMap(HOSTILE, 0, 60, ["", HOSTILE], [[1.0], [2.0]], [[0.0], [0.0]])
    text = make(drawn)
    text.encode("utf-8")
    assert "<script" not in text
    assert not any(each in text for each in "\x00\x1b\u202e")


def test_the_text_after_a_key_is_shown_as_such() -> None:
    assert shown("") == "(first key)"
    assert shown("user04711") == "user04711"
    assert shown("user04711\0") == "after user04711"
    assert ">after user04711<" in svg(map_of("hot"))


@pytest.mark.parametrize("name", FINDINGS)
def test_a_png_shows_what_the_svg_shows(name: str) -> None:
    drawn = map_of(name)
    image = Image.open(io.BytesIO(png(drawn)))
    assert image.size == tuple(2 * each for each in PICTURE_SIZE)
    panels = [each for each in ET.fromstring(svg(drawn)).iter() if each.tag.endswith("}image")]
    for panel in panels:
        rows = pixels(b64decode(panel.attrib["href"].partition(",")[2]))
        x, y, width, height = (2 * int(panel.attrib[each]) for each in ("x", "y", "width", "height"))
        for number in (0, len(rows) // 2, len(rows) - 1):
            for column in (0, 30, 59):
                place = x + (column + 0.5) * width / 60, y + (number + 0.5) * height / len(rows)
                assert image.getpixel((int(place[0]), int(place[1]))) == rows[number][column]
    head = image.crop((0, 0, image.size[0], 60)).getcolors()
    assert head is not None
    assert len(head) > 2, "there is a title"


def test_a_png_of_hostile_keys_is_drawn() -> None:
    assert png(HeatMap(HOSTILE, 0, 60, ["", HOSTILE], [[1.0], [2.0]], [[0.0], [0.0]])).startswith(b"\x89PNG")


def test_a_map_without_traffic_is_drawn() -> None:
    png(HeatMap("Orders", 0, 60, [""], [[0.0] * 3], [[0.0] * 3]))
    text = svg(HeatMap("Orders", 0, 60, [""], [[0.0] * 3], [[0.0] * 3]))
    assert "Heat map of Orders" in text
