"""Entities of any size as one row, or as a head and rows of chunks.

Values that no property can hold, and the greatest ones where an entity exceeds 1 MiB, are joined to one stream:

| octets | content |
|---|---|
| 4 | length of the directory, big-endian |
| n | directory: JSON, a list of [name, "text" or "binary", octets] |
| the rest | the values in that order; texts are UTF-8, a lone surrogate as three octets |

The stream is cut into binaries of 64 KiB, which are the properties `_Fat00`, `_Fat01` … of the head if they fit into
it. Else they are those of rows in the same partition, 964 KiB in each: RowKey, `!`, generation, `!`, number. The head's
property `_Fat` says `1`, codec, octets of the stream, rows, generation. A generation is a random id, written once and
never changed.
"""

import json
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from azure.data.tables import EntityProperty

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.entities.values import BINARY_BYTES_MAX
from lazulite_patterns.keys.characters import units
from lazulite_patterns.outcomes.ring import RING

FAT = "_Fat"
"""Property of a head, the beginning of its chunks' names, and the `_Type` of rows of chunks."""
_FIELD_BYTES = 8 + 2 * len(FAT) + 4 + 2 * 64
_ROW = re.compile(r"(.*)!([0-9a-f]{16})!([0-9]{4})", re.DOTALL)


class Sizes(NamedTuple):
    """Where entities are cut; other sizes are for tests.

    Attributes:
        value_bytes: the most octets of a binary; half as many UTF-16 units of a text.
        row_bytes: octets of the stream in one row: three such rows fit into one transaction, as base64.
        head_bytes: the most of a row, by the service's formula.
        batch_bytes: the most of a transaction, as it is encoded.
        page_rows: rows of one request; None for as many as the service gives.
    """

    value_bytes: int = BINARY_BYTES_MAX
    row_bytes: int = 15 * 64 * 1024 + 4096
    head_bytes: int = limits.ENTITY_BYTES_MAX
    batch_bytes: int = 4 * 1024 * 1024 - 100_000
    page_rows: int | None = None


class Content(NamedTuple):
    """Where the stream of an entity is: in its head if there are no rows."""

    codec: str
    length: int
    rows: int
    generation: str

    @classmethod
    def of(cls, properties: Mapping[str, object]) -> "Content | None":
        """Return the content that a head names; None if the head is the whole entity.

        Raises:
            EntityFormatError: another program, or a later version, wrote the property.
        """
        if (text := properties.get(FAT)) is None:
            return None
        parts = str(text).split()
        if len(parts) != 5 or parts[0] != "1":
            raise EntityFormatError(f"{FAT}: {text!r} is not of version 1")
        return cls(parts[1], int(parts[2]), int(parts[3]), parts[4])

    @property
    def text(self) -> str:
        """The value of the property."""
        return f"1 {self.codec} {self.length} {self.rows} {self.generation}"

    def keys(self, head: EntityKey) -> list[EntityKey]:
        """Return the keys of the rows."""
        return [
            EntityKey(head.partition_key, f"{head.row_key}!{self.generation}!{number:04d}")
            for number in range(self.rows)
        ]


class EntityParts(NamedTuple):
    """An entity as it is stored: the head's properties, and those of the rows of chunks."""

    head: dict[str, object]
    rows: list[dict[str, object]]
    content: Content | None


def owner_of(row: EntityKey) -> tuple[EntityKey, str] | None:
    """Return the head of a row of chunks and its generation; None if it is none by its key."""
    found = _ROW.fullmatch(row.row_key)
    return None if found is None else (EntityKey(row.partition_key, found[1]), found[2])


