"""Plots with axes, as SVG and as PNG: lines with markers, and bars.

A plot is a list of shapes, which each format draws. A series differs from another one by its colour, by its dashes and
by its marker, so that the plot can be read in print without colour.
"""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageFont import FreeTypeFont, ImageFont

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#8e3b8a", "#5c4a00", "#222222")
"""Distinguished without colour vision, and dark on white."""
_DASHES: Sequence[tuple[int, ...]] = ((), (7, 4), (2, 3), (10, 3, 2, 3), (4, 2), (1, 2))
_INK, _GRID, _SHADE = "#222222", "#dddddd", "#eeeeee"
_WIDTH, _HEIGHT = 420, 250
_LEFT, _TOP, _RIGHT, _BOTTOM = 78, 62, 22, 52
_LEGEND_STEP = 17
_TICKS = 5
_MARKERS_MAX = 40
_PNG_SCALE = 2
_MARKER = 3.2
_HEADROOM = 1.12
"""Room for the texts of marks above the greatest value."""


@dataclass(slots=True)
class Series:
    """A series of points."""

    name: str
    points: list[tuple[float, float]] = field(default_factory=list)
    is_bars: bool = False
    """Whether each point is a bar, of the width to the next one."""


@dataclass(slots=True, kw_only=True)
class _Scale:
    least: float
    most: float
    length: float
    is_logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return the distance of a value from the least one."""
        least, most, at = self.least, self.most, value
        if self.is_logarithmic:
            least, most, at = math.log10(least), math.log10(most), math.log10(max(value, least))
        return (at - least) / ((most - least) or 1) * self.length

    def ticks(self) -> list[float]:
        """Return round values."""
        if self.is_logarithmic:
            low, high = math.ceil(math.log10(self.least) - 1e-9), math.floor(math.log10(self.most) + 1e-9)
            decades = [10.0**power for power in range(low, high + 1)]
            steps = (1, 2, 5) if len(decades) < 4 else (1,)
            found = [decade * step for decade in [10.0 ** (low - 1), *decades] for step in steps]
            return [each for each in found if self.least <= each <= self.most * (1 + 1e-9)]
        step = round_up((self.most - self.least) / _TICKS)
        first = math.ceil(self.least / step - 1e-9)
        return [number * step for number in range(first, int(self.most / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Panel:
    """A pair of axes and what is drawn between them."""

    title: str
    x_name: str
    y_name: str
    series: Sequence[Series]
    marks: Sequence[tuple[float, str]] = ()
    """Vertical lines with a text."""
    shaded: tuple[float, str] | None = None
    """From where on the picture is shaded, and what that means."""
    is_x_logarithmic: bool = False
    x_ticks: Sequence[float] = ()
    """Where there are ticks; (): at round values."""


class Plot(NamedTuple):
    """Panels side by side below a title."""

    title: str
    panels: Sequence[Panel]


class Text(NamedTuple):
    """A line of text; `x` and `y` are at its anchor, on the baseline."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = 12
    is_title: bool = False
    is_upright: bool = False
    """Whether it is read from the bottom to the top."""


class Line(NamedTuple):
    """Lines from point to point."""

    points: Sequence[tuple[float, float]]
    colour: str = _INK
    width: float = 1.0
    dashes: Sequence[int] = ()


class Rectangle(NamedTuple):
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str


Shape: TypeAlias = Text | Line | Rectangle


def round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5 and 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if value <= power * step * (1 + 1e-9))


def size(plot: Plot) -> tuple[int, int]:
    """Return the width and the height of a plot."""
    legends = max(len(panel.series) for panel in plot.panels)
    width = len(plot.panels) * (_LEFT + _WIDTH + _RIGHT)
    return width, _TOP + _HEIGHT + _BOTTOM + (legends if legends > 1 else 0) * _LEGEND_STEP


def shapes(plot: Plot) -> Iterator[Shape]:
    """Yield the shapes of a plot."""
    yield Text(14, 24, plot.title, size=15, is_title=True)
    for number, panel in enumerate(plot.panels):
        yield from _panel(panel, number * (_LEFT + _WIDTH + _RIGHT) + _LEFT)


