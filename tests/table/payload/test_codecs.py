"""JSON and Atom are two spellings of one entity."""

import json

from hypothesis import given

from lazulite.protocol.steps import finish
from lazulite.protocol.xml.text import is_text
from lazulite.table.model import edm
from lazulite.table.model.entity import Entity
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties
from lazulite.table.payload import atom, json_reader
from lazulite.table.payload.formats import ATOM, JSON
from tests.table import strategies

TICKS = edm.parse_datetime("2017-08-30T13:20:33.413914Z")


def _in_xml(values: dict[str, Property]) -> bool:
    texts = [json.loads(literal) for kind, literal in values.values() if kind is edm.STRING]
    return all(map(is_text, texts))


keys = strategies.keys.filter(is_text)
properties = strategies.properties.filter(_in_xml)


@given(keys, keys, properties)
def test_an_entity_survives_either_spelling(partition_key: str, row_key: str, values: dict[str, Property]) -> None:
    entity = Entity(partition_key, row_key, values)
    row = assemble(TICKS, encode_keys(partition_key, row_key), encode_properties(values))
    for written in (ATOM, *(each for level, each in JSON.items() if level != "nometadata")):
        body = written.entity_writer("http://host/a/", "a", "T", lambda: TICKS, None, "").entity(row)
        read = atom.read_entity if written is ATOM else json_reader.read_entity
        found = finish(read(body))
        assert found == entity
        assert list(found.properties) == list(values)
