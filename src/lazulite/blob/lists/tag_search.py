"""Searches for blobs by their tags. Source: reference §43.1.

The rows of the index that fit a comparison are walked over. For several comparisons with `=`, their rows are walked
over together: each jumps to the greatest name of the others. What is found is compared with the blob.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import NamedTuple

from lazulite.blob.call import Context
from lazulite.blob.model.tag_expression import Comparison, TagQuery
from lazulite.blob.storage.tag_index import after_value, read_tag_row, remove_row, tag_partition, tag_row
from lazulite.blob.storage.walk import Walk
from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.ordinal import ordinal

_EQUAL = "="


class FoundBlob(NamedTuple):
    """A blob whose tags fit, or only a place in the search."""

    at: str
    """The row of the index, from which a later search goes on."""
    name: str
    tags: dict[str, str] | None
    """All of them; None: the blob does not fit, or there is none."""


async def search(context: Context, space: int, query: TagQuery, start: str) -> AsyncGenerator[FoundBlob, None]:
    """Yield the blobs of a container that fit, and the places between them.

    Args:
        context: of the service.
        space: of the container.
        query: its comparisons.
        start: the first row of the index that is looked at; "" for all of them.

    Raises:
        EngineError: a row cannot be read.
    """
    ranges = _ranges(query.comparisons)
    async with AsyncExitStack() as stack:
        walks: list[Walk] = []
        for lower, upper in ranges:
            walk = Walk(context.engine, space, upper, 1)
            await stack.enter_async_context(aclosing(walk))
            # A later page begins at the name that the first walk reached.
            await walk.begin(lower)
            walks.append(walk)
        if start and walks[0].key is not None:
            await walks[0].jump((ranges[0].lower[0], start))
        while await _meet(walks):
            first = walks[0]
            if first.key is None:
                return
            partition, row = first.key
            value, name = read_tag_row(row)
            blob = await context.partitions.get(space, name)
            tags = {} if blob is None else dict(blob.tags)
            # A row of an earlier value fits, too, where a range of values is searched.
            fits = blob is not None and not blob.deleted and tags.get(partition[1:]) == value and query.matches(tags)
            for walk in walks:
                await _tidy(context, space, walk, tags)
            yield FoundBlob(row, name, tags if fits else None)
            await first.step()


async def _meet(walks: Sequence[Walk]) -> bool:
    """Move the walks on until all are at one name; return whether there is one."""
    while True:
        names = [read_tag_row(walk.key[1])[1] for walk in walks if walk.key is not None]
        if len(names) < len(walks):
            return False
        greatest = max(names, key=ordinal)
        behind = [walk for walk, name in zip(walks, names, strict=True) if name != greatest]
        if not behind:
            return True
        for walk in behind:
            if walk.key is not None:
                partition, row = walk.key
                await walk.jump((partition, tag_row(read_tag_row(row)[0], greatest)))


async def _tidy(context: Context, space: int, walk: Walk, tags: dict[str, str]) -> None:
    """Remove the row at which a walk is, if the blob has no such tag."""
    if walk.key is not None:
        tag, value = walk.key[0][1:], read_tag_row(walk.key[1])[0]
        if tags.get(tag) != value:
            await remove_row(context.engine, space, walk.key, walk.value, context.clock())


def _ranges(comparisons: Sequence[Comparison]) -> list[KeyRange]:
    """Return the rows to walk over: those of each value that a tag must have, else those of the first tag's range."""
    equal = [each for each in comparisons if each.operator == _EQUAL]
    if equal:
        return [_range([each]) for each in equal]
    return [_range([each for each in comparisons if each.name == comparisons[0].name])]


def _range(comparisons: Sequence[Comparison]) -> KeyRange:
    partition = tag_partition(comparisons[0].name)
    lower: Key = (partition, "")
    upper: Key = (partition + "\0", "")
    for _, sign, value in comparisons:
        if sign in (_EQUAL, ">="):
            lower = (partition, tag_row(value))
        elif sign == ">":
            lower = (partition, after_value(value))
        if sign in (_EQUAL, "<="):
            upper = (partition, after_value(value))
        elif sign == "<":
            upper = (partition, tag_row(value))
    return KeyRange(lower, upper)
