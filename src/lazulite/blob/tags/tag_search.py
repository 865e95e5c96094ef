"""Searches for blobs by their tags. Source: reference §43.1.

The rows of the index that fit a comparison are walked over. For several comparisons with `=`, their rows are walked
over together: each jumps to the greatest name of the others. What is found is compared with the blob, and with its past
versions if they are searched, too.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import NamedTuple

from lazulite.blob.model.blob import Blob, read_blob
from lazulite.blob.model.rows import UPLOAD, version_row
from lazulite.blob.model.tag_expression import Comparison, TagQuery
from lazulite.blob.requests.call import Context
from lazulite.blob.requests.paging import LAST_TIME
from lazulite.blob.storage.tag_index import after_value, is_old, read_tag_row, remove_row, tag_partition, tag_row
from lazulite.blob.storage.walk import Walk
from lazulite.blob.times import read_time, write_time
from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.ordinal import ordinal

_EQUAL = "="


class SearchPosition(NamedTuple):
    """Where a search begins, or goes on."""

    row: str = ""
    """The row of the index; "": its beginning."""
    time: str = LAST_TIME
    """The id of a version of that blob; `LAST_TIME`: the current one, behind all others."""


class FoundBlob(NamedTuple):
    """A blob or version whose tags fit, or only a place in the search."""

    at: SearchPosition
    """From which a later search goes on."""
    name: str
    tags: dict[str, str] | None
    """All of them; None: the blob does not fit, or there is none."""
    version: str = ""
    """Its id; "": it has none."""


async def search(
    context: Context, space: int, query: TagQuery, start: SearchPosition, *, with_versions: bool = False
) -> AsyncGenerator[FoundBlob, None]:
    """Yield the blobs of a container that fit, and the places between them.

    Args:
        context: of the service.
        space: of the container.
        query: its comparisons.
        start: the first place that is looked at.
        with_versions: whether the past versions of a blob are found, too: before it, the oldest first.

    Raises:
        ServiceError: `InvalidQueryParameterValue`, the place has no time.
        EngineError: a row cannot be read.
    """
    first_time = read_time("marker", start.time)
    ranges = _ranges(query.comparisons)
    async with AsyncExitStack() as stack:
        walks: list[Walk] = []
        for lower, upper in ranges:
            walk = Walk(context.engine, space, upper, 1)
            await stack.enter_async_context(aclosing(walk))
            # A later page begins at the name that the first walk reached.
            await walk.begin(lower)
            walks.append(walk)
        if start.row and walks[0].key is not None:
            await walks[0].jump((ranges[0].lower[0], start.row))
        while await _meet(walks):
            first = walks[0]
            if first.key is None:
                return
            partition, row = first.key
            value, name = read_tag_row(row)
            tag = Comparison(partition[1:], _EQUAL, value)
            if with_versions:
                async with aclosing(_versions(context, space, name, first_time if row == start.row else 0)) as versions:
                    async for version, past in versions:
                        tags = _fitting(past, tag, query)
                        if tags is not None:
                            yield FoundBlob(SearchPosition(row, version), name, tags, version)
            blob = await context.partitions.get(space, name)
            for walk in walks:
                await _tidy(context, space, walk, {} if blob is None else dict(blob.tags))
            version = "" if blob is None or not blob.version else write_time(blob.version)
            yield FoundBlob(SearchPosition(row), name, _fitting(blob, tag, query), version)
            await first.step()


def _fitting(blob: Blob | None, tag: Comparison, query: TagQuery) -> dict[str, str] | None:
    """Return the tags of a blob, if they fit the query and the row of the index; else None.

    A row of an earlier value fits the query, too, where a range of values is searched.
    """
    tags = {} if blob is None or blob.deleted else dict(blob.tags)
    return tags if tag.matches(tags) and query.matches(tags) else None


async def _versions(context: Context, space: int, name: str, first: int) -> AsyncGenerator[tuple[str, Blob], None]:
    """Yield the past versions of a blob from a time on, with their ids."""
    ranges = [KeyRange((name, version_row(first)), (name, UPLOAD))]
    async with aclosing(context.engine.scan(space, ranges)) as parts:
        async for part in parts:
            for index, value in enumerate(part.values):
                yield write_time(int(part.key(index)[1][1:], 16)), read_blob(value)


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
    """Remove the row at which a walk is, if it is old, the blob has no such tag, and no past version can have it."""
    if walk.key is None or not is_old(walk.value, context.clock()):
        return
    tag, (value, name) = walk.key[0][1:], read_tag_row(walk.key[1])
    if tags.get(tag) == value:
        return
    async with aclosing(_versions(context, space, name, 0)) as versions:
        if await anext(versions, None) is None:
            await remove_row(context.engine, space, walk.key, walk.value)


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
