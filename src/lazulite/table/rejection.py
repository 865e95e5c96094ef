"""How the Table service responds to a rejected request: in the negotiated format of OData, or in XML.

Source: reference §16.
"""

from collections.abc import Mapping, Sequence

from lazulite.protocol.errors import CREDENTIAL_REJECTIONS
from lazulite.protocol.message import Response
from lazulite.protocol.xml import document as xml
from lazulite.service.rejection import Rejection, xml_response
from lazulite.service.responses import NO_CACHE, NO_SNIFF
from lazulite.table.errors import MESSAGE_AS_REASON
from lazulite.table.payload.negotiation import format_for_error
from lazulite.table.query.filter import FilterSyntaxError

_XML_COMPONENTS: Mapping[str, Sequence[tuple[str, str]]] = {"acl": (), "properties": (NO_SNIFF,), "stats": (NO_SNIFF,)}
"""The components that speak XML, and what the type of an error in it goes with. Recorded of `acl`."""


def reject(rejection: Rejection) -> Response:
    """Return the response in the format that the client accepts; XML for operations that speak XML."""
    error, request = rejection.error, rejection.request
    more = _XML_COMPONENTS.get(rejection.parameters.get("comp", "").lower())
    if more is not None:
        return xml_response(rejection, xml.error_document(error.code, rejection.text, error.details), more)
    wanted = format_for_error(rejection.version, request.headers, rejection.parameters.get("$format", ""))
    body = wanted.error(error, request.id, rejection.time)
    # As recorded, the rejection of a filter is the one that says nothing of caches.
    caching = [] if isinstance(error, FilterSyntaxError) else [NO_CACHE]
    content_type = wanted.error_type
    if error.code in CREDENTIAL_REJECTIONS:
        content_type = content_type.partition(";")[0]
    headers = [("Content-Type", content_type), NO_SNIFF, *caching, *rejection.headers]
    return Response(error.status, headers, body, error.code, error.message if error.code in MESSAGE_AS_REASON else "")
