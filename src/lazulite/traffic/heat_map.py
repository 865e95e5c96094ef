"""The heat map of a resource: its key ranges by time, reads and writes apart, as Bigtable's Key Visualizer has it.

A picture has the ranges from top to bottom in the order of their keys, each of the same height, and time from left to
right. Brightness is the rate on a logarithmic scale, so that a thousandth of the greatest rate is still seen. A bright
line is a hot key, a diagonal a sequence of rising keys, an even surface keys that are spread well.

Keys are data of clients: pictures show them escaped.
"""

import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from lazulite.control.command import Json
from lazulite.traffic.counters import READ, RESOLUTIONS, SCANNED, WRITTEN
from lazulite.traffic.key_ranges import KeyRange
from lazulite.traffic.meter import ResourceTraffic

ROWS_MIN, ROWS_MAX = 24, 300
"""The rows of a picture: each is a range, or several cold neighbours."""
_REQUESTS_OF_CELL = 4
"""How many entities a cell of a picture stands for in the mean, unless there are too few rows."""
_DECADES = 3.0
_FAINTEST = 0.12
_COLOURS = (
    *((0, 0, 4), (40, 11, 84), (101, 21, 110), (159, 42, 99)),
    *((212, 72, 66), (245, 125, 21), (250, 193, 39), (252, 255, 164)),
)
"""From no traffic to the most; lightness rises evenly, and so it does without colour vision."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 960, 300, 190, 60, 70
_LABELS = 10
_LABEL_CHARACTERS_MAX = 24


@dataclass(frozen=True, slots=True)
class HotRange:
    """A key range with its rates, in entities per second over the whole time."""

    first: str
    after: str | None
    """The first key behind it; None: it is the last range."""
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The rates of a resource, in entities per second."""

    name: str
    begin: int
    """The Unix time of the first column."""
    seconds: int
    """The time of a column."""
    starts: Sequence[str]
    """The first key of each range."""
    reads: Sequence[Sequence[float]]
    """Entities read and rows scanned, by range and column."""
    writes: Sequence[Sequence[float]]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.reads[0])

    def hottest(self, count: int) -> list[HotRange]:
        """Return the ranges with most traffic, the hottest first."""
        ends = [*self.starts[1:], None]
        ranges = [
            HotRange(start, after, sum(reads) / self.columns, sum(writes) / self.columns)
            for start, after, reads, writes in zip(self.starts, ends, self.reads, self.writes, strict=True)
        ]
        ranges.sort(key=lambda each: -(each.reads + each.writes))
        return [each for each in ranges[:count] if each.reads + each.writes]

    def as_json(self) -> Mapping[str, Json]:
        """Return it as a JSON object: what the pictures show."""
        return {
            "name": self.name,
            "begin": self.begin,
            "seconds": self.seconds,
            "starts": self.starts,
            "reads": self.reads,
            "writes": self.writes,
        }


def heat_map(name: str, traffic: ResourceTraffic, now: float, last_seconds: float) -> HeatMap:
    """Return the heat map of a resource's latest time, in columns as narrow as are kept of all of it.

    Args:
        name: of the resource.
        traffic: of the resource.
        now: the Unix time at which the map ends.
        last_seconds: how much time it shows.
    """
    index = next(
        (index for index, each in enumerate(RESOLUTIONS) if each.seconds * each.length >= last_seconds),
        len(RESOLUTIONS) - 1,
    )
    seconds, length = RESOLUTIONS[index]
    columns = max(1, min(length, math.ceil(last_seconds / seconds)))
    first = int(now // seconds) - columns + 1
    reads, writes = [], []
    for each in traffic.ranges.ranges:
        row_reads, row_writes = _row(each, index, first, columns, seconds)
        reads.append(row_reads)
        writes.append(row_writes)
    return HeatMap(name, first * seconds, seconds, traffic.ranges.starts, reads, writes)


def _row(found: KeyRange, index: int, first: int, columns: int, seconds: int) -> tuple[list[float], list[float]]:
    reads, writes = [0.0] * columns, [0.0] * columns
    for column, counts in found.history.rings[index].cells():
        if 0 <= column - first < columns:
            reads[column - first] = (counts[READ] + counts[SCANNED]) / seconds
            writes[column - first] = counts[WRITTEN] / seconds
    return reads, writes


def svg(found: HeatMap) -> str:
    """Return the picture of a heat map: a panel for reads above one for writes."""
    starts, panels = _joined(found)
    height = _TOP + 2 * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 110} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#222" role="img">',
        f"<title>Heat map of {_text(found.name)}</title>",
        f'<rect width="{_LEFT + _WIDTH + 110}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="24" font-size="17" font-weight="600">{_text(found.name)}</text>',
        f'<text x="{_LEFT + _WIDTH}" y="24" text-anchor="end">{_time(found.begin, True)} to '
        f"{_time(found.begin + found.columns * found.seconds, True)} UTC, "
        f"{len(found.starts):,} key ranges, a column has {found.seconds // 60} min</text>",
    ]
    for index, (title, rows) in enumerate(panels.items()):
        top = _TOP + index * (_HEIGHT + _GAP)
        parts.extend(_panel(found, title, rows, starts, top))
    return "\n".join([*parts, "</svg>"])


