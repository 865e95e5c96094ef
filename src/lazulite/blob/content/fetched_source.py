"""The source of a copy on another server. Source: reference §17.

The server layer connects, and only to hosts that the operator has allowed (`FetchSource`). The conditions on the source
are sent on: the other server decides them. Its response counts only if it has exactly the bytes that were asked for.
"""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

from lazulite.blob.content.source_errors import SourceUse, unmet, unverified
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders
from lazulite.blob.model.byte_range import ByteRange
from lazulite.blob.model.conditions import Outcome
from lazulite.blob.model.copy_source import ForeignSource
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.preconditions import OF_SOURCES, SOURCE_PREFIX, read_conditions
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.metadata import Metadata, read_metadata
from lazulite.service.fetching import FetchedResponse, FetchFailedError, FetchNotAllowedError

_SENT_ON = {"if-tags": "x-ms-if-tags"}
"""The names of conditions that have another one in the request to the source than without the prefix."""
_UNMET = {304: Outcome.NOT_MODIFIED, 412: Outcome.FAILED}
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)", re.ASCII)
_ERROR_CODE = re.compile(r"[A-Za-z0-9]{1,64}", re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,19}", re.ASCII)
_UNREACHABLE = 409
_MD5_BYTES = 16
AUTHORIZATION = "x-ms-copy-source-authorization"


@dataclass(frozen=True, slots=True)
class FetchedSource:
    """A response with the bytes that are wanted of a source."""

    response: FetchedResponse

    @property
    def blob(self) -> Blob:
        """The source as a block blob without its bytes; the length is 0 if it is not announced.

        Raises:
            ServiceError: `CannotVerifyCopySource`, its metadata can be those of no blob.
        """
        headers = self.response.headers
        found = ContentHeaders(
            headers.get("content-type", ""),
            headers.get("content-encoding", ""),
            headers.get("content-language", ""),
            _md5(headers.get("content-md5", "")),
            headers.get("cache-control", ""),
            headers.get("content-disposition", ""),
        )
        length = _announced(headers) or 0
        return Blob(
            type=BlobType.BLOCK, modified=0, created=0, length=length, headers=found, metadata=_metadata(headers)
        )

    async def content(self, bytes_max: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes.

        Raises:
            ServiceError: `RequestBodyTooLarge`, they are more than `bytes_max`; `CannotVerifyCopySource`.
        """
        if (_announced(self.response.headers) or 0) > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        length = 0
        try:
            async with aclosing(self.response.chunks()) as chunks:
                async for chunk in chunks:
                    length += len(chunk)
                    if length > bytes_max:
                        raise ServiceError("RequestBodyTooLarge")
                    yield chunk
        except FetchFailedError:
            raise unverified(_UNREACHABLE) from None


@asynccontextmanager
async def fetched_source(
    call: Call, found: ForeignSource, wanted: ByteRange | None, use: SourceUse
) -> AsyncIterator[FetchedSource]:
    """Yield a source on another server. See `open_source`.

    Raises:
        ServiceError: `CannotVerifyCopySource`, with the source's status if it responded; `SourceConditionNotMet`; 400
            for a header on the source.
    """
    sent = _request_headers(call, found, wanted)
    fetch = call.context.fetch_source
    async with AsyncExitStack() as stack:
        try:
            if fetch is None:
                raise FetchNotAllowedError
            response = await stack.enter_async_context(fetch(found.url, sent))
        except FetchNotAllowedError:
            raise unverified(404, 404, "ResourceNotFound") from None
        except FetchFailedError:
            raise unverified(_UNREACHABLE) from None
        _check(response, wanted, use)
        yield FetchedSource(response)


def _request_headers(call: Call, found: ForeignSource, wanted: ByteRange | None) -> dict[str, str]:
    """Return the headers of the request to the other server. Raises `ServiceError`, 400."""
    headers = call.request.headers
    read_conditions(OF_SOURCES, headers, call.version)
    sent = {_SENT_ON.get(name, name): text for name, text in _conditions(headers)}
    if wanted is not None:
        sent["range"] = f"bytes={wanted.start}-{'' if wanted.stop is None else wanted.stop - 1}"
    authorization = source_authorization(headers)
    if authorization is not None:
        if found.scheme != "https":
            raise invalid_header(AUTHORIZATION, "")
        sent["authorization"] = authorization
    return {**sent, "x-ms-version": call.version}


def _conditions(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the conditions on the source without the prefix of their names."""
    names = (header.name for header in OF_SOURCES if header.name in headers)
    return [(name.removeprefix(SOURCE_PREFIX), headers[name]) for name in names]


def _check(response: FetchedResponse, wanted: ByteRange | None, use: SourceUse) -> None:
    """Reject a response without the bytes that are wanted. Raises `ServiceError`."""
    status = response.status
    if status == (200 if wanted is None else 206):
        if wanted is not None and not _is_range(response.headers, wanted):
            raise unverified(_UNREACHABLE, status)
        return
    if status in _UNMET:
        raise unmet(_UNMET[status], use)
    code = response.headers.get("x-ms-error-code", "")
    known_code = code if _ERROR_CODE.fullmatch(code) else ""
    raise unverified(status if 400 <= status < 500 else _UNREACHABLE, status, known_code)


def _is_range(headers: Mapping[str, str], wanted: ByteRange) -> bool:
    """Tell whether a response has all bytes of a range, or those up to the end of the source."""
    match = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
    if match is None or int(match[1]) != wanted.start:
        return False
    stop, length = int(match[2]) + 1, _announced(headers)
    if length is not None and length != stop - wanted.start:
        return False
    return match[3] == str(stop) or stop == wanted.stop


def _announced(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length", "")
    return int(text) if _LENGTH.fullmatch(text) else None


def _metadata(headers: Mapping[str, str]) -> Metadata:
    try:
        return read_metadata(headers)
    except ServiceError as error:
        raise unverified(_UNREACHABLE, 200, error.code) from None


def _md5(text: str) -> str:
    """Return an MD5 in base64; "" for anything else."""
    try:
        return text if len(b64decode(text, validate=True)) == _MD5_BYTES else ""
    except (Error, ValueError):
        return ""


def source_authorization(headers: Mapping[str, str]) -> str | None:
    """Return the credentials for the source; None: there are none. Raises `InvalidHeaderValue`, no bearer token."""
    text = headers.get(AUTHORIZATION)
    if text is not None and not text.lower().startswith("bearer "):
        raise invalid_header(AUTHORIZATION, "")
    return text
