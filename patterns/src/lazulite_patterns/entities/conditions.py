"""Conditions on the columns of a class: `Employee.age >= 18`, `Employee.id.between(100, 199)`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from lazulite_patterns.errors import PatternsError
from lazulite_patterns.filters import Comparison

Operator = Comparison | Literal["starts with"]
_OPPOSITES: dict[Operator, Operator] = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class QueryError(PatternsError, ValueError):
    """A query cannot be asked so. The message names the column."""


class Condition:
    """A condition on columns of a class. `&`, `|` and `~` combine conditions."""

    def __bool__(self) -> bool:
        """Reject `a and b`, `not a` and `1 < a < 3`, of which Python would drop a part.

        Raises:
            TypeError: always.
        """
        names = " and ".join(dict.fromkeys(each.field for each in comparisons(self)))
        raise TypeError(
            f"a condition on {names} is not true or false: give conditions that all hold one by one, "
            "as in where(a, b), join others by & and |, and give a range as between(first, last)"
        )

    def __and__(self, other: "Condition") -> "Condition":
        """Return a condition that rows fulfil which fulfil both."""
        return joined("and", (self, other))

    def __or__(self, other: "Condition") -> "Condition":
        """Return a condition that rows fulfil which fulfil one of both."""
        return joined("or", (self, other))

    def __invert__(self) -> "Condition":
        """Return the opposite. A row without the property fulfils neither.

        Raises:
            QueryError: the service cannot decide it.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Compared(Condition):
    """A column of a class compared to a value."""

    cls: type
    field: str
    operator: Operator
    value: object

    def __invert__(self) -> Condition:
        """Return the opposite comparison."""
        if self.operator == "starts with":
            raise QueryError(f"{self.field}: the service cannot find keys that do not begin with a text")
        return replace(self, operator=_OPPOSITES[self.operator])


@dataclass(frozen=True)
class Joined(Condition):
    """Conditions of which all hold, or one."""

    word: Literal["and", "or"]
    parts: tuple[Condition, ...]

    def __invert__(self) -> Condition:
        """Return that none holds, or not all."""
        return Joined("or" if self.word == "and" else "and", tuple(~each for each in self.parts))


def joined(word: Literal["and", "or"], parts: Iterable[Condition]) -> Condition:
    """Return a condition of which all parts hold, or one of them; a single part as it is."""
    found = tuple(parts)
    return found[0] if len(found) == 1 else Joined(word, found)


def comparisons(condition: Condition) -> Iterator[Compared]:
    """Yield the comparisons that a condition is made of."""
    if isinstance(condition, Compared):
        yield condition
    elif isinstance(condition, Joined):
        for each in condition.parts:
            yield from comparisons(each)