def html(found: HeatMap, partitions: Sequence[tuple[str, float]]) -> str:
    """Return a page with the picture of a heat map, its hottest ranges, and the busiest partitions.

    Args:
        found: the heat map.
        partitions: keys with their share of the traffic, the busiest first.
    """
    ranges = "".join(
        f"<tr><td><code>{_text(each.first) or '(first key)'}</code></td>"
        f"<td><code>{'(last key)' if each.after is None else _text(each.after)}</code></td>"
        f"<td>{each.reads:,.2f}</td><td>{each.writes:,.2f}</td></tr>"
        for each in found.hottest(20)
    )
    shares = "".join(f"<tr><td><code>{_text(key)}</code></td><td>{share:.1%}</td></tr>" for key, share in partitions)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Heat map of {_text(found.name)}</title><style>"
        "body{font:14px system-ui,sans-serif;margin:2rem;max-width:1300px;color:#222}"
        "svg{width:100%;height:auto}table{border-collapse:collapse;margin:1rem 0}"
        "td,th{padding:.2rem 1rem .2rem 0;text-align:left}td:nth-last-child(-n+2){font-variant-numeric:tabular-nums}"
        f"</style></head><body>{svg(found)}"
        "<h2>Hottest key ranges</h2><table><tr><th>from</th><th>to, without</th><th>reads/s</th><th>writes/s</th></tr>"
        f"{ranges}</table><h2>Busiest partitions</h2><table><tr><th>partition</th><th>share</th></tr>"
        f"{shares}</table></body></html>\n"
    )


def _joined(found: HeatMap) -> tuple[Sequence[str], Mapping[str, Sequence[Sequence[float]]]]:
    """Return the rows of the pictures. Cold neighbours are one row, so that a cell stands for several requests."""
    loads = [sum(reads) + sum(writes) for reads, writes in zip(found.reads, found.writes, strict=True)]
    count = sum(loads) * found.seconds / (found.columns * _REQUESTS_OF_CELL)
    bound = sum(loads) / max(ROWS_MIN, min(ROWS_MAX, count))
    groups: list[list[int]] = []
    load = math.inf
    for index, each in enumerate(loads):
        if load + each > bound:
            groups.append([])
            load = 0
        groups[-1].append(index)
        load += each

    def rows(values: Sequence[Sequence[float]]) -> list[list[float]]:
        return [[sum(column) for column in zip(*(values[each] for each in group), strict=True)] for group in groups]

    return [found.starts[group[0]] for group in groups], {"Reads": rows(found.reads), "Writes": rows(found.writes)}


def _panel(
    found: HeatMap, title: str, rows: Sequence[Sequence[float]], starts: Sequence[str], top: int
) -> Iterator[str]:
    most = max((max(row) for row in rows), default=0.0)
    picture = b64encode(png(rows, most)).decode()
    yield f'<text x="{_LEFT}" y="{top - 8}" font-weight="600">{title}</text>'
    yield (
        f'<image x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{picture}"/>'
    )
    for index in _spread(len(starts), _LABELS):
        y = top + (index + 0.5) * _HEIGHT / len(starts) + 4
        label = starts[index] or "(first key)"
        shown = label if len(label) <= _LABEL_CHARACTERS_MAX else f"{label[: _LABEL_CHARACTERS_MAX - 1]}…"
        yield f'<text x="{_LEFT - 8}" y="{y:.0f}" text-anchor="end" font-family="monospace">{_text(shown)}</text>'
    is_long = found.columns * found.seconds > 24 * 3600
    for index in _spread(found.columns, _LABELS):
        x = _LEFT + (index + 0.5) * _WIDTH / found.columns
        time = _time(found.begin + index * found.seconds, is_long)
        yield f'<text x="{x:.0f}" y="{top + _HEIGHT + 16}" text-anchor="middle">{time}</text>'
    scale = [10 ** (-_DECADES * step / 6) for step in range(7)]
    for index, share in enumerate(scale if most else ()):
        y = top + index * 22
        colour = "#{:02x}{:02x}{:02x}".format(*_colour(share))
        yield f'<rect x="{_LEFT + _WIDTH + 12}" y="{y}" width="14" height="22" fill="{colour}"/>'
        yield f'<text x="{_LEFT + _WIDTH + 32}" y="{y + 15}">{most * share:,.3g}/s</text>'


def png(rows: Sequence[Sequence[float]], most: float) -> bytes:
    """Return a PNG with a pixel for each value; the greatest value is the brightest."""
    scanlines = bytearray()
    for row in rows:
        scanlines.append(0)
        for value in row:
            scanlines.extend(_colour(value / most if most else 0.0))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(scanlines), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _colour(share: float) -> tuple[int, int, int]:
    """Return the colour of a share of the greatest rate."""
    if share < 10**-_DECADES:
        return _COLOURS[0]
    place = max(_FAINTEST, min(1.0, 1 + math.log10(share) / _DECADES)) * (len(_COLOURS) - 1)
    index = min(int(place), len(_COLOURS) - 2)
    lower, upper, part = _COLOURS[index], _COLOURS[index + 1], place - index
    red, green, blue = (round(one + (other - one) * part) for one, other in zip(lower, upper, strict=True))
    return red, green, blue


def _spread(count: int, most: int) -> list[int]:
    """Return at most `most` of the numbers below a count, at equal distances, from the first to the last."""
    if count <= most:
        return list(range(count))
    return [round(index * (count - 1) / (most - 1)) for index in range(most)]


def _time(seconds: int, with_date: bool) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%d %H:%M" if with_date else "%H:%M")


def _text(key: str) -> str:
    """Return text for HTML and SVG, with a sign in place of what these cannot hold."""
    return escape("".join(each if each.isprintable() else "\ufffd" for each in key))
