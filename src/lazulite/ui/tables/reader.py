"""Reads rows for people: over empty pages, with a condition that only the page can test, and with what it cost."""

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from lazulite.protocol.query_cost import QueryCost
from lazulite.ui.backend import BackendError, ServiceClient
from lazulite.ui.calls import PageError
from lazulite.ui.tables.filters import NO_CONDITION, LocalCondition
from lazulite.ui.tables.values import Entity, entities_of

SEARCH_SECONDS = 5.0
"""How long a page is searched for before it says how far it came."""
SERVICE_PAGE = 1000
"""Rows of the largest page of the service."""
ACCEPT = {"Accept": "application/json;odata=minimalmetadata"}
_PARTITION, _ROW = "x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for in a table."""

    table: str
    filter: str = ""
    """A `$filter`; "" for all rows."""
    local: LocalCondition = NO_CONDITION


@dataclass(slots=True)
class FoundRows:
    """The rows of a page, and what it cost to find them."""

    entities: list[Entity] = field(default_factory=list)
    next: str = ""
    """The continuation token; "" at the end."""
    read: int = 0
    """Rows that the service read."""
    returned: int = 0
    """Rows that the service returned; the condition of the page may hold for fewer."""
    ms: float = 0.0
    """The time of the service."""
    pages: int = 0
    query_class: str = ""
    indexes: Sequence[str] = ()
    advice: str = ""

    @property
    def plan_line(self) -> str:
        """The cost for people."""
        if not self.query_class:
            return ""
        rows = "row" if self.read == 1 else "rows"
        parts = [self.query_class, f"{self.read:,} {rows} read", f"{self.returned:,} returned", f"{self.ms:,.1f} ms"]
        parts.append(f"index {' and '.join(self.indexes)}" if self.indexes else "no index")
        if self.pages > 1:
            parts.append(f"{self.pages:,} pages")
        return " · ".join(parts)

    @property
    def is_scan(self) -> bool:
        """Whether more is read than is asked for."""
        return "scan" in self.query_class and not self.indexes

    def add(self, timing: str) -> None:
        """Count a page of the service."""
        self.pages += 1
        cost = QueryCost.of(timing)
        if cost is not None:
            self.read += cost.scanned
            self.returned += cost.returned
            self.ms += cost.ms
            self.query_class, self.indexes, self.advice = cost.query_class, cost.indexes, cost.advice


async def find(
    client: ServiceClient, search: Search, token: str, limit: int, clock: Callable[[], float] = time.monotonic
) -> FoundRows:
    """Return a page of rows.

    Without a condition of the page it ends with the first page of the service that has rows. With one it goes on until
    it has `limit` rows. Both end after `SEARCH_SECONDS`.

    Args:
        client: of the table service.
        search: what is searched for.
        token: where the page begins; "" for the start.
        limit: rows that are wanted. A page with a condition can have more: it ends where one of the service ends.
        clock: returns seconds.

    Raises:
        BackendError: the service rejects the query.
        PageError: the token is none of this page's.
    """
    found, deadline = FoundRows(), clock() + SEARCH_SECONDS
    size = SERVICE_PAGE if search.local.is_set else limit
    while True:
        rows, token, timing = await read_page(client, search, token, size)
        found.add(timing)
        found.entities += filter(search.local.holds, rows)
        found.next = token
        wanted = limit if search.local.is_set else 1
        if not token or len(found.entities) >= wanted or clock() >= deadline:
            return found


async def read_page(
    client: ServiceClient, search: Search, token: str, size: int, select: str = ""
) -> tuple[Sequence[Entity], str, str]:
    """Return the rows of one page of the service, the next token, and the `Server-Timing`. Raises as `find`."""
    partition, row = _keys(token)
    parameters = {
        "$filter": search.filter,
        "$top": str(size),
        "$select": select,
        "NextPartitionKey": partition,
        "NextRowKey": row,
    }
    answer = await client.send("GET", f"{search.table}()", parameters, ACCEPT)
    following = answer.headers.get(_PARTITION, ""), answer.headers.get(_ROW, "")
    return entities_of(answer.body), json.dumps(following) if any(following) else "", answer.server_timing


async def all_rows(client: ServiceClient, search: Search, select: str = "") -> AsyncIterator[Sequence[Entity]]:
    """Yield all rows of a search, a page of the service at a time. Raises `BackendError`."""
    token = ""
    while True:
        rows, token, _ = await read_page(client, search, token, SERVICE_PAGE, select)
        yield [row for row in rows if search.local.holds(row)]
        if not token:
            return


async def get_entity(client: ServiceClient, path: str) -> tuple[bytes, str] | None:
    """Return the document of an entity and its ETag; None if there is none. Raises `BackendError`."""
    try:
        answer = await client.send("GET", path, headers=ACCEPT)
    except BackendError as error:
        if error.status == 404:
            return None
        raise
    return answer.body, answer.headers.get("etag", "")


def _keys(token: str) -> tuple[str, str]:
    if not token:
        return "", ""
    try:
        partition, row = json.loads(token)
    except (ValueError, TypeError, RecursionError):
        raise PageError(400, "the continuation token of the address is malformed: open the table again") from None
    return str(partition), str(row)
