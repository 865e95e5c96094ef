"""Pictures of heat maps: as SVG, as a page of HTML, and as PNG.

A picture has the ranges from top to bottom in the order of their keys, each of the same height, and time from left to
right. Brightness is the rate on a logarithmic scale, so that a thousandth of the greatest rate is still seen. A bright
line is a hot key, a diagonal a sequence of rising keys, an even surface keys that are spread well.

A picture is a list of shapes, which each format draws. Keys are data of clients: a shape has no character that cannot
be printed, and SVG and HTML have its text escaped.
"""

import io
import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final, Literal, NamedTuple, TypeAlias

from lazulite.traffic.heat_map import HeatMap

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
PICTURE_SIZE: Final = (_LEFT + _WIDTH + 110, _TOP + 2 * (_HEIGHT + _GAP))
_PNG_SCALE = 2
"""The pixels of a PNG for each unit of a picture."""
_INK = "#222222"

Colour: TypeAlias = tuple[int, int, int]


class Text(NamedTuple):
    """A line of text; `x` and `y` are at its anchor, on the baseline."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = 12
    is_title: bool = False
    is_key: bool = False


class Rectangle(NamedTuple):
    """A rectangle of one colour."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour


class Surface(NamedTuple):
    """A rectangle of cells, each of one colour."""

    x: float
    y: float
    width: float
    height: float
    rows: Sequence[Sequence[Colour]]


Shape: TypeAlias = Text | Rectangle | Surface


def shapes(found: HeatMap) -> Iterator[Shape]:
    """Yield the shapes of a heat map: a panel for reads above one for writes."""
    starts, panels = joined(found)
    yield Text(_LEFT, 24, _printable(found.name), size=17, is_title=True)
    end = found.begin + found.columns * found.seconds
    times = f"{_time(found.begin, True)} to {_time(end, True)} UTC"
    count = len(found.starts)
    ranges = f"{count:,} key {'range' if count == 1 else 'ranges'}, a column has {found.seconds // 60} min"
    yield Text(_LEFT + _WIDTH, 24, f"{times}, {ranges}", "end")
    for index, (title, rows) in enumerate(panels.items()):
        yield from _panel(found, title, rows, starts, _TOP + index * (_HEIGHT + _GAP))


def svg(found: HeatMap) -> str:
    """Return the picture of a heat map as SVG."""
    width, height = PICTURE_SIZE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}" role="img">',
        f"<title>Heat map of {escape(_printable(found.name))}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *map(_element, shapes(found)),
        "</svg>",
    ]
    return "\n".join(parts)


def _element(shape: Shape) -> str:
    if isinstance(shape, Text):
        style = "".join(
            (
                "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"',
                f' font-size="{shape.size}"' if shape.size != 12 else "",
                ' font-weight="600"' if shape.is_title else "",
                ' font-family="monospace"' if shape.is_key else "",
            )
        )
        return f'<text x="{shape.x:.0f}" y="{shape.y:.0f}"{style}>{escape(shape.text)}</text>'
    place = f'x="{shape.x:.0f}" y="{shape.y:.0f}" width="{shape.width:.0f}" height="{shape.height:.0f}"'
    if isinstance(shape, Rectangle):
        return f'<rect {place} fill="{_hex(shape.colour)}"/>'
    picture = b64encode(encoded(shape.rows)).decode()
    style = 'preserveAspectRatio="none" style="image-rendering:pixelated"'
    return f'<image {place} {style} href="data:image/png;base64,{picture}"/>'


def html(found: HeatMap, partitions: Sequence[tuple[str, float]]) -> str:
    """Return a page with the picture of a heat map, its hottest ranges, and the busiest partitions.

    Args:
        found: the heat map.
        partitions: keys with their share of the traffic, the busiest first.
    """
    ranges = "".join(
        f"<tr><td><code>{escape(shown(each.first))}</code></td>"
        f"<td><code>{'(last key)' if each.after is None else escape(shown(each.after))}</code></td>"
        f"<td>{each.reads:,.2f}</td><td>{each.writes:,.2f}</td></tr>"
        for each in found.hottest(20)
    )
    shares = "".join(f"<tr><td><code>{_text(key)}</code></td><td>{share:.1%}</td></tr>" for key, share in partitions)
    busiest = f"<h2>Busiest partitions</h2><table><tr><th>partition</th><th>share</th></tr>{shares}</table>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Heat map of {_text(found.name)}</title><style>"
        "body{font:14px system-ui,sans-serif;margin:2rem;max-width:1300px;color:#222}"
        "svg{width:100%;height:auto}table{border-collapse:collapse;margin:1rem 0}"
        "td,th{padding:.2rem 1rem .2rem 0;text-align:left}td:nth-last-child(-n+2){font-variant-numeric:tabular-nums}"
        f"</style></head><body>{svg(found)}"
        "<h2>Hottest key ranges</h2><table><tr><th>from</th><th>to, without</th><th>reads/s</th><th>writes/s</th></tr>"
        f"{ranges}</table>{busiest if partitions else ''}</body></html>\n"
    )


