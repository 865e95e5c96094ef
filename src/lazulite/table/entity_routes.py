"""The routes of entities: the operations that a batch may hold, too (reference §9, §11)."""

from lazulite.auth.grant import Requirement, either
from lazulite.service.routing import NO_BODY, PAGE, Route, Routes
from lazulite.table.call import Call
from lazulite.table.operations.entity_read import EntityRead, query_entities
from lazulite.table.operations.entity_writes import WriteEntity
from lazulite.table.operations.write_decisions import (
    DELETE,
    INSERT,
    INSERT_OR_MERGE,
    INSERT_OR_REPLACE,
    MERGE,
    REPLACE,
)
from lazulite.table.resource import Kind

ENTITY_BODY = 4 * 1024 * 1024
"""The most bytes of the body of a request, as in the reference §16. The body of an entity is less, but not the text."""
IF_MATCH = "if-match"

READ = Requirement("o", ("r",), ("r",), either("entities/read"))
ADD = Requirement("o", ("a",), ("a",), either("entities/write"))
_UPDATE = Requirement("o", ("u",), ("u",), either("entities/write"))
_UPSERT = Requirement("o", ("au",), ("au",), either("entities/write"))
MAY_DELETE = Requirement("o", ("d",), ("d",), either("entities/delete"))

_insert = WriteEntity(INSERT)
_replace, _upsert = WriteEntity(REPLACE), WriteEntity(INSERT_OR_REPLACE)
_merge, _upsert_merge = WriteEntity(MERGE), WriteEntity(INSERT_OR_MERGE)
_delete = WriteEntity(DELETE)

_entities, _entity = Kind.ENTITIES, Kind.ENTITY


def _write(
    kind: Kind,
    method: str,
    name: str,
    write: WriteEntity,
    requires: Requirement,
    *headers: str,
    body: int = ENTITY_BODY,
) -> Route[Call]:
    """Return the route of a write. Its plan leaves the condition to each request."""
    varies = () if write.kind is INSERT else (IF_MATCH,)
    return Route(
        kind,
        method,
        "",
        name,
        write,
        requires=requires,
        body=body,
        headers=frozenset(headers),
        varies=varies,
        charges=True,
    )


ENTITY_ROUTES: tuple[Route[Call], ...] = (
    Route(_entities, "GET", "", "QueryEntities", query_entities, requires=READ, deadline=PAGE, charges=True),
    _write(_entities, "POST", "InsertEntity", _insert, ADD),
    Route(_entity, "GET", "", "QueryEntity", EntityRead, requires=READ, varies=(), charges=True),
    _write(_entity, "PUT", "UpdateEntity", _replace, _UPDATE, IF_MATCH),
    _write(_entity, "PUT", "InsertOrReplaceEntity", _upsert, _UPSERT),
    _write(_entity, "MERGE", "MergeEntity", _merge, _UPDATE, IF_MATCH),
    _write(_entity, "MERGE", "InsertOrMergeEntity", _upsert_merge, _UPSERT),
    _write(_entity, "PATCH", "MergeEntity", _merge, _UPDATE, IF_MATCH),
    _write(_entity, "PATCH", "InsertOrMergeEntity", _upsert_merge, _UPSERT),
    _write(_entity, "DELETE", "DeleteEntity", _delete, MAY_DELETE, body=NO_BODY),
)
PARTS = Routes(*ENTITY_ROUTES)
"""The operations that a part of a batch can name."""
