"""Resources that requests to the Table service address, and the methods of requests.

Invariants: keys are decoded once; doubled quotes become single. A returned resource is well formed, but may not exist.
Source: reference §1; of methods: §9, §11.1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import percent_decode
from lazulite.table.names import check_addressed_key, check_addressed_table

_LITERAL = r"'([^']*+(?>(?:''[^']*+)*))'"
_KEY = re.compile(rf"\s*(PartitionKey|RowKey)\s*=\s*{_LITERAL}\s*", re.DOTALL)
_BOTH_KEYS = re.compile(rf"PartitionKey={_LITERAL},RowKey={_LITERAL}", re.DOTALL)
"""How every SDK writes it; other orders and blanks are read key by key."""
USUAL_KEYS = r"\(PartitionKey='([\w.~:@=+-]{0,1024})',RowKey='([\w.~:@=+-]{0,1024})'\)"
"""Valid keys that need no decoding."""
_USUAL = rf"(?!(?i:tables)\()[A-Za-z][A-Za-z0-9]{{2,62}}){USUAL_KEYS}"
_USUAL_ENTITY = re.compile(f"({_USUAL}", re.ASCII)
USUAL_PATH = re.compile(f"((?:/[A-Za-z0-9-]++){{0,2}}/{_USUAL}", re.ASCII)
"""The whole path of such an entity: a `ServiceDefinition.keyed_path`. The secondary of an account has two segments."""
USUAL_START = re.compile(rf"([A-Z]{{3,6}} (?:/[A-Za-z0-9-]++){{0,2}}/{_USUAL}(?=[? ])".encode(), re.ASCII)
"""The start of a head with that path: one of `ServiceDefinition.keyed_starts`."""
_BELOW = re.compile(r"([^/(]*+)/(.*)", re.DOTALL)
"""A path of more than one segment. An encoded slash does not separate segments; no table's name has one."""
_BELOW_TABLE = re.compile(r"(?:\$batch|(?i:tables)(?:\((.*)\))?)/?", re.DOTALL)
_TABLE_KEY = re.compile(rf"\s*(?:TableName\s*=\s*)?{_LITERAL}\s*", re.DOTALL)
_KEY_COUNT = "The number of keys specified in the URI does not match number of key properties for the resource '{}'."

_TUNNELLED = frozenset({"MERGE", "PATCH", "PUT", "DELETE", "GET"})


class Kind(StrEnum):
    """The kinds of resources."""

    SERVICE = "the account's root"
    TABLES = "the set of tables"
    TABLE = "one table, as an entry of that set"
    ENTITIES = "the entities of a table"
    ENTITY = "one entity"
    BATCH = "the batch endpoint"
    BELOW_TABLE = "the set of tables or the batch endpoint, behind a table's name"
    TABLE_BELOW_TABLE = "one table as an entry of that set, behind a table's name"


_ENTITY = Kind.ENTITY


@dataclass(slots=True)
class Resource:
    """An addressed resource; `table` as the URL spells it."""

    kind: Kind
    table: str = ""
    partition_key: str = ""
    row_key: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return both keys of an entity; any other resource has none."""
        return (self.partition_key, self.row_key) if self.kind is _ENTITY else ()

    @property
    def name(self) -> str:
        """Return the name that a service SAS is compared with: the table's."""
        return self.table


@lru_cache(maxsize=1024)
def _make_entities_resource(table: str) -> Resource:
    check_addressed_table(table)
    return Resource(Kind.ENTITIES, table)


def parse_resource(path: str) -> Resource:
    """Read the path below the account, percent-encoded.

    Raises:
        ServiceError: `InvalidUri`, `InvalidInput`, `InvalidResourceName`, `OutOfRangeInput`, `KeyValueTooLarge`.
    """
    usual = _USUAL_ENTITY.fullmatch(path)
    if usual is not None:
        table, partition_key, row_key = usual.groups()
        return Resource(_ENTITY, table, partition_key, row_key)
    below = _BELOW.fullmatch(path)
    if below is not None and below[2]:
        return _parse_below_table(percent_decode(below[1]), percent_decode(below[2]))
    return _parse_segment(percent_decode(path if below is None else below[1]))


