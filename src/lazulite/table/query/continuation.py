"""Continuation tokens: the key of the first row of the next page, as the service encodes it.

A token is `1!{n}!{text}`: `text` is the base64 of the key's UTF-8 with `-` for `=`, `n` its length. The service's own
treatment of `+` and `/` is *unverified*; here `*` and `_` stand for them, which clients leave unchanged.
A value without that prefix is a raw key, as the tests of the PHP SDK send.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping

from lazulite.engine.contract import Key
from lazulite.protocol.errors import ServiceError

PARTITION_HEADER = "x-ms-continuation-NextPartitionKey"
ROW_HEADER = "x-ms-continuation-NextRowKey"
TABLE_HEADER = "x-ms-continuation-NextTableName"

_TO_TOKEN = str.maketrans("=+/", "-*_")
_FROM_TOKEN = str.maketrans("-*_ ", "=+/+")
_TOKEN = re.compile(r"1!(\d{1,6})!(.*)", re.ASCII | re.DOTALL)
_TEXT = re.compile(r"[A-Za-z0-9*_+/ ]*-{0,2}", re.ASCII)


def encode_token(key: str) -> str:
    """Return the token of a key."""
    text = b64encode(key.encode("utf-8")).decode("ascii").translate(_TO_TOKEN)
    return f"1!{len(text)}!{text}"


def decode_token(token: str) -> str:
    """Return the key of a token.

    Raises:
        ServiceError: `InvalidQueryParameterValue` (*unverified*), a token that the service never issued.
    """
    match = _TOKEN.fullmatch(token)
    if match is None:
        return token
    text = match[2]
    try:
        if int(match[1]) != len(text) or _TEXT.fullmatch(text) is None:
            raise ValueError("not a token")
        return b64decode(text.translate(_FROM_TOKEN), validate=True).decode("utf-8")
    except ValueError:
        raise ServiceError("InvalidQueryParameterValue") from None


def read_entity_continuation(parameters: Mapping[str, str]) -> Key | None:
    """Return the key at which a page of entities starts; None for the first page.

    A partition without a row means the start of that partition. A row that is named and empty is no token: that of the
    empty key has characters.

    Raises:
        ServiceError: `InvalidInput`, the row is empty; otherwise as `decode_token`.
    """
    partition, row = parameters.get("nextpartitionkey"), parameters.get("nextrowkey")
    if partition is None:
        return None
    if row == "":
        raise ServiceError("InvalidInput")
    return decode_token(partition), decode_token(row or "")


def entity_continuation_headers(key: Key) -> list[tuple[str, str]]:
    """Return the headers that name the first row of the next page."""
    return [(PARTITION_HEADER, encode_token(key[0])), (ROW_HEADER, encode_token(key[1]))]
