"""Tables and their entities.

An entity is its keys and its properties, each as an Edm type and the canonical literal of a value. So two entities are
equal exactly if their values and types are.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from lazulite.resources.policies import Policies, Policy, read_policies, write_policies
from lazulite.resources.sender import Call, RequestError, Sender, find, send
from lazulite.table.model.edm import DOUBLE, TYPES, EdmType, needs_annotation, type_of_json

_HEADERS = {
    "Accept": "application/json;odata=minimalmetadata",
    "Content-Type": "application/json",
    "DataServiceVersion": "3.0;NetFx",
    "MaxDataServiceVersion": "3.0;NetFx",
}
_CONTINUATIONS = {
    name: f"x-ms-continuation-{name.lower()}" for name in ("NextPartitionKey", "NextRowKey", "NextTableName")
}
"""Query parameter of the next page -> the response header with its value."""
_KEYS = ("PartitionKey", "RowKey")
_SYSTEM = frozenset({*_KEYS, "Timestamp"})
_TYPE = "@odata.type"
BATCH_ROWS_MAX = 100
BATCH_BYTES_MAX = 3 << 20
"""A batch takes no more rows beyond it; the service takes 4 MiB."""
_PART_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3})")


class Literal(NamedTuple):
    """A value of a property."""

    edm: EdmType
    literal: str
    """Canonical, as in JSON."""


class Entity(NamedTuple):
    """An entity, without its Timestamp."""

    partition: str
    row: str
    properties: Mapping[str, Literal]

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Entity":
        """Read an entity of a response in minimal metadata.

        Raises:
            ValueError: it is malformed.
        """
        properties = {
            name: _literal(value, fields.get(f"{name}{_TYPE}"))
            for name, value in fields.items()
            if name not in _SYSTEM and not name.startswith("odata.") and not name.endswith(_TYPE)
        }
        return cls(fields["PartitionKey"], fields["RowKey"], properties)

    def to_json(self) -> bytes:
        """Return the entity as the body of a request."""
        fields = [f"{json.dumps(name)}: {json.dumps(key)}" for name, key in zip(_KEYS, self[:2], strict=True)]
        for name, (edm, literal) in self.properties.items():
            fields.append(f"{json.dumps(name)}: {literal}")
            if edm is DOUBLE or needs_annotation(edm, literal):  # Azurite takes a bare 10.0 for an integer.
                fields.append(f"{json.dumps(name + _TYPE)}: {json.dumps(edm.name)}")
        return ("{" + ", ".join(fields) + "}").encode()


def _literal(value: Any, declared: str | None) -> Literal:
    edm = type_of_json(value) if declared is None else TYPES[declared]
    return Literal(edm, edm.literal(value))


class EntityRejectedError(RequestError):
    """An entity of a batch was rejected, and with it the batch.

    Args:
        entity: the entity.
        reason: for people.
        code: the error code.
    """

    def __init__(self, entity: Entity, reason: str, code: str) -> None:
        super().__init__(f"the table service rejects {entity.partition!r}, {entity.row!r}: {code}: {reason}", code)
        self.entity = entity


def table_names(sender: Sender) -> Iterator[str]:
    """Yield the names of all tables. Raises as `send`."""
    for page in _pages(sender, "Tables", {}):
        yield from (each["TableName"] for each in page)


def has_table(sender: Sender, table: str) -> bool:
    """Tell whether a table is there. Raises as `send`."""
    return find(sender, Call("table", "GET", f"Tables('{table}')", headers=_HEADERS)) is not None


def create_table(sender: Sender, table: str) -> None:
    """Create a table. Raises as `send`."""
    send(sender, Call("table", "POST", "Tables", {}, _HEADERS, json.dumps({"TableName": table}).encode()))


def table_policies(sender: Sender, table: str) -> dict[str, Policy]:
    """Return the access policies of a table. Raises as `send`."""
    return read_policies(send(sender, Call("table", "GET", table, {"comp": "acl"})).root)


def set_table_policies(sender: Sender, table: str, policies: Policies) -> None:
    """Replace the access policies of a table. Raises as `send`."""
    headers = {"Content-Type": "application/xml"}
    send(sender, Call("table", "PUT", table, {"comp": "acl"}, headers, write_policies(policies)))


def find_entity(sender: Sender, table: str, partition: str, row: str) -> Entity | None:
    """Return an entity; None if there is none. Raises as `send`."""
    reply = find(sender, Call("table", "GET", _entity_path(table, partition, row), headers=_HEADERS))
    return None if reply is None else Entity.from_json(json.loads(reply.body))


class EntityPage(NamedTuple):
    """A page of entities."""

    entities: Sequence[Entity]
    following: Mapping[str, str]
    """What leads to the next page; empty: this is the last one."""


def entity_page(sender: Sender, table: str, following: Mapping[str, str], top: int = 1000) -> EntityPage:
    """Return a page of the entities of a table, in the order of their keys.

    Args:
        sender: of the account.
        table: its name.
        following: of the page before; empty for the first one.
        top: the most entities.

    Raises:
        RequestError: as `send`.
    """
    given = {"$top": str(top), **following}
    reply = send(sender, Call("table", "GET", f"{table}()", given, _HEADERS))
    entities = [Entity.from_json(fields) for fields in json.loads(reply.body)["value"]]
    return EntityPage(entities, _following(reply.headers))


def entities(sender: Sender, table: str) -> Iterator[Entity]:
    """Yield all entities of a table, in the order of their keys. Raises as `send`."""
    following: Mapping[str, str] = {}
    while True:
        page = entity_page(sender, table, following)
        yield from page.entities
        following = page.following
        if not following:
            return


def batches(rows: Iterable[Entity]) -> Iterator[list[Entity]]:
    """Yield entities in batches of one partition each, in their order."""
    batch: list[Entity] = []
    keys: set[str] = set()
    size = 0
    for row in rows:
        length = sum(len(name) + len(value.literal) for name, value in row.properties.items()) + 512
        full = len(batch) == BATCH_ROWS_MAX or size + length > BATCH_BYTES_MAX
        if batch and (full or row.partition != batch[0].partition or row.row in keys):
            yield batch
            batch, keys, size = [], set(), 0
        batch.append(row)
        keys.add(row.row)
        size += length
    if batch:
        yield batch


def put_entities(sender: Sender, table: str, batch: Sequence[Entity]) -> None:
    """Insert or replace the entities of a batch, all or none.

    Raises:
        RequestError: as `send`.
        EntityRejectedError: one of several was rejected.
    """
    if len(batch) == 1:
        row = batch[0]
        send(sender, Call("table", "PUT", _entity_path(table, *row[:2]), {}, _HEADERS, row.to_json()))
        return
    name = f"batch_{uuid4()}"
    headers = {**_HEADERS, "Content-Type": f"multipart/mixed; boundary={name}"}
    reply = send(sender, Call("table", "POST", "$batch", {}, headers, _batch_body(table, batch, name)))
    statuses = [int(status) for status in _PART_STATUS.findall(reply.body)]
    if len(statuses) != len(batch) or max(statuses) >= 400:
        raise _batch_error(reply.body, batch)


def _batch_body(table: str, batch: Sequence[Entity], boundary: str) -> bytes:
    changes = f"changeset_{uuid4()}"
    lines = [f"--{boundary}", f"Content-Type: multipart/mixed; boundary={changes}", ""]
    parts = ["\r\n".join(lines).encode()]
    for number, row in enumerate(batch):
        head = (
            f"\r\n--{changes}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"PUT http://localhost/{_entity_path(table, *row[:2])} HTTP/1.1\r\nContent-ID: {number}\r\n"
            "Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n"
            "DataServiceVersion: 3.0;NetFx\r\nMaxDataServiceVersion: 3.0;NetFx\r\n\r\n"
        )
        parts += [head.encode(), row.to_json()]
    parts.append(f"\r\n--{changes}--\r\n--{boundary}--\r\n".encode())
    return b"".join(parts)


def _batch_error(body: bytes, batch: Sequence[Entity]) -> RequestError:
    """Return the error of a batch that was rejected. Its message begins with the number of the operation."""
    try:
        error = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["odata.error"]
        code, message = error["code"], str(error["message"]["value"]).partition("\n")[0]
        number, colon, text = message.partition(":")
        row = batch[int(number)] if colon and number.isdigit() and int(number) < len(batch) else batch[0]
    except (ValueError, LookupError, TypeError):
        return RequestError("the table service rejects a batch, without a reason")
    reason = (text if colon else message).strip()
    return EntityRejectedError(row, reason, str(code))


def _entity_path(table: str, partition: str, row: str) -> str:
    keys = (quote(key.replace("'", "''"), safe="") for key in (partition, row))
    return "{}(PartitionKey='{}',RowKey='{}')".format(table, *keys)


def _pages(sender: Sender, path: str, given: Mapping[str, str]) -> Iterator[list[dict[str, Any]]]:
    marks: dict[str, str] = {}
    while True:
        reply = send(sender, Call("table", "GET", path, {**given, **marks}, _HEADERS))
        yield json.loads(reply.body)["value"]
        marks = _following(reply.headers)
        if not marks:
            return


def _following(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[mark] for name, mark in _CONTINUATIONS.items() if mark in headers}
