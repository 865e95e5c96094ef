"""The service takes every key, sorts keys as the library does, and finds each by its range."""

from random import Random

from azure.data.tables import TableClient

from lazulite_patterns.keys.characters import utf16_order

from .strategies import random_text
from .test_key import Path, order


def test_the_service_sorts_and_finds_keys(table_client: TableClient) -> None:
    random = Random(2)
    keys = [Path(*(random_text(random) for _ in range(3))) for _ in range(60)]
    keys += [Path("a", "b", "x" * 1020), Path("'", "?\\", "#%"), Path(".", "..", "+&="), Path("", "", "")]
    for key in set(keys):
        table_client.create_entity({"PartitionKey": key.encode(), "RowKey": key.encode()})
    found = [each["RowKey"] for each in table_client.list_entities()]
    assert found == [key.encode() for key in sorted(set(keys), key=order)]
    assert found == sorted(found, key=utf16_order)
    for key in set(keys):
        assert table_client.get_entity(key.encode(), key.encode())["RowKey"] == key.encode()
        for wanted in (Path.prefix(first=key.first), Path.between(key, key)):
            rows = {each["RowKey"] for each in table_client.query_entities(wanted.filter())}
            assert rows == {each.encode() for each in set(keys) if each.encode() in wanted}
            assert key.encode() in rows
