"""Effects as calls of the SDK's clients, and the SDK's answers as results. Both drivers share it; it does no I/O."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.rest import HttpRequest
from azure.data.tables import TableEntity, TableTransactionError, UpdateMode

from lazulite_patterns.effects import changesets, point_reads, requests
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import date_of
from lazulite_patterns.effects.tables import Batch, Found, Kind, Operation, Page, Read, Stored, Write

NO_RETRIES = {"retry_total": 0}
"""The SDK repeats writes whose result is unknown, and reports their second answer. Protocols decide instead."""
Options: TypeAlias = Mapping[str, Any]
"""Keyword arguments of the SDK's methods."""
NO_LIMITS: Options = {}
"""The options of a request that takes the times of its client."""
_UNKNOWN = frozenset({408, 429})
"""Statuses below 500 after which the same request may succeed."""
_NOT_FOUND = 404


_ENTERED = {"synchronous": "__enter__", "asynchronous": "__aenter__"}
_USE = {
    "synchronous": "a synchronous client: use a class of lazulite_patterns, such as lazulite_patterns.Table",
    "asynchronous": "an asynchronous client: use a class of lazulite_patterns.aio, such as lazulite_patterns.aio.Table",
}


def check_clients(clients: Iterable[object], kind: Literal["synchronous", "asynchronous"]) -> None:
    """Reject clients of the other kind, whose answers nothing awaits or `await` has no use for.

    Raises:
        TypeError: a client is of the other kind.
    """
    (other,) = _ENTERED.keys() - {kind}
    for each in clients:
        if hasattr(each, _ENTERED[other]) and not hasattr(each, _ENTERED[kind]):
            raise TypeError(f"this {type(each).__name__} is {_USE[other]}")


class Call(NamedTuple):
    """A method of a client, with its arguments."""

    method: str
    args: tuple[object, ...]
    options: dict[str, Any]


class Hook:
    """Takes the answers to a call of the SDK, which shows little of them."""

    def __init__(self, hear: Callable[[str | None], None]) -> None:
        """Take what is told the header `Date` of each answer."""
        self.response: Any = None
        self._hear = hear

    def __call__(self, response: Any) -> None:
        """Take an answer."""
        self.response = response.http_response
        self._hear(self.response.headers.get("Date"))


def _check_batch(request: Any) -> None:
    """Reject a transaction for its size, before it is sent."""
    changesets.check_length(len(request.http_request.content or b""))


