"""Content-MD5: a checksum that a client may send with a body. Source: reference §16.

MD5 guards against accidents only; what an attacker could change is covered by TLS, not by this.
"""

import hashlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import AsyncIterator, Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

_DIGEST_BYTES = 16


def check_content_md5(headers: Mapping[str, str], body: bytes) -> None:
    """Reject a body that is not the one its Content-MD5 was made of; no header, no check.

    Args:
        headers: of the request, or of a part of a batch, by their names in lower case.
        body: its body.

    Raises:
        ServiceError: `InvalidMd5`, or `Md5Mismatch`.
    """
    sent = headers.get("content-md5")
    if sent is not None and hashlib.md5(body, usedforsecurity=False).digest() != _digest(sent):
        raise ServiceError("Md5Mismatch")


async def checked_chunks(request: Request, bytes_max: int) -> AsyncIterator[bytes]:
    """Yield the body of a request in chunks, and reject it at its end as `check_content_md5` does.

    Raises:
        ServiceError: `InvalidMd5`, before the body is accepted; `RequestBodyTooLarge`, it is longer than `bytes_max`;
            `Md5Mismatch`, behind the last chunk; or as `RequestBody.chunks`. What was yielded is to be discarded.
        ClientDisconnectedError: likewise.
    """
    body, request.body_to_come = request.body_to_come, None
    if body is None:
        return
    text = request.headers.get("content-md5")
    sent = None if text is None else _digest(text)
    computed = hashlib.md5(usedforsecurity=False)
    received_bytes = 0
    async for chunk in body.chunks():
        received_bytes += len(chunk)
        if received_bytes > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        if sent is not None:
            computed.update(chunk)
        yield chunk
    if sent is not None and computed.digest() != sent:
        raise ServiceError("Md5Mismatch")


def _digest(text: str) -> bytes:
    try:
        digest = b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise ServiceError("InvalidMd5") from None
    if len(digest) != _DIGEST_BYTES:
        raise ServiceError("InvalidMd5")
    return digest
