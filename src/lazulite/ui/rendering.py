"""Templates, and the JSON twins of pages.

Invariants: every value in a template is escaped, and an unknown one is an error. A page is rendered in pieces, between
which the event loop runs on. In JSON, an integer that a browser's numbers cannot hold is a text.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lazulite.traffic.picture import coloured, encoded, shown
from lazulite.ui.calls import link

FOLDER = Path(__file__).parent
_PIECES = 64
"""Pieces of a page between two looks at the event loop."""
_EXACT_MAX = 2**53 - 1
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Templates:
    """The templates of the explorer."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(link=link)
        self._environment.filters.update(FILTERS)

    async def render(self, name: str, context: Mapping[str, object]) -> bytes:
        """Return a page.

        Args:
            name: of the template's file.
            context: what it shows.
        """
        parts: list[str] = []
        for number, piece in enumerate(self._environment.get_template(name).generate(context), 1):
            parts.append(piece)
            if number % _PIECES == 0:
                await asyncio.sleep(0)
        return "".join(parts).encode("utf-8", "replace")


def as_json(context: Mapping[str, object]) -> bytes:
    """Return the JSON twin of a page."""
    return json.dumps(plain(context), ensure_ascii=False, indent=1).encode("utf-8", "replace")


def plain(value: object) -> object:
    """Return what JSON can hold of a value. An object has its public fields."""
    if value is None or isinstance(value, bool | str | float):
        found: object = value.value if isinstance(value, Enum) else value
    elif isinstance(value, int):
        found = value if abs(value) <= _EXACT_MAX else str(value)
    elif isinstance(value, Mapping):
        found = {str(name): plain(each) for name, each in value.items()}
    elif hasattr(value, "_asdict"):
        found = {name: plain(each) for name, each in value._asdict().items()}
    elif is_dataclass(value):
        names = [each.name for each in fields(value) if each.repr and not each.name.startswith("_")]
        found = {name: plain(getattr(value, name)) for name in names}
    elif isinstance(value, datetime):
        found = value.isoformat()
    elif isinstance(value, bytes):
        found = value.hex()
    elif isinstance(value, Sequence | set | frozenset) or hasattr(value, "__iter__"):
        found = [plain(each) for each in value]
    else:
        found = str(value)
    return found


def size(count: float | None) -> str:
    """Return a number of bytes for people."""
    if count is None:
        return "–"
    amount, unit = float(count), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:,.0f} {_UNITS[unit]}" if unit == 0 or amount >= 100 else f"{amount:,.1f} {_UNITS[unit]}"


def count(number: float | None) -> str:
    """Return a number with separators; a dash for None."""
    return "–" if number is None else f"{number:,.0f}"


def duration(seconds: float | None) -> str:
    """Return a time span for people, in the unit that fits."""
    if seconds is None:
        return "–"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:,.1f} s"


def moment(seconds: float) -> str:
    """Return a Unix time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def heat_picture(rows: Sequence[Sequence[float]], most: float) -> str:
    """Return the picture of the cells of a heat map, a pixel each, as a URL."""
    return f"data:image/png;base64,{b64encode(encoded(coloured(rows, most))).decode()}"


def selection(row: object) -> str:
    """Return the value of a checkbox for a row that has a name: what it was when it was shown."""
    return json.dumps([getattr(row, "name", ""), getattr(row, "etag", "")])


FILTERS: Mapping[str, Callable[..., str]] = {
    "size": size,
    "count": count,
    "duration": duration,
    "moment": moment,
    "selection": selection,
    "shown": shown,
    "heat_picture": heat_picture,
}
"""The filters of templates beside those of Jinja."""
