"""Targets that send bodies: JSON, Atom, batches, XML.

The first line of an input says how it is sent, the rest is the body. A first line that says nothing has a default.
"""

import json
from collections.abc import Callable
from urllib.parse import quote

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.edm import TYPES, Json, Value, type_of_json
from lazulite.table.model.entity import EncodedEntity, encode_entity
from lazulite.table.payload.json_pattern import TablePatterns
from lazulite.table.payload.json_reader import read_encoded, read_entity

from .json_shapes import general, pattern_like
from .oracles import require
from .world import ROOT, Exchange, World

_SYSTEM = frozenset({"PartitionKey", "RowKey", "Timestamp"})
_ENTITY = "(PartitionKey='p',RowKey='r')"
_LEVELS = {"full": "fullmetadata", "none": "nometadata"}
_ATOM_HEADERS = {
    "content-type": "application/atom+xml",
    "accept": "application/atom+xml",
    "x-ms-version": "2011-08-18",
    "dataserviceversion": "1.0;NetFx",
    "maxdataserviceversion": "2.0;NetFx",
}


def split(data: bytes) -> tuple[list[str], bytes]:
    """The words of the first line, and what follows it."""
    line, _, rest = data.partition(b"\n")
    return line.decode("latin-1").split(), rest


def values(body: bytes) -> dict[str, Value]:
    """The custom properties that an accepted JSON body holds, decoded."""
    members: dict[str, Json] = json.loads(body.decode("utf-8-sig"))
    found: dict[str, Value] = {}
    for name, value in members.items():
        if value is None or "@" in name or name in _SYSTEM or name.startswith("odata."):
            continue
        annotation = members.get(f"{name}@odata.type")
        edm = type_of_json(value) if annotation is None else TYPES[str(annotation)]
        found[name] = edm.decode(edm.literal(value))
    return found


def _path_of(exchange: Exchange) -> str:
    """The path that the answer to an insert names."""
    location = exchange.header("Location") or ""
    _, found, rest = location.partition(ROOT)
    require(bool(found), "an insert names its entity")
    return ROOT + rest


def _write(world: World, words: list[str], body: bytes, headers: dict[str, str]) -> tuple[Exchange, str]:
    """Send an entity; return the answer and, if it was accepted, the entity's path."""
    method = next((word for word in words if word in ("PUT", "MERGE", "PATCH")), "POST")
    path = ROOT + world.table + ("" if method == "POST" else _ENTITY)
    condition = {"if-match": "*"} if "*" in words and method != "POST" else {}
    written = world.ask(method, path, headers={**headers, **condition}, body=body)
    if written.status >= 300:
        return written, ""
    require(written.wrote, "an accepted write is there")
    return written, _path_of(written) if method == "POST" else path


def json_body(world: World, data: bytes) -> None:
    """An entity in JSON; what is accepted is legal, reads back as sent, and can be written again."""
    words, body = split(data)
    for by_name in (False, True):
        short, long = (_encoded(way, body, by_name) for way in (_either_way, _the_long_way))
        require(short == long, "the short way gives what the long way gives")
    level = next((_LEVELS[word] for word in words if word in _LEVELS), "minimalmetadata")
    headers = {"accept": f"application/json;odata={level}"}
    written, path = _write(world, words, body, headers)
    if not path:
        return
    sent = values(body)
    read = world.ask("GET", path, headers={"accept": "application/json;odata=minimalmetadata"})
    require(read.status == 200, "what was written can be read")
    got = values(read.response.body)
    if {"MERGE", "PATCH"}.isdisjoint(words):
        require(set(got) == set(sent), "what was written is read, and nothing else")
    require(all(_same(got.get(name), value) for name, value in sent.items()), "values come back as they were sent")
    if written.status == 201:
        echo = world.ask("GET", path, headers=headers).response.body
        require(json.loads(echo) == json.loads(written.response.body), "an insert echoes what a query reads")
    again = world.ask("PUT", path, body=world.ask("GET", path, headers={"accept": _FULL}).response.body)
    require(again.status == 204, "what was read can be written")
    after = values(world.ask("GET", path).response.body)
    require(_equal(after, got), "a round trip changes nothing")


def _either_way(body: bytes, by_name: bool) -> EncodedEntity:
    return finish(read_encoded(body, by_name, TablePatterns()))


def _the_long_way(body: bytes, by_name: bool) -> EncodedEntity:
    return encode_entity(finish(read_entity(body)), by_name)