def cut(
    owner: str, given: Mapping[str, object], generation: str, *, compress: bool, marks: int, sizes: Sizes
) -> EntityParts:
    """Return an entity as it is stored.

    Args:
        owner: for messages.
        given: the properties, with the keys.
        generation: an id that no other write has.
        compress: whether the stream is compressed.
        marks: ids of writes that the head has room for.
        sizes: where it is cut.

    Raises:
        EntityValueError: the service would reject a property.
    """
    small: dict[str, object] = {}
    large: dict[str, str | bytes] = {}
    for name, value in given.items():
        if name in limits.SYSTEM or name == RING or value is None:
            continue
        if name.startswith(FAT):
            raise EntityValueError(f"{owner}.{name}: the names that begin with {FAT} are the library's")
        inner = value.value if isinstance(value, EntityProperty) else value
        if isinstance(inner, str | bytes) and _octets_bound(inner) > sizes.value_bytes:
            large[name] = inner
        else:
            small[name] = value
    limits.check_properties(owner, {**small, **dict.fromkeys(large, 0)})
    room = sizes.head_bytes - _size(given, {}) - _ring_bytes(marks) - _FIELD_BYTES
    _move_greatest(small, large, room)
    keys = {"PartitionKey": given["PartitionKey"], "RowKey": given["RowKey"]}
    ring = {RING: ""} if marks else {}
    if not large:
        limits.check(owner, {**small, **keys, **ring})
        return EntityParts(small, [], None)
    stream = _joined(large, compress)
    codec = "zlib" if compress else "-"
    inside = _chunks(stream, sizes.value_bytes)
    if len(small) + len(inside) + 2 <= limits.PROPERTIES_MAX and _size({}, small) + _size({}, inside) <= room:
        content = Content(codec, len(stream), 0, generation)
        return EntityParts({**small, **inside, FAT: content.text}, [], content)
    parts = [stream[at : at + sizes.row_bytes] for at in range(0, len(stream), sizes.row_bytes)]
    content = Content(codec, len(stream), len(parts), generation)
    rows: list[dict[str, object]] = [{TYPE: FAT, **_chunks(each, sizes.value_bytes)} for each in parts]
    head = {**small, FAT: content.text}
    limits.check(owner, {**head, **keys, **ring})
    for key in content.keys(EntityKey(str(given["PartitionKey"]), str(given["RowKey"])))[-1:]:
        limits.check_key(owner, key)
    return EntityParts(head, rows, content)


def chunks_of(properties: Mapping[str, object]) -> bytes:
    """Return the octets of a row, or of a head that has its chunks inside."""
    names = sorted(each for each in properties if each.startswith(FAT) and each != FAT)
    return b"".join(each for name in names if isinstance(each := properties[name], bytes))


def whole(head: Mapping[str, object], content: Content | None, stream: bytes) -> dict[str, object]:
    """Return the properties of an entity from its head and its stream.

    Raises:
        EntityFormatError: the stream is not what `cut` makes.
    """
    small = {name: value for name, value in head.items() if not name.startswith(FAT) and name != RING}
    if content is None:
        return small
    try:
        plain = zlib.decompress(stream) if content.codec == "zlib" else stream
        start = 4 + int.from_bytes(plain[:4], "big")
        for name, kind, length in json.loads(plain[4:start]):
            octets = plain[start : start + length]
            small[name] = octets.decode("utf-8", "surrogatepass") if kind == "text" else octets
            start += length
    except (ValueError, TypeError, zlib.error) as error:
        raise EntityFormatError(f"{FAT}: {error}") from error
    return small


def _chunks(stream: bytes, size: int) -> dict[str, object]:
    """Return octets as properties."""
    return {f"{FAT}{at // size:02d}": stream[at : at + size] for at in range(0, len(stream), size)}


def _ring_bytes(marks: int) -> int:
    """Return the size of the property with writes' ids, by the service's formula."""
    return 8 + 2 * len(RING) + 4 + 2 * (17 * marks + 1)


def _octets_bound(value: str | bytes) -> int:
    return len(value) if isinstance(value, bytes) else 2 * units(value)


def _size(given: Mapping[str, object], properties: Mapping[str, object]) -> int:
    """Return the bytes of keys, or of properties, by the service's formula."""
    empty = {"PartitionKey": "", "RowKey": ""}
    if given:
        return limits.entity_size({name: given[name] for name in empty})
    return limits.entity_size({**empty, **properties}) - limits.entity_size(empty)


def _move_greatest(small: dict[str, object], large: dict[str, str | bytes], room: int) -> None:
    """Move values from the head to the stream, the greatest first, until the head fits into a row."""
    size = _size({}, small)
    texts = {name: each for name, each in small.items() if isinstance(each, str | bytes)}
    for name in sorted(texts, key=lambda each: _octets_bound(texts[each]), reverse=True):
        if size <= room:
            return
        size -= _size({}, {name: texts[name]})
        large[name] = texts[name]
        del small[name]


def _joined(large: Mapping[str, str | bytes], compress: bool) -> bytes:
    values = {
        name: value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        for name, value in large.items()
    }
    kinds = {name: "binary" if isinstance(value, bytes) else "text" for name, value in large.items()}
    directory = json.dumps([[name, kinds[name], len(values[name])] for name in values]).encode()
    stream = b"".join([len(directory).to_bytes(4, "big"), directory, *values.values()])
    return zlib.compress(stream) if compress else stream
