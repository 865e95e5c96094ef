"""The tokens of a `$filter`.

Tokens are read one by one, so that the first mistake in reading order is the one reported. White space parts tokens and
is otherwise ignored; a word may touch a parenthesis or a string. Every regular expression here is linear: no repetition
can give back what it took.

Source: reference §10.2. Texts of errors are those of Microsoft's OData library (v3), which the service runs: `Syntax
error at position 7 in 'aaa bbb ccc'.` is recorded, and its position is the end of the token that does not fit.
"""

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.table.model.date_time import parse_datetime
from lazulite.table.model.edm import Value
from lazulite.table.model.literals import parse_guid

_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<open>\()
      | (?P<close>\))
      | (?P<datetime>(?i:datetime)'[^']*+(?>(?:''[^']*+)*)')
      | (?P<guid>(?i:guid)'[^']*+(?>(?:''[^']*+)*)')
      | (?P<binary>(?i:binary|x)'[^']*+(?>(?:''[^']*+)*)')
      | (?P<string>'[^']*+(?>(?:''[^']*+)*)')
      | (?P<special>(?:-?INF|NaN)(?!\w))
      | (?P<double>-?[0-9]++(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?[dDfFmM]?|[eE][+-]?[0-9]++[dDfFmM]?|[dDfFmM])(?![\w.]))
      | (?P<integer>-?[0-9]++[lL]?+(?![\w.]))
      | (?P<name>[^\x00-@\[-^`{-\x7f\s][^\x00-/:-@\[-^`{-\x7f\s]*+)
      | (?P<unterminated>')
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_INT32_END = 1 << 31
_INT64_END = 1 << 63
_SPECIAL = {"INF": math.inf, "-INF": -math.inf, "NaN": math.nan}


class TokenKind(Enum):
    """The kind of a token."""

    OPEN = "("
    CLOSE = ")"
    NAME = "a name or a word operator"
    LITERAL = "a literal"
    END = "the end"


class Token(NamedTuple):
    """A token.

    `end` is the index in the text after it; `value` is a literal's value and `edm` the name of its type.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    value: Value = False
    edm: str = ""


def _quoted(text: str) -> str:
    """Return what stands between the quotes of a literal, doubled quotes made single."""
    return text[text.index("'") + 1 : -1].replace("''", "'")


def _double(text: str) -> float:
    value = float(text.rstrip("dDfFmM"))
    if math.isinf(value):
        raise ValueError("out of the range of a Double")
    return value


def _integer(text: str) -> int:
    value = int(text.rstrip("lL"))
    if not -_INT64_END <= value < _INT64_END:
        raise ValueError("out of the range of an Int64")
    return value


def _integer_type(text: str) -> str:
    if len(text) > 20 or text[-1] in "lL" or not -_INT32_END <= int(text) < _INT32_END:
        return "Edm.Int64"
    return "Edm.Int32"


_LITERALS: dict[str, tuple[str, Callable[[str], Value]]] = {
    "datetime": ("Edm.DateTime", lambda text: parse_datetime(_quoted(text))),
    "guid": ("Edm.Guid", lambda text: parse_guid(_quoted(text))),
    "binary": ("Edm.Binary", lambda text: bytes.fromhex(_hexadecimal(_quoted(text)))),
    "string": ("Edm.String", _quoted),
    "special": ("Edm.Double", lambda text: _SPECIAL[text]),
    "double": ("Edm.Double", _double),
    "integer": ("", _integer),
}
_KINDS = {"open": TokenKind.OPEN, "close": TokenKind.CLOSE, "name": TokenKind.NAME, "end": TokenKind.END}


def _hexadecimal(text: str) -> str:
    """Return the text if it has no blanks, which `bytes.fromhex` would skip."""
    if text and not text.isalnum():
        raise ValueError("not hexadecimal")
    return text


class FilterSyntaxError(ServiceError):
    """The rejection of a text that is no filter."""


def invalid(message: str) -> FilterSyntaxError:
    """Return the rejection of a filter."""
    return FilterSyntaxError("InvalidInput", message)


def read_token(text: str, start: int) -> Token:
    """Read the token at or after `start`.

    Raises:
        ServiceError: `InvalidInput`: no token, or a literal that its type does not allow.
    """
    match = _TOKEN.match(text, start)
    if match is None:
        raise _no_token(text, start)
    group = match.lastgroup
    assert group is not None
    start, end = match.span(group)
    word = match[group]
    if group in _KINDS:
        return Token(_KINDS[group], word, start, end)
    if group == "unterminated":
        raise invalid(f"There is an unterminated string literal at position {len(text)} in '{text}'.")
    edm, convert = _LITERALS[group]
    edm = edm or _integer_type(word)
    try:
        return Token(TokenKind.LITERAL, word, start, end, convert(word), edm)
    except ValueError as error:
        raise invalid(f"Unrecognized '{edm}' literal '{word}' at '{start}' in '{text}'.") from error


def _no_token(text: str, start: int) -> ServiceError:
    while text[start].isspace():
        start += 1
    if text[start].isdigit():  # a number that runs into something else
        return invalid(f"Syntax error at position {start + 1} in '{text}'.")
    return invalid(f"Syntax error: character '{text[start]}' is not valid at position {start} in '{text}'.")