def _panel(panel: Panel, left: float) -> Iterator[Shape]:
    x_scale, y_scale = _scales(panel)
    bottom = _TOP + _HEIGHT
    if panel.shaded is not None:
        at = left + x_scale.place(panel.shaded[0])
        yield Rectangle(at, _TOP, max(0.0, left + _WIDTH - at), _HEIGHT, _SHADE)
    for tick in y_scale.ticks():
        y = bottom - y_scale.place(tick)
        yield Line(((left, y), (left + _WIDTH, y)), _GRID)
        yield Text(left - 7, y + 4, _number(tick), "end")
    for tick in panel.x_ticks or x_scale.ticks():
        x = left + x_scale.place(tick)
        yield Line(((x, bottom), (x, bottom + 5)))
        yield Text(x, bottom + 19, _number(tick), "middle")
    for at, text in panel.marks:
        x = left + x_scale.place(at)
        yield Line(((x, _TOP), (x, bottom)), _GRID, 1.0, (3, 3))
        yield Text(x + 4, _TOP + 13, text, size=11)
    for number, series in enumerate(panel.series):
        yield from _series(series, number, left, (x_scale, y_scale))
        if len(panel.series) > 1:
            yield from _legend(series, number, left, bottom + 52 + number * _LEGEND_STEP)
    yield Line(((left, _TOP), (left, bottom), (left + _WIDTH, bottom)))
    if panel.shaded is not None:
        yield Text(left + _WIDTH, _TOP - 10, panel.shaded[1], "end", size=11)
    yield Text(left, _TOP - 10, panel.title, size=13)
    yield Text(left + _WIDTH / 2, bottom + 37, panel.x_name, "middle")
    yield Text(left - 60, _TOP + _HEIGHT / 2, panel.y_name, "middle", is_upright=True)


def _scales(panel: Panel) -> tuple[_Scale, _Scale]:
    xs = [x for series in panel.series for x, _ in series.points] or [0.0, 1.0]
    ys = [y for series in panel.series for _, y in series.points] or [1.0]
    most = max(*ys, 1e-9) * (_HEADROOM if panel.marks else 1)
    top = round_up(most / _TICKS) * _TICKS
    top = next(top * share for share in (0.6, 0.8, 1.0) if most <= top * share * (1 + 1e-9))
    least = min(xs) if panel.is_x_logarithmic else min(0.0, *xs)
    x_scale = _Scale(least=least, most=max(xs), length=_WIDTH, is_logarithmic=panel.is_x_logarithmic)
    return x_scale, _Scale(least=0.0, most=top, length=_HEIGHT)


def _series(series: Series, number: int, left: float, scales: tuple[_Scale, _Scale]) -> Iterator[Shape]:
    x_scale, y_scale = scales
    points = [(left + x_scale.place(x), _TOP + _HEIGHT - y_scale.place(y)) for x, y in series.points]
    colour = COLOURS[number % len(COLOURS)]
    if series.is_bars:
        outline = [(points[0][0], float(_TOP + _HEIGHT))] if points else []
        for (x, y), (after, _) in zip(points, [*points[1:], points[-1]] if points else [], strict=True):
            outline += [(x, y), (after, y)]
        outline += [(points[-1][0], float(_TOP + _HEIGHT))] if points else []
        yield Line(outline, colour, 1.8, _DASHES[number % len(_DASHES)])
        return
    yield Line(points, colour, 1.8, _DASHES[number % len(_DASHES)])
    if len(points) <= _MARKERS_MAX:
        for x, y in points:
            yield from _marker(x, y, number, colour)


def _marker(x: float, y: float, number: int, colour: str) -> Iterator[Shape]:
    """Yield a square, a cross, an upright cross or a diamond."""
    half = _MARKER
    kind = number % 4
    if kind == 0:
        yield Rectangle(x - half, y - half, 2 * half, 2 * half, colour)
    elif kind == 3:
        far = half * 1.4
        yield Line(((x, y - far), (x + far, y), (x, y + far), (x - far, y), (x, y - far)), colour, 1.8)
    else:
        dx, dy = (half, half) if kind == 1 else (half * 1.4, 0)
        yield Line(((x - dx, y - dy), (x + dx, y + dy)), colour, 1.8)
        yield Line(((x - dy, y + dx), (x + dy, y - dx)), colour, 1.8)


