"""Expressions over index tags, evaluated. Source: REST reference, Find Blobs by Tags and conditional headers.

Values are compared by their characters. A comparison with a tag that a blob lacks is false, but for `<>`, which is true
(*unverified*).
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.blob.model.tags import Tags

_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


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
    """Of tags. There is one with `=` for each tag, or at most one lower and one upper bound."""
    container: str | None
    """The only container that is searched, if the expression names one."""

    @property
    def names(self) -> frozenset[str]:
        """The tags that the expression names: the answer shows these of each blob."""
        return frozenset(comparison.name for comparison in self.comparisons)

    def matches(self, tags: Tags) -> bool:
        """Tell whether a blob with these tags is found, if its container is searched."""
        return all(comparison.matches(tags) for comparison in self.comparisons)
