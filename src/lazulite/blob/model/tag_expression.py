"""Expressions over index tags: `where` of Find Blobs by Tags, and `x-ms-if-tags`.

    condition := any of comparison and "(" condition ")", joined by AND, and in conditional headers by OR
    comparison := name operator 'value'

AND binds more tightly than OR. Text, depth and the number of comparisons are bounded. Values are compared by their
characters. A comparison with a tag that a blob lacks is false, but for `<>`, which is true (*unverified*).

Source: REST reference, Find Blobs by Tags and Specifying conditional headers. The texts of errors are those of
emulators, *unverified*.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from lazulite.blob.model.tags import NAME_MAX, VALUE_MAX, Tags, is_tag_text
from lazulite.protocol.errors import ServiceError, invalid_header

_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
TEXT_MAX = 16 * 1024
"""Characters of an expression."""
DEPTH_MAX = 16
"""Parentheses within each other."""
COMPARISONS_MAX = 100
SEARCHED_TAGS_MAX = 10
"""Different tags in a `where`."""
_CONTAINER = "@container"
_RESERVED = frozenset(["and", "or", "not", "true", "false", "null", "year", "month", "day", "hour", "minute", "second"])
"""Words that are names only in quotes. Reported: `Year` and `Month`; the others are *unverified*."""
_TOKEN = re.compile(
    r"""\s*+(?:(?P<word>@?\w++)|"(?P<name>[^"]*+)"|'(?P<value>[^']*+(?>(?:''[^']*+)*))'|(?P<operator><>|[<>]=?|=)|(?P<mark>[()]))""",
    re.ASCII,
)
_BLANKS = re.compile(r"\s*+", re.ASCII)
_RANGE = "can't have multiple conditions for a single tag unless they define a range"
_SHOWN_MAX = 256


class Comparison(NamedTuple):
    """One comparison of a tag with a value."""

    name: str
    operator: str
    """One of `=`, `<>`, `>`, `>=`, `<`, `<=`."""
    value: str

    def matches(self, tags: Tags) -> bool:
        """Tell whether it holds for the tags of a blob."""
        tag = tags.get(self.name)
        if tag is None:
            return self.operator == "<>"
        return _OPERATORS[self.operator](tag, self.value)


class AllOf(NamedTuple):
    """Conditions joined by AND."""

    conditions: "tuple[Condition, ...]"

    def matches(self, tags: Tags) -> bool:
        """Tell whether each of them holds for the tags of a blob."""
        return all(condition.matches(tags) for condition in self.conditions)


class AnyOf(NamedTuple):
    """Conditions joined by OR."""

    conditions: "tuple[Condition, ...]"

    def matches(self, tags: Tags) -> bool:
        """Tell whether one of them holds for the tags of a blob."""
        return any(condition.matches(tags) for condition in self.conditions)


Condition = Comparison | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class TagQuery:
    """A `where`: comparisons that must all hold."""

    comparisons: tuple[Comparison, ...]
    """The comparisons of tags. There is one with `=` for each tag, or at most one lower and one upper bound."""
    container: str | None
    """The only container that is searched, if the expression names one."""

    @property
    def names(self) -> frozenset[str]:
        """The tags that the expression names: the answer shows these of each blob."""
        return frozenset(comparison.name for comparison in self.comparisons)

    def matches(self, tags: Tags) -> bool:
        """Tell whether a blob with these tags is found, if its container is searched."""
        return all(comparison.matches(tags) for comparison in self.comparisons)


