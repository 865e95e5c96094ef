"""The merge of two entities as text: the members of a row with those of a write laid over them (their form: row.py).

Most merges need no decoded property: names that stand for themselves are sorted as they are, and a result that is small
and has few members is within every limit. Any other merge is left to the decoded properties.
"""

from collections.abc import Iterable

from lazulite.table.model.entity import PROPERTIES_MAX, SURELY_SMALL
from lazulite.table.model.row import custom_members, split_custom

_Members = dict[str, str]
"""Members by name, each with its annotation, without the comma and the quote that open it."""


def merge_members(current: bytes, encoded: str) -> str | None:
    """Return the members of an entity after a merge, by name. None if that takes the decoded properties.

    Args:
        current: the row's value.
        encoded: the members of the merge, each after a comma.
    """
    if 2 * (len(current) + len(encoded)) > SURELY_SMALL:
        return None
    merged = _by_name(custom_members(current))
    merged.update(_by_name(split_custom(encoded)))
    names = sorted(merged)
    if len(names) > PROPERTIES_MAX or "\\" in "".join(names):
        return None
    return "".join([f',"{merged[name]}' for name in names])


def _by_name(members: Iterable[str]) -> _Members:
    found: _Members = {}
    annotation = ""
    for member in members:
        name = member[: member.index('"')]
        if "@" in name:
            annotation = f'{member},"'
        else:
            found[name] = annotation + member
            annotation = ""
    return found
