"""From the text of a `$filter` to its tokens, and from those to its tree.

    expression := operand { operator operand }      by precedence: comparisons, then `and`, then `or`
    operand    := `(` expression `)` | `not` comparison | name | literal

Tokens are read one by one, so that the first mistake in reading order is the one reported. White space parts tokens and
is otherwise ignored; a word may touch a parenthesis or a string. Every regular expression here is linear: no repetition
can give back what it took.

A word is an operator only where one can stand, so properties may be called `eq` or `and`. `not` takes the whole
comparison that follows. A property alone is a Boolean condition; a constant on the left is mirrored.

Bounds: the length of the text, how deep parentheses and `not` nest, how many terms `and` and `or` join. The documented
cap of 15 comparisons is not observed on the live service and not enforced here.

Source: reference §10.2. Keywords are case-sensitive as documented. Texts of errors are those of Microsoft's OData
library (v3), which the service runs: `Syntax error at position 7 in 'aaa bbb ccc'.` is recorded, and its position is
the end of the token that does not fit.
"""

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.table.model.edm import Value, parse_datetime, parse_guid
from lazulite.table.query.filter.ast import (
    MIRRORED,
    BooleanProperty,
    Comparison,
    Constant,
    Node,
    Not,
    Operator,
    conjoin,
    disjoin,
)

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

TEXT_MAX = 32_768
"""Characters of a filter."""
DEPTH_MAX = 100
"""Parentheses and `not` around one another."""
TERMS_MAX = 300
"""Comparisons, bare properties and constants."""

_OR, _AND, _COMPARISON = 1, 2, 3
_PRECEDENCE = {"or": _OR, "and": _AND} | dict.fromkeys(MIRRORED, _COMPARISON)
_OPERATORS: dict[str, Operator] = {operator: operator for operator in MIRRORED}
_OPERATOR_KINDS = {"or": "Or", "and": "And"}
_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "mod"})
_SYSTEM_TYPES = {"PartitionKey": "Edm.String", "RowKey": "Edm.String", "Timestamp": "Edm.DateTime"}


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


class _Literal(NamedTuple):
    value: Value
    edm: str


_Operand = Node | _Literal
"""What may stand beside an operator. A property is a `BooleanProperty` until it is compared."""


def parse(text: str) -> Node:
    """Return the tree of a filter.

    Raises:
        ServiceError: `InvalidInput`: no filter of the grammar, or beyond a bound; `NotImplemented`: a function or
            arithmetic, which OData knows and the Table service does not.
    """
    if len(text) > TEXT_MAX:
        raise invalid(f"The filter is longer than {TEXT_MAX} characters.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ServiceError("InvalidInput")
    return _Parser(text).parse()


class _Parser:
    """A reader of one text: `token` is the next one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._terms = 1
        self._token = read_token(text, 0)

    def parse(self) -> Node:
        operand = self._expression(_OR)
        if self._token.kind is not TokenKind.END:
            raise self._misplaced()
        if _type_of(operand) != "Edm.Boolean":
            raise invalid("The $filter expression must evaluate to a single boolean value.")
        return _condition(operand)

    def _advance(self) -> Token:
        token = self._token
        self._token = read_token(self._text, token.end)
        return token

    def _misplaced(self) -> ServiceError:
        """Return the rejection of a token where an operator or the end was due."""
        if self._token.text in _ARITHMETIC:
            return ServiceError("NotImplemented")
        return invalid(f"Syntax error at position {self._token.end} in '{self._text}'.")

    def _expression(self, binding: int) -> _Operand:
        """Read operands joined by operators that bind at least as tightly as `binding`."""
        left = self._operand()
        while self._token.kind is TokenKind.NAME and (power := _PRECEDENCE.get(self._token.text, 0)) >= binding:
            operator = self._advance().text
            right = self._expression(power + 1)
            left = (
                _compare(_OPERATORS[operator], left, right)
                if power == _COMPARISON
                else self._join(operator, left, right)
            )
        return left

    def _operand(self) -> _Operand:
        token = self._token
        if token.kind is TokenKind.OPEN:
            return self._parenthesis()
        if token.kind is TokenKind.LITERAL:
            self._advance()
            return _Literal(token.value, token.edm)
        if token.kind is not TokenKind.NAME:
            raise invalid(f"Expression expected at position {token.start} in '{self._text}'.")
        self._advance()
        if token.text == "not":
            return self._not()
        if self._token.kind is TokenKind.OPEN:
            raise ServiceError("NotImplemented")  # a function
        if token.text in ("true", "false"):
            return _Literal(token.text == "true", "Edm.Boolean")
        if token.text == "null":
            raise ServiceError("InvalidInput")
        return BooleanProperty(token.text)

    def _parenthesis(self) -> _Operand:
        self._advance()
        inner = self._nested(_OR)
        if self._token.kind is not TokenKind.CLOSE:
            if self._token.text in _ARITHMETIC:
                raise ServiceError("NotImplemented")
            raise invalid(f"')' or operator expected at position {self._token.start} in '{self._text}'.")
        self._advance()
        return inner

    def _not(self) -> Node:
        operand = self._nested(_COMPARISON)
        if (found := _type_of(operand)) != "Edm.Boolean":
            raise invalid(
                "A unary operator with an incompatible type was detected. "
                f"Found operand type '{found}' for operator kind 'Not'."
            )
        return Not(_condition(operand))

    def _nested(self, binding: int) -> _Operand:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise invalid("Recursion depth exceeded allowed limit.")
        operand = self._expression(binding)
        self._depth -= 1
        return operand

    def _join(self, operator: str, left: _Operand, right: _Operand) -> Node:
        if (_type_of(left), _type_of(right)) != ("Edm.Boolean", "Edm.Boolean"):
            raise _incompatible(operator, left, right)
        self._terms += 1
        if self._terms > TERMS_MAX:
            raise invalid(f"The filter has more than {TERMS_MAX} terms.")
        return (disjoin if operator == "or" else conjoin)(_condition(left), _condition(right))


def _type_of(operand: _Operand) -> str:
    if isinstance(operand, _Literal):
        return operand.edm
    return _SYSTEM_TYPES.get(operand.name, "Edm.Boolean") if isinstance(operand, BooleanProperty) else "Edm.Boolean"


def _incompatible(operator: str, left: _Operand, right: _Operand) -> ServiceError:
    return invalid(
        "A binary operator with incompatible types was detected. Found operand types "
        f"'{_type_of(left)}' and '{_type_of(right)}' for operator kind '{_OPERATOR_KINDS[operator]}'."
    )


def _condition(operand: _Operand) -> Node:
    """Return a Boolean operand as a node."""
    return Constant(operand.value is True) if isinstance(operand, _Literal) else operand


def _compare(operator: Operator, left: _Operand, right: _Operand) -> Node:
    """Return the comparison of a property with a constant, in either order.

    Two constants, two properties (more often than not a string without its quotes), or a condition in parentheses have
    no meaning here. The code is *unverified*.
    """
    if isinstance(left, BooleanProperty) and isinstance(right, _Literal):
        return Comparison(left.name, operator, right.value)
    if isinstance(left, _Literal) and isinstance(right, BooleanProperty):
        return Comparison(right.name, MIRRORED[operator], left.value)
    raise ServiceError("InvalidInput")
