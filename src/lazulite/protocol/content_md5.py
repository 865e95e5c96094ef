"""Content-MD5: a checksum that a client may send with a body. Source: reference §16.

MD5 guards against accidents only; what an attacker could change is covered by TLS, not by this.
"""

import hashlib
from base64 import b64decode
from binascii import Error as Base64Error

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

_DIGEST_BYTES = 16


def check_content_md5(request: Request) -> None:
    """Refuse a body that is not the one its Content-MD5 was made of; no header, no check.

    Raises:
        ServiceError: `InvalidMd5`, or `Md5Mismatch`.
    """
    sent = request.headers.get("content-md5")
    if sent is None:
        return
    try:
        digest = b64decode(sent, validate=True)
    except (Base64Error, ValueError):
        raise ServiceError("InvalidMd5") from None
    if len(digest) != _DIGEST_BYTES:
        raise ServiceError("InvalidMd5")
    if hashlib.md5(request.body, usedforsecurity=False).digest() != digest:
        raise ServiceError("Md5Mismatch")
