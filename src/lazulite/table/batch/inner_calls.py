"""The requests inside a batch as calls of their own, with the batch's credentials. Source: reference §11.2."""

import re
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.multipart import Head
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import UNSTATED, assumed_version, stated_version
from lazulite.service.routing import Keys
from lazulite.table.call import Call
from lazulite.table.entity_routes import PARTS
from lazulite.table.operations.entity_writes import ValidatedWrite, WriteEntity
from lazulite.table.resource import USUAL_KEYS, Kind, parse_resource, resolve_method
from lazulite.table.versions import JSON_SINCE, check_odata_version

_KEYED_URL = re.compile(rf"([^?(']+){USUAL_KEYS}", re.ASCII)
_Words = tuple[str, str, bool, int]
"""A method, a URL without its keys, whether it had some, and the identity of fields: equal ones are one mapping."""


class ValidatedHeads:
    """The heads of a change set's parts. Heads that differ only in the keys of their URL are validated once.

    Args:
        call: of the batch.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._by_head: dict[Head, tuple[ValidatedWrite, Keys]] = {}
        self._by_words: dict[_Words, ValidatedWrite] = {}

    def validate(self, head: Head) -> tuple[ValidatedWrite, Keys]:
        """Return the write of a head, and the keys that it addresses.

        Raises:
            ServiceError: 400, 403, 405 or 415.
        """
        found = self._by_head.get(head)
        if found is None:
            found = self._by_head[head] = self._validate(head)
        return found

    def _validate(self, head: Head) -> tuple[ValidatedWrite, Keys]:
        keyed = _KEYED_URL.fullmatch(head.url)
        url = head.url if keyed is None else keyed[1]
        words = (head.method, url, keyed is not None, id(head.headers))
        validated = self._by_words.get(words)
        if validated is None:
            validated = self._by_words[words] = _validated(self._call, head)
        resource = validated.call.resource
        return validated, resource.keys if keyed is None or resource.kind is not Kind.ENTITY else keyed.group(2, 3)


def _validated(call: Call, head: Head) -> ValidatedWrite:
    inner = inner_call(call, head)
    route = PARTS.find(inner)
    if route is None or not isinstance(route.operate, WriteEntity):
        raise ServiceError("InvalidInput")
    inner.authorize(route.requires)
    return ValidatedWrite(inner, route.operate.kind)


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
        if version == UNSTATED and not stated_version(call.request.headers, call.parameters):
            version = assumed_version(head.headers, parameters)
        if version < JSON_SINCE:
            check_odata_version(version, head.headers, parameters)
    return version
