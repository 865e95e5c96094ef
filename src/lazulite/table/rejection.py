"""How the Table service responds to a rejected request: in the negotiated format of OData, or in XML.

Source: reference §16.
"""

import re
from collections.abc import Mapping, Sequence

from lazulite.protocol.errors import CREDENTIAL_REJECTIONS
from lazulite.protocol.message import Response
from lazulite.protocol.xml import document as xml
from lazulite.service.rejection import Rejection, xml_response
from lazulite.service.responses import NO_CACHE, NO_SNIFF
from lazulite.table.errors import MESSAGE_AS_REASON
from lazulite.table.payload.formats import HEADER_MAX, format_for_error
from lazulite.table.query.filter import FilterSyntaxError

_BATCH = re.compile(r".*/(?:\$|%24)batch/?", re.DOTALL)
_XML_COMPONENTS: Mapping[str, Sequence[tuple[str, str]]] = {"acl": (), "properties": (NO_SNIFF,), "stats": (NO_SNIFF,)}
"""The components that speak XML, and what the type of an error in it goes with. Recorded of `acl`."""


def _of_front_door(rejection: Rejection) -> bool:
    """Tell whether an error is of the credentials of a batch, and Accept names XML or no type (reference §25)."""
    request = rejection.request
    if rejection.error.code not in CREDENTIAL_REJECTIONS or _BATCH.fullmatch(request.path) is None:
        return False
    accept = request.headers.get("accept", "")
    return not accept.strip() or "xml" in accept[:HEADER_MAX].lower()


def reject(rejection: Rejection) -> Response:
    """Return the response in the format that the client accepts; XML for operations that speak XML (§16)."""
    error, request = rejection.error, rejection.request
    more = _XML_COMPONENTS.get(rejection.parameters.get("comp", "").lower())
    if more is not None or _of_front_door(rejection):
        return xml_response(rejection, xml.error_document(error.code, rejection.text, error.details), more or ())
    wanted = format_for_error(rejection.version, request.headers, rejection.parameters.get("$format", ""))
    body = wanted.error(error, request.id, rejection.time)
    # As recorded, the rejection of a filter is the one that says nothing of caches.
    caching = [] if isinstance(error, FilterSyntaxError) else [NO_CACHE]
    content_type = wanted.error_type
    if error.code in CREDENTIAL_REJECTIONS:
        content_type = content_type.partition(";")[0]
    headers = [("Content-Type", content_type), NO_SNIFF, *caching, *rejection.headers]
    return Response(error.status, headers, body, error.code, error.message if error.code in MESSAGE_AS_REASON else "")
