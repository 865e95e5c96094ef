"""The lines of a text in TOML, by the paths of its keys, for messages.

`tomllib` tells no positions. This walk is made only when there is an error to report. The text has been parsed by
`tomllib` before, so it is TOML, and the walk need not reject anything.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the outermost on, such as `("tables", "Orders", "rows", 0)`."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|\n"
    r"|[\[\]{}=,]"
    r"|[^\s\[\]{}=,\#\"']+",
    re.DOTALL,
)
_LONG_FRACTION = re.compile(r"\d\d:\d\d:\d\d\.\d{7,}")
"""A time with digits that `tomllib` drops."""


class _Token(NamedTuple):
    text: str
    line: int


class _Found(NamedTuple):
    path: Path
    line: int
    scalar: str
    """The text of a value that is no array and no table; "" for those."""


def line_of(text: str, path: Path) -> int:
    """Return the line of a key or of its nearest outer one, counted from 1."""
    lines: dict[Path, int] = {}
    for found in _Walk(text).run():
        lines.setdefault(found.path, found.line)
        if found.path == path:
            return found.line
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 1)


def long_fraction(text: str) -> int | None:
    """Return the line of a time that has more than six digits of a second, of which some would be lost; else None."""
    if _LONG_FRACTION.search(text) is None:
        return None
    walk = _Walk(text).run()
    return next((each.line for each in walk if each.scalar[:1].isdigit() and _LONG_FRACTION.search(each.scalar)), None)


class _Walk:
    def __init__(self, text: str) -> None:
        self._tokens = self._tokenize(text)
        self._next = next(self._tokens)

    @staticmethod
    def _tokenize(text: str) -> Iterator[_Token]:
        line, at = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", at, match.start())
            at = match.start()
            if not match[0].startswith("#"):
                yield _Token(match[0], line)
        while True:
            yield _Token("", line)

    def _take(self) -> _Token:
        token, self._next = self._next, next(self._tokens)
        return token

    def run(self) -> Iterator[_Found]:
        """Yield the keys and elements in the order of the text."""
        prefix: Path = ()
        counts: dict[Path, int] = {}
        while self._next.text:
            if self._next.text == "\n":
                self._take()
            elif self._next.text == "[":
                line = self._take().line
                repeated = self._next.text == "["
                if repeated:
                    self._take()
                prefix = self._resolved(self._key("]"), counts, repeated=repeated)
                self._take()
                if repeated:
                    self._take()
                yield _Found(prefix, line, "")
            else:
                yield from self._pair(prefix)

    @staticmethod
    def _resolved(key: Path, counts: dict[Path, int], *, repeated: bool) -> Path:
        """Return the path that a header names: the last element of each array of tables on the way."""
        path: Path = ()
        for number, part in enumerate(key, 1):
            path = (*path, part)
            if repeated and number == len(key):
                counts[path] = counts.get(path, -1) + 1
            if path in counts:
                path = (*path, counts[path])
        return path

    def _key(self, end: str) -> Path:
        parts: list[str] = []
        while self._next.text not in (end, ""):
            token = self._take().text
            if token[0] in "\"'":
                parts.append(tomllib.loads(f"key = {token}")["key"])
            else:
                parts += [part for part in token.split(".") if part]
        return tuple(parts)

    def _pair(self, prefix: Path) -> Iterator[_Found]:
        line = self._next.line
        key = self._key("=")
        self._take()
        yield from (_Found((*prefix, *key[:end]), line, "") for end in range(1, len(key)))
        yield from self._value((*prefix, *key), line)

    def _value(self, path: Path, line: int) -> Iterator[_Found]:
        if self._next.text == "{":
            yield _Found(path, line, "")
            self._take()
            while self._next.text not in ("}", ""):
                if self._next.text in (",", "\n"):
                    self._take()
                else:
                    yield from self._pair(path)
            self._take()
        elif self._next.text == "[":
            yield _Found(path, line, "")
            yield from self._elements(path)
        else:
            scalar = []
            while self._next.text not in (",", "}", "]", "\n", ""):
                scalar.append(self._take().text)
            yield _Found(path, line, " ".join(scalar))

    def _elements(self, path: Path) -> Iterator[_Found]:
        self._take()
        index = 0
        while self._next.text not in ("]", ""):
            if self._next.text in (",", "\n"):
                self._take()
            else:
                yield from self._value((*path, index), self._next.line)
                index += 1
        self._take()