def parse_service_resource(path: str, _: Mapping[str, str]) -> Resource:
    """See `ServiceDefinition.parse_resource`. Raises as `parse_resource`."""
    return parse_resource(path)


def _parse_segment(text: str) -> Resource:
    """Return the resource of a path of one segment, decoded."""
    name, parenthesis, rest = text.partition("(")
    if parenthesis:
        if not rest.endswith(")"):
            raise ServiceError("InvalidInput", "Bad Request - Error in query syntax.")
        predicate = rest[:-1]
    else:
        predicate = ""
    if name.lower() == "tables":
        return _parse_tables_predicate(predicate)
    if name == "$batch" and not parenthesis:
        return Resource(Kind.BATCH)
    if not name and not parenthesis:
        return Resource(Kind.SERVICE)
    if not predicate.strip():
        return _make_entities_resource(name)
    return _parse_entity(name, predicate)


def _parse_tables_predicate(predicate: str) -> Resource:
    if not predicate.strip():
        return Resource(Kind.TABLES)
    match = _TABLE_KEY.fullmatch(predicate)
    if match is None:
        raise ServiceError("InvalidInput", "Bad Request - Error in query syntax.")
    return Resource(Kind.TABLE, match[1].replace("''", "'"))


def _parse_below_table(table: str, rest: str) -> Resource:
    match = _BELOW_TABLE.fullmatch(rest)
    if not table or match is None:
        raise ServiceError("InvalidUri")
    check_addressed_table(table)
    if match[1] is not None and match[1].strip():
        return Resource(Kind.TABLE_BELOW_TABLE, table)
    return Resource(Kind.BELOW_TABLE, table)


def _parse_entity(table: str, predicate: str) -> Resource:
    _make_entities_resource(table)
    usual = _BOTH_KEYS.fullmatch(predicate)
    partition_key, row_key = usual.groups() if usual else _read_keys(table, predicate)
    partition_key, row_key = partition_key.replace("''", "'"), row_key.replace("''", "'")
    check_addressed_key(partition_key)
    check_addressed_key(row_key)
    return Resource(Kind.ENTITY, table, partition_key, row_key)


def _read_keys(table: str, predicate: str) -> tuple[str, str]:
    keys: dict[str, str] = {}
    at = 0
    while at <= len(predicate):
        match = _KEY.match(predicate, at)
        if match is None or match[1] in keys or (match.end() < len(predicate) and predicate[match.end()] != ","):
            raise ServiceError("InvalidInput", "Bad Request - Error in query syntax.")
        keys[match[1]] = match[2]
        at = match.end() + 1
    if len(keys) != 2:
        raise wrong_key_count(table)
    return keys["PartitionKey"], keys["RowKey"]


def wrong_key_count(table: str) -> ServiceError:
    """Return the error for a key predicate that does not name both keys."""
    return ServiceError("InvalidInput", _KEY_COUNT.format(table))


def resolve_method(request: Request, *, in_batch: bool = False) -> str:
    """Return the request's method. For a POST with `X-HTTP-Method`, return the method that the header names.

    A part of a batch may name its own method in that header: the Java SDK 8 sends it with each merge (recorded for
    `MERGE`; *unverified* for other methods).

    Args:
        request: the request; only its method and headers are read.
        in_batch: whether the request is a part of a batch.

    Raises:
        ServiceError: `XMethodNotUsingPost`, `XMethodIncorrectCount`, `XMethodIncorrectValue`.
    """
    tunnelled = request.headers.get("x-http-method")
    if tunnelled is None:
        return request.method
    if request.method != "POST":
        if in_batch and tunnelled.strip().upper() == request.method:
            return request.method
        raise ServiceError("XMethodNotUsingPost")
    if "," in tunnelled:
        raise ServiceError("XMethodIncorrectCount")
    method = tunnelled.strip().upper()
    if method not in _TUNNELLED:
        raise ServiceError("XMethodIncorrectValue")
    return method