def png(found: HeatMap) -> bytes:
    """Return the picture of a heat map as PNG. It needs the extra `png`."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - of an extra

    width, height = (each * _PNG_SCALE for each in PICTURE_SIZE)
    image = Image.new("RGB", (width, height), "#ffffff")
    draw = ImageDraw.Draw(image)
    for shape in shapes(found):
        x, y = round(shape.x * _PNG_SCALE), round(shape.y * _PNG_SCALE)
        if isinstance(shape, Text):
            font = ImageFont.load_default(shape.size * _PNG_SCALE)
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            draw.text((x, y), shape.text, _INK, font, anchor, stroke_width=int(shape.is_title))
            continue
        size = round(shape.width * _PNG_SCALE), round(shape.height * _PNG_SCALE)
        if isinstance(shape, Rectangle):
            draw.rectangle((x, y, x + size[0], y + size[1]), shape.colour)
        else:
            cells = Image.open(io.BytesIO(encoded(shape.rows)))
            image.paste(cells.resize(size, Image.Resampling.NEAREST), (x, y))
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def joined(found: HeatMap) -> tuple[Sequence[str], Mapping[str, Sequence[Sequence[float]]]]:
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
) -> Iterator[Shape]:
    most = max((max(row) for row in rows), default=0.0)
    yield Text(_LEFT, top - 8, title, is_title=True)
    yield Surface(_LEFT, top, _WIDTH, _HEIGHT, coloured(rows, most))
    for index in _spread(len(starts), _LABELS):
        y = top + (index + 0.5) * _HEIGHT / len(starts) + 4
        label = shown(starts[index])
        if len(label) > _LABEL_CHARACTERS_MAX:
            label = f"{label[: _LABEL_CHARACTERS_MAX - 1]}…"
        yield Text(_LEFT - 8, y, label, "end", is_key=True)
    is_long = found.columns * found.seconds > 24 * 3600
    for index in _spread(found.columns, _LABELS):
        x = _LEFT + (index + 0.5) * _WIDTH / found.columns
        yield Text(x, top + _HEIGHT + 16, _time(found.begin + index * found.seconds, is_long)[-11:], "middle")
    scale = [10 ** (-_DECADES * step / 6) for step in range(7)]
    for index, share in enumerate(scale if most else ()):
        y = top + index * 22
        yield Rectangle(_LEFT + _WIDTH + 12, y, 14, 22, _colour(share))
        yield Text(_LEFT + _WIDTH + 32, y + 15, f"{most * share:,.3g}/s")


def coloured(rows: Sequence[Sequence[float]], most: float) -> list[list[Colour]]:
    """Return the colour of each value; the greatest value is the brightest."""
    return [[_colour(value / most if most else 0.0) for value in row] for row in rows]


def encoded(rows: Sequence[Sequence[Colour]]) -> bytes:
    """Return a PNG with a pixel for each colour."""
    scanlines = b"".join(b"\0" + b"".join(map(bytes, row)) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(scanlines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _colour(share: float) -> Colour:
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


def shown(start: str) -> str:
    """Return the first key of a range as people read it; the text right after a key is none."""
    key, after = (start[:-1], "after ") if start.endswith("\0") else (start, "")
    return after + _printable(key) if start else "(first key)"


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _printable(key: str) -> str:
    """Return text with a sign in place of what cannot be printed."""
    return "".join(each if each.isprintable() else "\ufffd" for each in key)


def _text(key: str) -> str:
    """Return text for HTML, with a sign in place of what it cannot hold."""
    return escape(_printable(key))