def _encoded(way: Callable[[bytes, bool], EncodedEntity], body: bytes, by_name: bool) -> EncodedEntity | str:
    try:
        return way(body, by_name)
    except ServiceError as error:
        return f"{error.code}: {error.message}"


def shapes(_: World, data: bytes) -> None:
    """Bodies of a line each; the pattern of each gives for all of them the result of the general path, or none."""
    bodies = data.split(b"\n")[:_LINES_MAX]
    patterns = [pattern for pattern in map(pattern_like, bodies) if pattern is not None]
    for body in filter(bytes.isascii, bodies):
        for by_name in (False, True):
            found = [pattern.encode(body, by_name) for pattern in patterns]
            expected = general(body, by_name) if any(found) else None
            require(all(each in (None, expected) for each in found), "a pattern gives what the general path gives")


_LINES_MAX = 8
_FULL = "application/json;odata=fullmetadata"


def _same(one: Value | None, other: Value | None) -> bool:
    return type(one) is type(other) and (one == other or (one != one and other != other))  # noqa: PLR0124 - NaN


def _equal(one: dict[str, Value], other: dict[str, Value]) -> bool:
    return set(one) == set(other) and all(_same(value, other[name]) for name, value in one.items())


def atom_body(world: World, data: bytes) -> None:
    """An entity in Atom; what is accepted reads back the same in both formats."""
    words, body = split(data)
    if "TABLE" in words:
        world.ask("POST", f"{ROOT}Tables", headers=_ATOM_HEADERS, body=body)
        return
    _, path = _write(world, words, body, _ATOM_HEADERS)
    if not path:
        return
    sent = values(world.ask("GET", path).response.body)
    read = world.ask("GET", path, headers=_ATOM_HEADERS)
    require(read.status == 200, "what was written can be read")
    again = world.ask("PUT", path, headers=_ATOM_HEADERS, body=read.response.body)
    require(again.status == 204, "what was read can be written")
    after = values(world.ask("GET", path).response.body)
    require(_equal(after, sent), "a round trip changes nothing")


def batch(world: World, data: bytes) -> None:
    """A batch; the first line is its Content-Type if it looks like one. One that mentions Atom is of Atom's time."""
    line, separator, body = data.partition(b"\n")
    content_type = line.strip().decode("latin-1")
    if not (separator and content_type.lower().startswith("multipart")):
        content_type, body = "multipart/mixed; boundary=batch_b", data
    spoken = _ATOM_HEADERS if b"atom+xml" in body else {"accept": "application/json"}
    world.ask("POST", f"{ROOT}$batch", headers={**spoken, "content-type": content_type.replace("\0", "")}, body=body)


def xml_body(world: World, data: bytes) -> None:
    """An ACL or service properties; what is accepted reads back, and that can be set again."""
    words, body = split(data)
    path, query = (
        (ROOT, "restype=service&comp=properties") if "properties" in words else (ROOT + world.table, "comp=acl")
    )
    headers = {"content-type": "application/xml"}
    written = world.ask("PUT", path, query, headers, body)
    if written.status >= 300:
        return
    first = world.ask("GET", path, query)
    require(first.status == 200, "what was set can be read")
    again = world.ask("PUT", path, query, headers, first.response.body)
    require(again.status < 300, "what was read can be set")
    require(world.ask("GET", path, query).response.body == first.response.body, "a round trip changes nothing")


def filter_text(world: World, data: bytes) -> None:
    """A `$filter`; with its negation it divides the table, and key ranges find what a full scan finds."""
    text = data[:8000].decode("utf-8", "replace").replace("\0", " ")
    found = _rows(world, text)
    if found is None:
        return
    complement = _rows(world, f"not ({text})")
    if complement is not None:
        require(not found & complement, "no row matches a filter and its negation")
        require(found | complement == _rows(world, ""), "each row matches a filter or its negation")
    scanned = _rows(world, f"({text}) or NoSuch eq 1")
    require(scanned in (None, found), "a full scan finds the same rows")


def _rows(world: World, text: str) -> set[tuple[str, str]] | None:
    query = f"$filter={quote(text, safe='')}" if text.strip() else ""
    answer = world.ask("GET", f"{ROOT}{world.table}()", query)
    if answer.status != 200:
        return None
    return {(row["PartitionKey"], row["RowKey"]) for row in json.loads(answer.response.body)["value"]}
