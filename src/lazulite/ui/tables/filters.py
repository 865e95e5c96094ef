"""The filter of a grid: a `$filter`, the rows of the builder, and the condition that only the page can test.

The builder and the text are two faces of one state: the builder writes the text, and reads each text that is a list of
comparisons joined by one word. A text that is deeper is edited as a text.
"""

import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.table.model.edm import DateTime, Guid, format_datetime, format_double
from lazulite.table.query.filter.ast import MIRRORED, And, BooleanProperty, Comparison, Node, Or
from lazulite.table.query.filter.parser import Token, TokenKind, parse, read_token
from lazulite.ui.tables.values import KEYS, TIMESTAMP, Entity, Value, ValueFormatError, value_of

STARTS_WITH = "starts with"
OPERATORS: Mapping[str, str] = {"=": "eq", "≠": "ne", ">": "gt", "≥": "ge", "<": "lt", "≤": "le"}
"""The operator on a page -> that of a filter."""
BUILDER_OPERATORS = (*OPERATORS, STARTS_WITH)
ROWS_MAX = 12
_COMMENT = "//"
_POSITION = re.compile(r"at (?:position |')(\d{1,6})\b")
_ENDS_AT_POSITION = "Syntax error at position"
"""Such a position is the end of what does not fit; others are its start."""
_WORD_END = re.compile(r"[\s()]")
_NAMES_OF_VALUES = frozenset({"true", "false", "null"})
_AROUND_MAX = 200
_LAST = "\uffff"
"""No character of UTF-16 sorts after it."""
_PAGE_OPERATORS = {name: sign for sign, name in OPERATORS.items()}


class Condition(NamedTuple):
    """One row of the builder."""

    name: str
    operator: str
    """One of `BUILDER_OPERATORS`."""
    type: str
    text: str


class Builder(NamedTuple):
    """What the builder shows."""

    conditions: Sequence[Condition]
    joined_by: str
    """`and` or `or`."""
    is_readable: bool
    """Whether the builder can show the text; else `conditions` is empty."""


def without_comments(text: str) -> str:
    """Return a filter of several lines as one, without lines that begin with `//`."""
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line for line in lines if line and not line.startswith(_COMMENT))


class ErrorPosition(NamedTuple):
    """Where a filter is wrong: the text around, and the part that does not fit."""

    position: int
    """The number of characters before the part."""
    before: str
    part: str
    """"" if the filter ends too soon."""
    after: str
    is_unquoted: bool = False
    """Whether the part is a name where a value is due, as of a text without quotes."""


def error_position(message: str, text: str) -> ErrorPosition | None:
    """Return where a filter is wrong; None if neither the message nor the filter tells.

    Args:
        message: of the service.
        text: the filter, as it was sent.
    """
    found = _POSITION.search(message)
    at = None if found is None else int(found[1])
    if at is None:
        name = _name_for_value(text)
        return None if name is None else _around(text, name.start, name.end)._replace(is_unquoted=True)
    if at > len(text):
        return None
    if message.startswith(_ENDS_AT_POSITION):
        last = max(0, at - 1)
        return _around(text, last - len(_WORD_END.split(text[:last])[-1]), at)
    end = _WORD_END.search(text, at + 1)
    return _around(text, at, len(text) if end is None else end.start())


def _around(text: str, start: int, end: int) -> ErrorPosition:
    before, after = text[:start], text[end:]
    cut_before, cut_after = before[-_AROUND_MAX:], after[:_AROUND_MAX]
    return ErrorPosition(
        start,
        cut_before if cut_before == before else f"…{cut_before}",
        text[start:end],
        cut_after if cut_after == after else f"{cut_after}…",
    )


def _name_for_value(text: str) -> Token | None:
    """Return the first name behind a comparison operator, where only a value can be; None without one."""
    before: deque[Token] = deque(maxlen=2)
    token = None
    try:
        while token is None or token.kind is not TokenKind.END:
            token = read_token(text, 0 if token is None else token.end)
            is_compared = len(before) == 2 and before[0].kind is TokenKind.NAME and before[1].text in MIRRORED
            if is_compared and token.kind is TokenKind.NAME and token.text not in _NAMES_OF_VALUES:
                return token
            before.append(token)
    except ServiceError:  # The service has rejected it before that.
        pass
    return None


def built(conditions: Sequence[Condition], joined_by: str) -> str:
    """Return the `$filter` of the rows of the builder.

    Args:
        conditions: those without a name are ignored.
        joined_by: `and` or `or`.

    Raises:
        ValueFormatError: a text is no value of its type.
    """
    word = " or " if joined_by == "or" else " and "
    return word.join(_comparison(each, nested=word == " or ") for each in conditions if each.name.strip())