def _code(text: str) -> str:
    try:
        return str(json.loads(text)["odata.error"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""


def _mode(kind: Kind) -> UpdateMode:
    return UpdateMode.MERGE if kind in {Kind.MERGE, Kind.PUT_MERGE} else UpdateMode.REPLACE


def _entity(operation: Operation) -> dict[str, object]:
    return {
        **operation.properties,
        "PartitionKey": operation.key.partition_key,
        "RowKey": operation.key.row_key,
    }


def _condition(operation: Operation) -> dict[str, Any]:
    if operation.etag is None:
        return {"match_condition": MatchConditions.Unconditionally}
    return {"etag": operation.etag, "match_condition": MatchConditions.IfNotModified}


_BATCH_WORDS = {
    Kind.INSERT: "create",
    Kind.REPLACE: "update",
    Kind.MERGE: "update",
    Kind.PUT: "upsert",
    Kind.PUT_MERGE: "upsert",
    Kind.DELETE: "delete",
}


def _in_batch(operation: Operation) -> tuple[str, Mapping[str, object], dict[str, Any]]:
    options: dict[str, Any] = {}
    if operation.kind in {Kind.REPLACE, Kind.MERGE, Kind.PUT, Kind.PUT_MERGE}:
        options["mode"] = _mode(operation.kind)
    if operation.kind in {Kind.REPLACE, Kind.MERGE, Kind.DELETE}:
        options |= _condition(operation)
    return _BATCH_WORDS[operation.kind], _entity(operation), options


def _write_call(operation: Operation) -> Call:
    entity = _entity(operation)
    if operation.kind is Kind.INSERT:
        return Call("create_entity", (entity,), {**NO_RETRIES})
    if operation.kind in {Kind.PUT, Kind.PUT_MERGE}:
        return Call("upsert_entity", (entity,), {**NO_RETRIES, "mode": _mode(operation.kind)})
    if operation.kind is Kind.DELETE:
        return Call("delete_entity", operation.key, {**NO_RETRIES, **_condition(operation)})
    return Call("update_entity", (entity,), {**NO_RETRIES, **_condition(operation), "mode": _mode(operation.kind)})


def request_of(effect: Read | Write | Batch, client: Any) -> HttpRequest | None:
    """Return the request of an effect; None if the client's own methods must make it.

    Raises:
        TypeError: a value has no type of the service.
        Rejected: the service would reject the request for its size. Nothing was sent.
    """
    if isinstance(effect, Read):
        return point_reads.request_of(effect, client)
    return changesets.request_of(effect, client) if isinstance(effect, Batch) else requests.request_of(effect, client)


def result_of(effect: Read | Write | Batch, status: int, headers: Any, content: bytes) -> object:
    """Return an effect's result from the answer to its own request.

    Raises:
        Rejected: the service rejected it.
        ResultUnknown: the answer does not tell.
    """
    if isinstance(effect, Read):
        return point_reads.stored_of(status, headers, content)
    return (changesets.etags_of if isinstance(effect, Batch) else requests.etag_of)(status, headers, content)


def call(effect: Read | Write | Batch) -> Call:
    """Return the call that an effect is."""
    if isinstance(effect, Read):
        return Call("get_entity", effect.key, {**NO_RETRIES, **_select(effect.select)})
    if isinstance(effect, Write):
        return _write_call(effect.operation)
    operations = [_in_batch(each) for each in effect.operations]
    return Call("submit_transaction", (operations,), {**NO_RETRIES, "raw_request_hook": _check_batch})


def result(effect: Read | Write | Batch, answer: Any, response: Any) -> object:
    """Return an effect's result from what the SDK's method returned, and from the answer of the service.

    Raises:
        Rejected: a delete met no entity or no table, which the SDK takes for success.
    """
    if isinstance(effect, Read):
        return stored(answer)._replace(date=date_of(response.headers.get("Date")))
    if isinstance(effect, Batch):
        return tuple(str(each.get("etag") or "") for each in answer)
    if effect.operation.kind is Kind.DELETE and response.status_code == _NOT_FOUND:
        raise Rejected(_NOT_FOUND, _code(response.text()))
    return "" if answer is None else str(answer.get("etag") or "")


def limits(seconds: float) -> Options:
    """Return the options of a request that bound the wait for a connection, and for each part of the answer."""
    return {"connection_timeout": seconds, "read_timeout": seconds}


def pages(effect: Page, query: Callable[..., Any], every: Callable[..., Any], limited: Options = NO_LIMITS) -> Any:
    """Return the SDK's iterator over the pages of a query, from the one that is wanted."""
    options: dict[str, Any] = {**NO_RETRIES, **limited, **_select(effect.select), "results_per_page": effect.top}
    items = every(**options) if effect.filter is None else query(effect.filter.text(), **options)
    token = None
    if effect.continuation is not None:
        token = dict(zip(("PartitionKey", "RowKey"), effect.continuation, strict=True))
    return items.by_page(token)


def found(entities: list[TableEntity], token: Mapping[str, str] | None) -> Found:
    """Return a page of what the SDK's iterator yielded, and of its continuation token."""
    continuation = None if not token else (token.get("PartitionKey") or "", token.get("RowKey") or "")
    return Found(tuple(map(stored, entities)), continuation)


def stored(entity: TableEntity) -> Stored:
    """Return an entity of the SDK as its properties and its ETag."""
    return Stored(dict(entity), entity.metadata["etag"] or "", entity.metadata.get("timestamp"))


def _select(names: tuple[str, ...]) -> dict[str, Any]:
    return {"select": list(names)} if names else {}


@contextmanager
def translated(queue: str = "") -> Iterator[None]:
    """Raise `Rejected` or `ResultUnknown` for the SDK's errors, with the name of a queue, which they do not tell."""
    try:
        yield
    except HttpResponseError as error:
        raise rejection(error, queue and f"queue {queue}: ") from error
    except AzureError as error:
        raise ResultUnknown(str(error)) from error


def rejection(error: HttpResponseError, place: str = "") -> Rejected | ResultUnknown:
    """Return what an error of the SDK means; its text begins with a place."""
    status = error.status_code
    if status is None or status < 400 or status >= 500 or status in _UNKNOWN:
        headers = getattr(error.response, "headers", {})
        return ResultUnknown(f"{place}{status}: {error.message}", _seconds(headers.get("Retry-After")))
    code = getattr(error, "error_code", None)
    if code is None and (text := getattr(error.response, "text", None)) is not None:
        code = _code(text())  # `create_entity` raises its error without one.
    index = error.index if isinstance(error, TableTransactionError) else None
    return Rejected(status, str(getattr(code, "value", code) or ""), f"{place}{error.message}", index)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None


def is_absent(error: HttpResponseError) -> bool:
    """Tell whether a read failed as the entity is absent; a table that is absent is an error."""
    found = rejection(error)
    return isinstance(found, Rejected) and found.status == _NOT_FOUND and found.code in point_reads.ENTITY_CODES
