"""The requests inside a batch as calls of their own, with the batch's credentials. Source: reference §11.2."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.multipart import KEY, Head, Part
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import DEFAULT_VERSION, assumed_version, stated_version
from lazulite.service.routing import Keys
from lazulite.table.call import Call
from lazulite.table.entity_routes import IF_MATCH, PARTS
from lazulite.table.etag_condition import read_condition
from lazulite.table.operations.entity_writes import ValidatedWrite, WriteEntity
from lazulite.table.resource import parse_resource, resolve_method
from lazulite.table.versions import JSON_SINCE, check_odata_version

KEYED_URL: Final = re.compile(
    rb"[^?(']++\(PartitionKey='(?>(?:[^?']|'')*)',RowKey='([\w.~:@=+-]*+)'\)(?:\?[!-~]*+)?", re.ASCII
)
"""The URL of an entity, as every SDK writes it. The row key, which is the group, stands for itself: what else the URL
holds may be encoded, but its predicate ends with this key, or addresses no entity."""

_Validated = tuple[ValidatedWrite, Keys, str | None]
"""A write, the keys of its entity and its condition."""


class ValidatedHeads:
    """The heads of a change set's parts. Heads of one form are validated once.

    Args:
        call: of the batch.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._by_head: dict[Head, _ValidatedHead] = {}

    def validate(self, part: Part) -> _Validated:
        """Return what the head of a part asks for.

        Raises:
            ServiceError: 400, 403, 405 or 415.
        """
        head = part.head
        found = self._by_head.get(head)
        if found is None:
            found = self._by_head[head] = _ValidatedHead(self._call, head)
        return found.of(part.values) if part.values and found.varies else found.own


class _ValidatedHead:
    """A head that is validated.

    Args:
        call: of the batch.
        head: the head.

    Attributes:
        own: what it asks for.
        varies: whether other parts with the same head ask for something else.

    Raises:
        ServiceError: 400, 403, 405 or 415.
    """

    __slots__ = ("_condition_at", "_key_at", "own", "varies")

    def __init__(self, call: Call, head: Head) -> None:
        inner = inner_call(call, head)
        route = PARTS.find(inner)
        if route is None or not isinstance(route.operate, WriteEntity):
            raise ServiceError("InvalidInput")
        inner.authorize(route.requires)
        write = ValidatedWrite(inner, route.operate.kind)
        keys = inner.resource.keys
        self.own: _Validated = (write, keys, write.condition)
        names = head.names
        self._key_at = names.index(KEY) if KEY in names else None
        self._condition_at = names.index(IF_MATCH) if IF_MATCH in names else None
        self.varies = self._key_at is not None or self._condition_at is not None

    def of(self, values: Sequence[bytes]) -> _Validated:
        """Return what a part asks for that shares the head, given its values.

        Raises:
            ServiceError: 400.
        """
        write, keys, condition = self.own
        if self._key_at is not None:
            keys = (keys[0], values[self._key_at].decode("ascii"))
        if self._condition_at is not None:
            text = values[self._condition_at].decode("ascii")
            condition = text if text == condition else read_condition({IF_MATCH: text}, write.call.method)
        return write, keys, condition


def inner_call(call: Call, head: Head) -> Call:
    """Return the call of a part, as of a single request with the batch's credentials."""
    path, _, query = head.url.partition("?")
    _, separator, rest = path.partition("://")
    if separator:
        path = rest.partition("/")[2]
    root = call.address.root
    # With a path-style endpoint some clients leave the account out of inner URLs, or name the primary to its secondary.
    path = path.lstrip("/")
    for named in (root[1:], f"{call.address.account}/" if call.address.secondary else ""):
        path = path.removeprefix(named)
    request = Request(head.method, root + path, query, head.headers, id=call.request.id, record=call.record)
    parameters = parse_query_string(query)
    return Call(
        call.context,
        request,
        call.address,
        parameters,
        _inner_version(call, head, parameters),
        call.grant,
        parse_resource(path),
        resolve_method(request, in_batch=True),
        call.deadline,
        in_batch=True,
    )


def _inner_version(call: Call, head: Head, parameters: Mapping[str, str]) -> str:
    """Return the version of a part: the batch's; of one that names none, what the part itself makes believe.

    Raises:
        ServiceError: the part's OData version is none of that version.
    """
    version = call.version
    if version < JSON_SINCE:
        if version == DEFAULT_VERSION and not stated_version(call.request.headers, call.parameters):
            version = assumed_version(head.headers, parameters)
        if version < JSON_SINCE:
            check_odata_version(version, head.headers, parameters)
    return version