def _comparison(condition: Condition, *, nested: bool) -> str:
    name = condition.name.strip()
    if condition.operator == STARTS_WITH:
        if not condition.text:
            raise ValueFormatError(f"{name}: enter the text that values start with")
        start, end = f"{name} ge {_quoted(condition.text)}", _after(condition.text)
        both = f"{start} and {name} lt {_quoted(end)}" if end else start
        return f"({both})" if nested and end else both
    if condition.operator not in OPERATORS:
        raise ValueFormatError(f"there is no operator {condition.operator[:20]!r}")
    try:
        value = value_of("DateTime" if name == TIMESTAMP else condition.type, condition.text)
    except ValueFormatError as error:
        raise ValueFormatError(f"{name}: {error}") from None
    return f"{name} {OPERATORS[condition.operator]} {literal_of(value)}"


def literal_of(value: Value) -> str:
    """Return a value as a filter has it."""
    return _FILTER_LITERALS.get(value.type, str)(value.text)


def _after(prefix: str) -> str:
    """Return the least text that is greater than all texts with a prefix; "" if there is none."""
    kept = prefix.rstrip(_LAST)
    if not kept:
        return ""
    # No text has a lone surrogate, nor a character behind the last one.
    last = min(ord(kept[-1]), 0x10FFFE)
    return kept[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_FILTER_LITERALS: Mapping[str, Callable[[str], str]] = {
    "String": _quoted,
    "Int64": lambda text: f"{text}L",
    "DateTime": lambda text: f"datetime'{text}'",
    "Guid": lambda text: f"guid'{text}'",
    "Binary": lambda text: f"X'{_hex(text)}'",
}


def _hex(text: str) -> str:
    return b64decode(text).hex()


def read(text: str) -> Builder:
    """Return the rows of the builder for a `$filter`."""
    if not text:
        return Builder((), "and", True)
    try:
        node = parse(text)
    except ServiceError:
        return Builder((), "and", False)
    joined_by = "or" if isinstance(node, Or) else "and"
    terms = node.terms if isinstance(node, And | Or) else (node,)
    conditions = _prefixes([_condition(each) for each in terms]) if joined_by == "and" else [*map(_condition, terms)]
    found = [each for each in conditions if each is not None]
    return Builder(found, joined_by, True) if len(found) == len(conditions) <= ROWS_MAX else Builder((), "and", False)


def _condition(node: Node) -> Condition | None:
    if isinstance(node, BooleanProperty):
        return Condition(node.name, "=", "Boolean", "true")
    if not isinstance(node, Comparison):
        return None
    type_name, text = _text_of(node.value)
    return Condition(node.property, _PAGE_OPERATORS[node.operator], type_name, text)


def _prefixes(conditions: Sequence[Condition | None]) -> Sequence[Condition | None]:
    """Return the rows with each pair of bounds that is a prefix as one."""
    found: list[Condition | None] = []
    for each in conditions:
        last = found[-1] if found else None
        if (
            last is not None
            and each is not None
            and (last.name, last.operator, each.operator) == (each.name, "≥", "<")
            and (last.type, each.type) == ("String", "String")
            and last.text
            and each.text == _after(last.text)
        ):
            found[-1] = Condition(each.name, STARTS_WITH, "String", last.text)
        else:
            found.append(each)
    return found


def _text_of(value: object) -> tuple[str, str]:
    """Return the type and the text of a value of the filter's tree."""
    if isinstance(value, bool):
        return "Boolean", "true" if value else "false"
    if isinstance(value, DateTime):
        return "DateTime", format_datetime(value)
    if isinstance(value, int):
        return ("Int32" if -(2**31) <= value < 2**31 else "Int64"), str(value)
    if isinstance(value, float):
        return "Double", format_double(value)
    if isinstance(value, bytes):
        return "Binary", b64encode(value).decode()
    return ("Guid" if isinstance(value, Guid) else "String"), str(value)


CONTAINS, LACKS_TEXT, ENDS_WITH, IS_MISSING, IS_THERE = (
    "contains",
    "does not contain",
    "ends with",
    "is missing",
    "is there",
)
LOCAL_OPERATORS = (CONTAINS, LACKS_TEXT, ENDS_WITH, IS_MISSING, IS_THERE)
"""What the Table service cannot be asked, so that the page reads all rows of the filter and tests them itself."""


class LocalCondition(NamedTuple):
    """A condition that the page tests."""

    name: str
    """A property; "" for any of the row."""
    operator: str
    """One of `LOCAL_OPERATORS`; "" for no condition."""
    text: str

    @property
    def is_set(self) -> bool:
        """Whether there is a condition."""
        needs_text = self.operator in (CONTAINS, LACKS_TEXT, ENDS_WITH)
        return bool(self.text if needs_text else self.operator and self.name)

    def holds(self, entity: Entity) -> bool:
        """Tell whether an entity meets the condition."""
        if not self.is_set:
            return True
        names = [self.name] if self.name else [*KEYS, *entity.values]
        texts = [text for text in (entity.text(name) for name in names) if text is not None]
        if self.operator == CONTAINS:
            return any(self.text in text for text in texts)
        if self.operator == LACKS_TEXT:
            return all(self.text not in text for text in texts)
        if self.operator == ENDS_WITH:
            return any(text.endswith(self.text) for text in texts)
        return bool(texts) is (self.operator == IS_THERE)


NO_CONDITION = LocalCondition("", "", "")
