"""Ids of blocks: 1 to 64 bytes, in base64 on the wire. Source: REST reference, Put Block.

An id is kept in canonical base64, so that equal bytes are equal texts. All uncommitted blocks of a blob have ids of one
length.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError

ID_BYTES_MAX = 64
_SHOWN_MAX = 128


def read_block_id(text: str | bytes) -> str:
    """Return the id that a text in base64 stands for.

    Raises:
        ValueError: it is not strictly base64, or has no byte or more than `ID_BYTES_MAX`.
    """
    try:
        id_ = a2b_base64(text, strict_mode=True)
    except Base64Error as error:
        raise ValueError("not base64") from error
    if not 0 < len(id_) <= ID_BYTES_MAX:
        raise ValueError("not 1 to 64 bytes")
    return b2a_base64(id_, newline=False).decode("ascii")


def require_block_id(parameters: Mapping[str, str]) -> str:
    """Return the `blockid` of a Put Block.

    Raises:
        ServiceError: `MissingRequiredQueryParameter`, `InvalidQueryParameterValue`.
    """
    text = parameters.get("blockid")
    if not text:
        raise ServiceError("MissingRequiredQueryParameter", details=[("QueryParameterName", "blockid")])
    try:
        return read_block_id(text)
    except ValueError:
        reason = f"A block id is 1 to {ID_BYTES_MAX} bytes in base64."
        named = [("QueryParameterName", "blockid"), ("QueryParameterValue", text[:_SHOWN_MAX])]
        raise ServiceError("InvalidQueryParameterValue", details=[*named, ("Reason", reason)]) from None


def check_same_length(id_: str, other: str | None) -> None:
    """Reject an id whose length differs from that of another uncommitted block of the blob; None: there is none.

    Raises:
        ServiceError: `InvalidBlobOrBlock`.
    """
    if other is not None and _length(id_) != _length(other):
        raise ServiceError("InvalidBlobOrBlock")


def _length(id_: str) -> int:
    """Return the bytes of an id."""
    return len(id_) * 3 // 4 - id_.count("=")
