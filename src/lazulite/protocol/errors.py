"""The error catalogue: every code that a service answers with, its status and its default message.

The codes here are those that all services share; each service registers the codes of its own in `CATALOGUE`. Source:
table-service error codes of the REST reference and recordings of the live service; the spelling of a message
(`The specifed resource name…` included) is the service's own.

The functions make the rejections of a method and of a header, with the details that services state.
"""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

_FORM = "Server failed to authenticate the request. "
_NOT_AUTHORIZED = "This request is not authorized to perform this operation"

CATALOGUE: dict[str, tuple[int, str]] = {
    "AccountIsDisabled": (403, "The specified account is disabled."),
    "AccountRequiresHttps": (400, "The account being accessed does not support http."),
    "AuthenticationFailed": (
        403,
        _FORM + "Make sure the value of Authorization header is formed correctly including the signature.",
    ),
    "AuthorizationFailure": (403, _NOT_AUTHORIZED + "."),
    "AuthorizationPermissionMismatch": (403, _NOT_AUTHORIZED + " using this permission."),
    "AuthorizationProtocolMismatch": (403, _NOT_AUTHORIZED + " using this protocol."),
    "AuthorizationResourceTypeMismatch": (403, _NOT_AUTHORIZED + " using this resource type."),
    "AuthorizationServiceMismatch": (403, _NOT_AUTHORIZED + " using this service."),
    "AuthorizationSourceIPMismatch": (403, _NOT_AUTHORIZED + " using this source IP."),
    "ConditionHeadersNotSupported": (400, "Condition headers are not supported."),
    "CorsPreflightFailure": (403, "CORS not enabled or no matching rule found for this request."),
    "EmptyMetadataKey": (400, "The key for one of the metadata key-value pairs is empty."),
    "HostInformationNotPresent": (
        400,
        "The required host information is not present in the request. You must send a non-empty Host header or "
        "include the absolute URI in the request line.",
    ),
    "InsufficientAccountPermissions": (403, "Write operations are not allowed."),
    "InternalError": (500, "The server encountered an internal error. Please retry the request."),
    "InvalidAuthenticationInfo": (
        400,
        "Authentication information is not given in the correct format. Check the value of Authorization header.",
    ),
    "InvalidHeaderValue": (400, "The value for one of the HTTP headers is not in the correct format."),
    "InvalidHttpVerb": (400, "The HTTP verb specified was not recognized by the server."),
    "InvalidInput": (400, "One of the request inputs is not valid."),
    "InvalidMarker": (400, "The specified marker is invalid."),
    "InvalidMd5": (
        400,
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64-encoded.",
    ),
    "InvalidMetadata": (400, "The specified metadata is invalid. It includes characters that are not permitted."),
    "InvalidQueryParameterValue": (
        400,
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    "InvalidResourceName": (400, "The specifed resource name contains invalid characters."),
    "InvalidUri": (400, "The requested URI does not represent any resource on the server."),
    "InvalidXmlDocument": (400, "XML specified is not syntactically valid."),
    "InvalidXmlNodeValue": (400, "The value for one of the XML nodes is not in the correct format."),
    "Md5Mismatch": (
        400,
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
    ),
    "MetadataTooLarge": (400, "The size of the specified metadata exceeds the maximum size permitted."),
    "MethodNotAllowed": (405, "The requested method is not allowed on the specified resource."),
    "MissingContentLengthHeader": (411, "Content-Length HTTP header is missing."),
    "MissingRequiredHeader": (400, "A required HTTP header was not specified."),
    "MissingRequiredQueryParameter": (
        400,
        "A query parameter that's mandatory for this request is not specified.",
    ),
    "MissingRequiredXmlNode": (400, "A required XML node was not specified in the request body."),
    "NoAuthenticationInformation": (
        401,
        _FORM + "Please refer to the information in the www-authenticate header.",
    ),
    "NotImplemented": (501, "The requested operation is not implemented on the specified resource."),
    "OperationTimedOut": (500, "The operation could not be completed within the permitted time."),
    "OutOfRangeInput": (400, "One of the request inputs is out of range."),
    "OutOfRangeQueryParameterValue": (
        400,
        "A query parameter specified in the request URI is outside the permissible range.",
    ),
    "RequestBodyTooLarge": (413, "The request body is too large and exceeds the maximum permissible limit."),
    "RequestUrlFailedToParse": (400, "The url in the request could not be parsed."),
    "ResourceNotFound": (404, "The specified resource does not exist."),
    "ServerBusy": (503, "The server is currently unable to receive requests. Please retry your request."),
    "UnsupportedHeader": (400, "One of the HTTP headers specified in the request is not supported."),
    "UnsupportedHttpVerb": (405, "The resource doesn't support specified Http Verb."),
    "UnsupportedQueryParameter": (
        400,
        "One of the query parameters specified in the request URI is not supported.",
    ),
    "UnsupportedXmlNode": (400, "One of the XML nodes specified in the request body is not supported."),
}

AUTHENTICATION_DETAIL = "AuthenticationErrorDetail"
"""The element of an error that tells why credentials were rejected."""

DETAIL_CHARACTERS_MAX = 8 * 1024

CREDENTIAL_REJECTIONS = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation"})
"""Codes of credentials that prove nothing. The service's front end answers them, with headers of its own (reference
§3)."""

MESSAGE_AS_REASON = CREDENTIAL_REJECTIONS | {
    "AuthorizationProtocolMismatch",
    "AuthorizationServiceMismatch",
    "AuthorizationSourceIPMismatch",
    "RequestBodyTooLarge",
}
"""Codes of all services whose message is the reason phrase, too, whatever the format (reference §16). Recorded are bad
credentials, `AuthorizationServiceMismatch` and `RequestBodyTooLarge`; the others are *unverified*."""

REASONS: dict[int, str] = {status.value: status.phrase for status in HTTPStatus} | {413: "Request Entity Too Large"}
"""The standard reason phrases, as the service writes them."""

SHOWN_CHARACTERS_MAX = 64


def register_codes(codes: Mapping[str, tuple[int, str]]) -> None:
    """Add the codes of a service to `CATALOGUE`; the same codes may be registered again.

    Args:
        codes: code -> (status, default message).

    Raises:
        ValueError: the catalogue has another status or message for a code. Nothing has been added.
    """
    for code, meaning in codes.items():
        if CATALOGUE.get(code, meaning) != meaning:
            raise ValueError(f"the error code {code} is registered with another status or message")
    CATALOGUE.update(codes)


class ServiceError(Exception):
    """A rejection: code, status and message, to be spelled in the client's format at the edge.

    Args:
        code: a key of `CATALOGUE`.
        message: replaces the catalogue's text.
        status: replaces the catalogue's status; only for the head-level rejections that HTTP itself names (408, 431).
        details: extra XML elements (name, text) that follow the message, for XML errors only.

    Attributes:
        headers: more headers (name, value) of the answer; an operation that passes the error on may set them.
        reason: the reason phrase of an error in XML; "": the message. An operation may set it.

    Raises:
        KeyError: no service has registered the code.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        status: int | None = None,
        details: Sequence[tuple[str, str]] = (),
    ) -> None:
        known_status, known_message = CATALOGUE[code]
        self.code = code
        self.status = status if status is not None else known_status
        self.message = message if message is not None else known_message
        self.details = tuple(details)
        self.headers: Sequence[tuple[str, str]] = ()
        self.reason = ""
        super().__init__(f"{self.status} {code}: {self.message}")

    def reword(self, messages: Mapping[str, str]) -> None:
        """Take the message for its code from `messages`, if it has the catalogue's and there is one."""
        message = messages.get(self.code)
        if message is not None and self.message == CATALOGUE[self.code][1]:
            self.message = message


class TlsOnPlainPortError(ServiceError):
    """A client began a TLS handshake on a port for plain HTTP."""

    def __init__(self) -> None:
        super().__init__("InvalidHttpVerb")


def authentication_failed(detail: str) -> ServiceError:
    """Return the rejection of credentials that prove nothing.

    Args:
        detail: why, for the sender of the request. It holds nothing secret but what the request holds. Cut to
            `DETAIL_CHARACTERS_MAX`.
    """
    return ServiceError("AuthenticationFailed", details=[(AUTHENTICATION_DETAIL, detail[:DETAIL_CHARACTERS_MAX])])


class AuthorityError(ServiceError):
    """A rejection because the credentials do not reach so far, whatever code and status their version calls for."""


def invalid_header(name: str, text: str, shown_max: int = SHOWN_CHARACTERS_MAX) -> ServiceError:
    """Return the rejection of a header's value, of which at most `shown_max` characters are shown."""
    return ServiceError("InvalidHeaderValue", details=[("HeaderName", name), ("HeaderValue", text[:shown_max])])


def missing_length() -> ServiceError:
    """Return the rejection of a body whose length the request does not state."""
    return ServiceError("MissingContentLengthHeader", details=[("HeaderName", "Content-Length")])


def unsupported_verb(methods: Iterable[str], code: str = "UnsupportedHttpVerb") -> ServiceError:
    """Return the rejection of a method that is not one of the resource's `methods`, with the code of the service."""
    error = ServiceError(code)
    error.headers = [("Allow", ", ".join(methods))]
    return error


def missing_header(name: str) -> ServiceError:
    """Return the rejection of a request without a header."""
    return ServiceError("MissingRequiredHeader", details=[("HeaderName", name)])