def read_where(text: str, *, in_account: bool) -> TagQuery:
    """Read a `where`.

    Args:
        text: the value of the parameter.
        in_account: whether all containers are searched; only then the expression may name one.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    try:
        parser = _Parser(text, is_query=True, parameters=(_CONTAINER,) if in_account else ())
        parser.read()
        return _query(parser.comparisons)
    except _SyntaxError as error:
        details = [("QueryParameterName", "where"), ("QueryParameterValue", text[:_SHOWN_MAX])]
        raise ServiceError("InvalidQueryParameterValue", str(error), details=details) from None


def _query(found: list[tuple[int, Comparison]]) -> TagQuery:
    """Return comparisons, with the positions of their names, as a query."""
    container: str | None = None
    comparisons: list[Comparison] = []
    for position, comparison in found:
        if comparison.name != _CONTAINER:
            _check_range(position, comparison, comparisons)
            comparisons.append(comparison)
        elif container is not None or comparison.operator != "=":
            raise _SyntaxError(position, _RANGE)
        else:
            container = comparison.value
    query = TagQuery(tuple(comparisons), container)
    if len(query.names) > SEARCHED_TAGS_MAX:
        raise _SyntaxError(None, f"there can be at most {SEARCHED_TAGS_MAX} unique tags in a query")
    return query


def _check_range(position: int, comparison: Comparison, earlier: list[Comparison]) -> None:
    """Reject a comparison that, with earlier ones of its tag, is no range."""
    for other in earlier:
        if other.name == comparison.name and (
            "=" in (other.operator, comparison.operator) or other.operator[0] == comparison.operator[0]
        ):
            raise _SyntaxError(position, _RANGE)


def read_if_tags(text: str, header: str = "x-ms-if-tags") -> Condition:
    """Read a condition on tags.

    Args:
        text: the value of the header.
        header: its name, for the rejection.

    Raises:
        ServiceError: `InvalidHeaderValue`.
    """
    try:
        return _Parser(text, is_query=False).read()
    except _SyntaxError:
        raise invalid_header(header, text, _SHOWN_MAX) from None


class _SyntaxError(Exception):
    """An expression that cannot be read: where it ends to make sense (None: all of it), and why."""

    def __init__(self, position: int | None, reason: str) -> None:
        where = "" if position is None else f" at or near character position {position}"
        super().__init__(f"Error parsing query{where}: {reason}")


class _Token(NamedTuple):
    kind: str
    """A group of `_TOKEN`; "" at the end."""
    text: str
    position: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


class _Parser:
    """Reads one expression; `comparisons` are its comparisons, with the positions of their names."""

    def __init__(self, text: str, *, is_query: bool, parameters: tuple[str, ...] = ()) -> None:
        if len(text) > TEXT_MAX:
            raise _SyntaxError(TEXT_MAX, "the query is too long")
        self._tokens = _tokens(text)
        self._next = next(self._tokens)
        self._is_query = is_query
        self._parameters = parameters
        self.comparisons: list[tuple[int, Comparison]] = []

    def read(self) -> Condition:
        if not self._next.kind:
            raise _SyntaxError(1, "expected an operator")
        condition = self._any(0)
        if self._next.kind:
            self._reject()
        return condition

    def _any(self, depth: int) -> Condition:
        conditions = [self._all(depth)]
        while self._next.is_word("or"):
            if self._is_query:
                self._reject("unexpected or")
            self._take()
            conditions.append(self._all(depth))
        return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))

    def _all(self, depth: int) -> Condition:
        conditions = [self._one(depth)]
        while self._next.is_word("and"):
            self._take()
            conditions.append(self._one(depth))
        return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))

    def _one(self, depth: int) -> Condition:
        if self._next.text != "(" or self._next.kind != "mark":
            return self._comparison()
        if depth == DEPTH_MAX:
            self._reject("the query is nested too deeply")
        self._take()
        condition = self._any(depth + 1)
        if self._next.text != ")" or self._next.kind != "mark":
            self._reject()
        self._take()
        return condition

    def _comparison(self) -> Comparison:
        position = self._next.position
        if len(self.comparisons) == COMPARISONS_MAX:
            self._reject("the query has too many conditions")
        name = self._name()
        if self._next.kind != "operator":
            self._reject("expected an operator")
        if self._next.text == "<>" and self._is_query:
            self._reject("unexpected <>")
        sign = self._take().text
        comparison = Comparison(name, sign, self._value())
        self.comparisons.append((position, comparison))
        return comparison

    def _name(self) -> str:
        token = self._next
        if token.kind not in {"word", "name"}:
            self._reject()
        if token.kind == "word" and token.text.lower() in _RESERVED:
            self._reject(f"unexpected '{token.text}'")
        if token.text.startswith("@"):
            if token.text not in self._parameters:
                self._reject(f"unsupported parameter '{token.text}'")
        elif not 1 <= len(token.text) <= NAME_MAX:
            self._reject(f"tag must be between 1 and {NAME_MAX} characters in length")
        else:
            self._check_characters(token.text)
        return self._take().text

    def _value(self) -> str:
        if self._next.kind != "value":
            self._reject("expecting tag value")
        value = self._next.text.replace("''", "'")
        if len(value) > VALUE_MAX:
            self._reject(f"tag value must be between 0 and {VALUE_MAX} characters in length")
        self._check_characters(value)
        self._take()
        return value

    def _check_characters(self, text: str) -> None:
        for character in text:
            if not is_tag_text(character):
                self._reject(f"'{character}' not permitted in tag name or value")

    def _take(self) -> _Token:
        token, self._next = self._next, next(self._tokens)
        return token

    def _reject(self, reason: str | None = None) -> NoReturn:
        reason = reason or (f"unexpected {self._next.text}" if self._next.kind else "unexpected end of query")
        raise _SyntaxError(self._next.position, reason)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of an expression, and the end forever."""
    at = 0
    while match := _TOKEN.match(text, at):
        kind = match.lastgroup or ""
        yield _Token(kind, match[kind], match.start(kind) - (kind in {"name", "value"}))  # At its quote.
        at = match.end()
    at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # It matches nothing as well.
    if at < len(text):
        raise _SyntaxError(at, f"unexpected {text[at]}")
    while True:
        yield _Token("", "", at)
