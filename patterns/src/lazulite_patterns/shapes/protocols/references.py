"""A blob as an entity names it, and an entity as its blob names it.

The property of an entity is a JSON text: name, length, SHA-256 and content type of the blob. The metadata of the blob
are the table, the keys and the property. So each leads to the other one.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lazulite_patterns.effects.blobs import ByteStream, segment
from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.entities.edm import json_type
from lazulite_patterns.entities.errors import EntityFormatError

_KEYS_MAX = 800
"""The most characters of the keys in the name of a blob, which has 1,024 at most; longer keys are hashed."""


@dataclass(frozen=True)
class BlobReference:
    """What an entity has instead of large octets.

    Attributes:
        name: of the blob.
        length: in octets.
        sha256: of the octets, as hexadecimal digits.
        content_type: such as `image/jpeg`.
    """

    name: str
    length: int
    sha256: str
    content_type: str = "application/octet-stream"


_JSON = json_type(BlobReference)


def reference_text(reference: BlobReference) -> object:
    """Return the property of a reference."""
    return _JSON.write(reference)


def reference_of(properties: Properties, name: str) -> BlobReference | None:
    """Return the reference that a property is; None if it is absent.

    Raises:
        EntityFormatError: the property is no reference.
    """
    if (found := properties.get(name)) is None:
        return None
    try:
        read = _JSON.read(found)
    except (TypeError, ValueError) as error:
        raise EntityFormatError(f"{name} is no reference to a blob: {error}") from error
    assert read is None or isinstance(read, BlobReference)
    return read


class Owner(NamedTuple):
    """The property of an entity that names a blob."""

    table: str
    key: EntityKey
    field: str

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the blob. They are ASCII by the protocol, and keys are not."""
        partition_key, row_key, name = map(_encoded, (*self.key, self.field))
        return {"table": self.table, "partition_key": partition_key, "row_key": row_key, "property": name}

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> "Owner | None":
        """Return the owner that metadata name; None if they name none."""
        try:
            key = EntityKey(_decoded(metadata["partition_key"]), _decoded(metadata["row_key"]))
            return cls(metadata["table"], key, _decoded(metadata["property"]))
        except (KeyError, ValueError):
            return None

    def blob_name(self, blob_id: str) -> str:
        """Return the name of a new blob: table, keys and property for persons, and an id."""
        keys = "/".join(map(_readable, self.key))
        if len(keys) > _KEYS_MAX:
            keys = hashlib.sha256(keys.encode()).hexdigest()
        return f"{self.table}/{keys}/{_readable(self.field)}/{blob_id}"


def _encoded(key: str) -> str:
    """Return a key in ASCII: at most 2,733 characters, so that both keys fit the 8 KiB of metadata; none is empty."""
    return "_" + urlsafe_b64encode(key.encode("utf-16-le", "surrogatepass")).decode()


def _decoded(text: str) -> str:
    return urlsafe_b64decode(text[1:].encode("ascii")).decode("utf-16-le", "surrogatepass")


def _readable(text: str) -> str:
    """Return a segment of a name, which is not empty."""
    return segment(text) or "="


class Hashing:
    """A stream, and the hash and the length of what was read of it."""

    def __init__(self, stream: ByteStream) -> None:
        """Begin where the stream is."""
        self._stream = stream
        self._hash = hashlib.sha256()
        self.length = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return octets of the stream."""
        octets = self._stream.read(size)
        self._hash.update(octets)
        self.length += len(octets)
        return octets

    @property
    def sha256(self) -> str:
        """The hash of what was read."""
        return self._hash.hexdigest()


def checked_content_type(text: str) -> str:
    """Return a content type.

    Raises:
        ValueError: it is no header: a character is not ASCII, or a control.
    """
    if not text.isascii() or not text.isprintable():
        raise ValueError(f"{text!r} is no content type")
    return text