def _legend(series: Series, number: int, left: float, y: float) -> Iterator[Shape]:
    colour = COLOURS[number % len(COLOURS)]
    yield Line(((left, y - 4), (left + 36, y - 4)), colour, 1.8, _DASHES[number % len(_DASHES)])
    if not series.is_bars and len(series.points) <= _MARKERS_MAX:
        yield from _marker(left + 18, y - 4, number, colour)
    yield Text(left + 44, y, series.name)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"


def svg(plot: Plot) -> str:
    """Return a plot as SVG."""
    width, height = size(plot)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}" role="img">',
        f"<title>{escape(plot.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *map(_element, shapes(plot)),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _element(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}"'
        return f'<rect {place} fill="{shape.colour}"/>'
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        dashes = f' stroke-dasharray="{" ".join(map(str, shape.dashes))}"' if shape.dashes else ""
        width = "" if shape.width == 1 else f' stroke-width="{shape.width}"'
        return f'<polyline points="{points}" fill="none" stroke="{shape.colour}"{width}{dashes}/>'
    style = "".join(
        (
            "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"',
            "" if shape.size == 12 else f' font-size="{shape.size}"',
            ' font-weight="600"' if shape.is_title else "",
            f' transform="rotate(-90 {shape.x:.1f} {shape.y:.1f})"' if shape.is_upright else "",
        )
    )
    return f'<text x="{shape.x:.1f}" y="{shape.y:.1f}"{style}>{escape(shape.text)}</text>'


def png(plot: Plot) -> bytes:
    """Return a plot as PNG. It needs the extra `png`."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - of an extra

    width, height = (each * _PNG_SCALE for each in size(plot))
    image = Image.new("RGB", (width, height), "#ffffff")
    draw = ImageDraw.Draw(image)
    for shape in shapes(plot):
        if isinstance(shape, Rectangle):
            x, y = shape.x * _PNG_SCALE, shape.y * _PNG_SCALE
            draw.rectangle((x, y, x + shape.width * _PNG_SCALE, y + shape.height * _PNG_SCALE), shape.colour)
        elif isinstance(shape, Line):
            for points in _dashed([(x * _PNG_SCALE, y * _PNG_SCALE) for x, y in shape.points], shape.dashes):
                draw.line(points, shape.colour, round(shape.width * _PNG_SCALE))
        else:
            font = ImageFont.load_default(shape.size * _PNG_SCALE)
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            place = (round(shape.x * _PNG_SCALE), round(shape.y * _PNG_SCALE))
            if shape.is_upright:
                _draw_upright(image, place, shape.text, font)
            else:
                draw.text(place, shape.text, _INK, font, anchor, stroke_width=int(shape.is_title))
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def _dashed(points: Sequence[tuple[float, float]], dashes: Sequence[int]) -> Iterator[Sequence[tuple[float, float]]]:
    """Yield the visible pieces of lines; the lengths of dashes and gaps take turns."""
    if not dashes:
        yield points
        return
    lengths = [each * _PNG_SCALE for each in dashes]
    turn, left = 0, float(lengths[0])
    for (x, y), (x_end, y_end) in pairwise(points):
        length = math.hypot(x_end - x, y_end - y)
        at = 0.0
        while at < length:
            part = min(left, length - at)
            begin, end = at / length, (at + part) / length
            if turn % 2 == 0:
                yield [(x + (x_end - x) * share, y + (y_end - y) * share) for share in (begin, end)]
            at, left = at + part, left - part
            if left <= 0:
                turn = (turn + 1) % (2 * len(lengths))
                left = float(lengths[turn % len(lengths)])


def _draw_upright(image: "Picture", place: tuple[int, int], text: str, font: "FreeTypeFont | ImageFont") -> None:
    """Draw a text from the bottom to the top, its middle at a place on the baseline."""
    from PIL import Image, ImageDraw  # noqa: PLC0415 - of an extra

    left, _, right, bottom = font.getbbox(text)
    height = round(bottom + 4)
    written = Image.new("RGB", (round(right - left) + 4, height), "#ffffff")
    ImageDraw.Draw(written).text((2 - left, 0), text, _INK, font)
    turned = written.rotate(90, expand=True)
    image.paste(turned, (place[0] - height + 4, place[1] - turned.height // 2))
