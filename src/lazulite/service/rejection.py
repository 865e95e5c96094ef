"""How a rejection becomes a response: XML, unless a service has a format of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lazulite.engine.commit import Plain
from lazulite.engine.remote.codec import Encoding
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.xml import document as xml
from lazulite.service.responses import NO_SNIFF, XML_TYPE


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected request, with everything that its response tells."""

    error: ServiceError
    request: Request
    parameters: Mapping[str, str]
    version: str
    """The governing version; the newest if the request's version is malformed."""
    headers: list[tuple[str, str]]
    """The error code, and the headers that belong to this error."""
    time: str
    """The time now, with seven digits."""

    @property
    def text(self) -> str:
        """The message with the lines that an XML error has below it."""
        return f"{self.error.message}\nRequestId:{self.request.id}\nTime:{self.time}"


def reject_in_xml(rejection: Rejection) -> Response:
    """Return the response in XML: `<Error>` with code, message and details. Its reason phrase is the message, too."""
    error = rejection.error
    details = [xml.leaf(name, text) for name, text in error.details]
    body = xml.document(
        xml.element("Error", xml.leaf("Code", error.code), xml.leaf("Message", rejection.text), *details)
    )
    return xml_response(rejection, body)


def xml_response(rejection: Rejection, body: bytes, more: Sequence[tuple[str, str]] = (NO_SNIFF,)) -> Response:
    """Return the response whose body is an error in XML, with more fields for its body.

    A response without a body has no `Content-Type` either, as in recordings of HEAD: the Azure SDK for C++ parses as
    XML whatever has that type, and ends its process at an empty document.
    """
    error = rejection.error
    reason = error.reason or error.message
    if rejection.request.method == "HEAD" or error.status == 304:
        return Response(error.status, rejection.headers, b"", error.code, reason)
    return Response(error.status, [XML_TYPE, *more, *rejection.headers], body, error.code, reason)


def _decode_error(payload: Plain) -> ServiceError:
    code, message, status = payload
    return ServiceError(code, message, status=status)


SERVICE_ERROR = Encoding(ServiceError, lambda error: (error.code, error.message, error.status), _decode_error)
"""The encoding of the rejection that all services share, for another process."""
