"""Reads of single entities as requests, and the entities in the answers. They take less time than the SDK's method."""

import json
from typing import Any
from urllib.parse import quote

from azure.core.rest import HttpRequest

from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.requests import VERSIONS, base_of, entity_url, error
from lazulite_patterns.effects.runtime import date_of
from lazulite_patterns.effects.tables import Read, Stored
from lazulite_patterns.effects.wire import properties_of, time_of

ENTITY_CODES = frozenset({"ResourceNotFound", "EntityNotFound"})
"""The codes of an entity that is absent; a table that is absent is an error."""
_NOT_FOUND = 404


def request_of(effect: Read, client: Any) -> HttpRequest | None:
    """Return the request of a read; None if the client must make it."""
    if (base := base_of(client)) is None:
        return None
    url = entity_url(effect.key, f"{base}/{client.table_name}")
    if effect.select:
        url += f"?$select={quote(','.join(effect.select), safe=',')}"
    return HttpRequest("GET", url, headers={"x-ms-version": str(client.api_version), **VERSIONS})


def stored_of(status: int, headers: Any, content: bytes) -> Stored | None:
    """Return the entity in the answer to a read; None if it is absent.

    Raises:
        Rejected: the service rejected the request.
        ResultUnknown: the answer does not tell.
    """
    if not 200 <= status < 300:
        found = error(status, headers, content)
        if isinstance(found, Rejected) and found.status == _NOT_FOUND and found.code in ENTITY_CODES:
            return None
        raise found
    try:
        properties = properties_of(json.loads(content))
        time = None if (text := properties.pop("Timestamp", None)) is None else time_of(str(text))
    except (TypeError, ValueError, AttributeError) as failed:
        raise ResultUnknown(f"the answer is no entity: {failed}") from failed
    return Stored(properties, str(headers.get("ETag") or ""), time, date_of(headers.get("Date")))
