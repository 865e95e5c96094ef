"""The protocols of queries: pages of a size, cursors, the first ones, all of them."""

import base64
import hashlib
import json
from collections.abc import Sequence, Set
from functools import reduce
from operator import and_
from typing import Generic, NamedTuple, TypeVar

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import Continuation, Found, Page, Stored
from lazulite_patterns.entities.conditions import QueryError
from lazulite_patterns.errors import PatternsError
from lazulite_patterns.filters import Compare, Filter
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.table.inbox import is_inbox
from lazulite_patterns.table.plan import Plan, Reads

T = TypeVar("T")
_ROW = "RowKey"
TOP_MAX = 1000
"""The most entities of a page of the service."""


class NotOne(PatternsError, LookupError):  # noqa: N818 - it is an outcome
    """A query that finds one entity found none, or several."""


class Items(NamedTuple, Generic[T]):
    """A page: its items, and the text from which the next one begins; None after the last one."""

    items: list[T]
    cursor: str | None


def fetch(
    table: str, query: Plan, policy: Policy, top: int | None, continuation: Continuation | None
) -> Protocol[Found]:
    """Read one page of the service, which may be short or empty. Rows of moves are left out."""
    added = {_ROW} if query.select and _ROW not in query.select else set[str]()
    effect = Page(table, query.filter, (*query.select, *added), top, continuation)
    found = yield from read(effect, (yield from begin(policy)))
    accepts = query.accepts
    rows = [
        row for row in found.entities if not is_inbox(str(row.properties[_ROW])) and (accepts is None or accepts(row))
    ]
    return found._replace(entities=tuple(_without(row, added) for row in rows))


def _without(row: Stored, names: Set[str]) -> Stored:
    """Return a row without properties that were read though the caller did not ask for them."""
    if not names:
        return row
    return row._replace(properties={name: value for name, value in row.properties.items() if name not in names})


def check_size(size: int) -> None:
    """Reject the size of a page that would have no entity, and no next page.

    Raises:
        QueryError: it is less than 1.
    """
    if size < 1:
        raise QueryError(f"a page has 1 entity at least, not {size}")


def first(
    table: str, query: Plan, policy: Policy, count: int, continuation: Continuation | None = None
) -> Protocol[Found]:
    """Read as many entities as are wanted, by as many pages as it takes; fewer only at the end."""
    found: list[Stored] = []
    while len(found) < count:
        page = yield from fetch(table, query, policy, min(count - len(found), TOP_MAX), continuation)
        found += page.entities
        continuation = page.continuation
        if continuation is None:
            break
    return Found(tuple(found), continuation)


def everything(table: str, query: Plan, policy: Policy) -> Protocol[list[Stored]]:
    """Read all entities of a query."""
    found: list[Stored] = []
    continuation: Continuation | None = None
    while True:
        page = yield from fetch(table, query, policy, None, continuation)
        found += page.entities
        if (continuation := page.continuation) is None:
            return found


def count(table: str, query: Plan, policy: Policy) -> Protocol[int]:
    """Count the entities of a query. The service cannot: all are read, but only their keys."""
    total = 0
    continuation: Continuation | None = None
    query = query.selecting(("PartitionKey", "RowKey"))
    while True:
        page = yield from fetch(table, query, policy, None, continuation)
        total += len(page.entities)
        if (continuation := page.continuation) is None:
            return total


def next_partition(
    table: str, policy: Policy, after: str | None, hidden: tuple[Filter, ...] = ()
) -> Protocol[str | None]:
    """Return the first PartitionKey after one; None after the last one."""
    conditions = [*([] if after is None else [Compare("PartitionKey", "gt", after)]), *hidden]
    query = Plan(
        reduce(and_, conditions) if conditions else None, reads=Reads.PARTITION_RANGE, select=("PartitionKey", "RowKey")
    )
    found = yield from first(table, query, policy, 1)
    return found.entities[0].key.partition_key if found.entities else None


def any_of(table: str, queries: Sequence[Plan], policy: Policy, workers: int) -> Protocol[list[Stored]]:
    """Run queries at the same time; return the entities that one of them finds, once each, in the order of keys."""
    protocols = tuple(everything(table, each, policy) for each in queries)
    found = {each.key: each for one in (yield from perform(Gather(protocols, workers))) for each in one}
    return [found[key] for key in sorted(found, key=lambda each: tuple(map(utf16_order, each)))]


_CURSOR_MAX = 20_000
"""The most characters of a cursor: two keys of 1,024 characters, as escapes of JSON in Base64, and a mark."""


def cursor_of(query: Plan, continuation: Continuation | None) -> str | None:
    """Return the text of a continuation, which is part of a URL without an escape."""
    if continuation is None:
        return None
    return base64.urlsafe_b64encode(json.dumps([_mark(query), *continuation]).encode()).decode()


def continuation_of(query: Plan, cursor: str | None) -> Continuation | None:
    """Return the continuation of a cursor, which may come from a user.

    Raises:
        QueryError: it is no cursor, or that of another query.
    """
    if cursor is None:
        return None
    if len(cursor) > _CURSOR_MAX:
        raise QueryError("this is no cursor: it is too long")
    try:
        mark, *keys = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        partition_key, row_key = (str(each.encode(), "utf-8") for each in keys)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise QueryError("this is no cursor") from error
    if mark != _mark(query):
        raise QueryError("this is the cursor of another query")
    return partition_key, row_key


def _mark(query: Plan) -> str:
    text = "" if query.filter is None else query.filter.text()
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def only(found: Sequence[T]) -> T:
    """Return the only one of two entities at most.

    Raises:
        NotOne: there is none, or there are two.
    """
    if len(found) != 1:
        raise NotOne("the query finds several entities" if found else "the query finds no entity")
    return found[0]
