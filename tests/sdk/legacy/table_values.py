"""`TableService` with values of every type, keys of every kind, and limits."""

import sys
from datetime import datetime, timedelta

from cases import run, unique_name
from rejections import rejected
from table_sdk import (
    ESCAPES_QUOTES,
    SENDS_EMPTY_KEYS,
    SERVICE,
    EdmType,
    Entity,
    EntityProperty,
    Table,
    TableBatch,
    contents,
    entity,
    own_rejection,
    properties,
    typed,
)

GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"


SAMPLES = {
    "string": "text",
    "empty": "",
    "blank": " \t\r\n ",
    "unicode": "zażółć 中文 \u2028 \ufeff 😀",
    "quotes": 'it\'s "quoted" \\ {json} <xml/> %27 &amp;',
    "like_a_date": "2020-01-01T00:00:00Z",
    "longest": "x" * 32_768,
    "true": True,
    "false": False,
    "int32": typed(EdmType.INT32, -(2**31)),
    "int64": 2**63 - 1,
    "int64_small": 7,
    "int64_least": -(2**63),
    "double": 0.1,
    "double_integral": 4.0,
    "double_large": 1.7976931348623157e308,
    "double_small": 5e-324,
    "infinity": float("inf"),
    "minus_infinity": float("-inf"),
    "date": datetime(2024, 2, 29, 23, 59, 59),  # These SDKs send whole seconds.
    "date_greatest": datetime(9999, 12, 31, 23, 59, 59),
    "date_least": datetime(1601, 1, 1),
    "guid": typed(EdmType.GUID, GUID),
    "binary": typed(EdmType.BINARY, bytes(range(256))),
    "binary_empty": typed(EdmType.BINARY, b""),
}


def test_every_type_is_read_as_it_was_written():
    with Table() as table:
        SERVICE.insert_entity(table, entity(nan=float("nan"), none=None, **SAMPLES))
        for found in (SERVICE.get_entity(table, "p", "r"), next(iter(SERVICE.query_entities(table)))):
            assert isinstance(found, Entity)
            assert isinstance(found.Timestamp, datetime)
            assert found["nan"] != found["nan"]
            assert "none" not in found
            for name, sent in SAMPLES.items():
                read = found[name]
                if isinstance(sent, EntityProperty):
                    assert (read.type, read.value) == (sent.type, sent.value), name
                elif isinstance(sent, datetime):
                    assert (read.replace(tzinfo=None), read.utcoffset()) == (sent, timedelta()), name
                else:
                    assert (type(read), read) == (type(sent), sent), name


def test_dates_are_sent_in_whole_seconds():
    with Table() as table:
        SERVICE.insert_entity(table, entity(at=datetime(2024, 2, 29, 23, 59, 59, 123456)))
        assert SERVICE.get_entity(table, "p", "r").at.replace(tzinfo=None) == datetime(2024, 2, 29, 23, 59, 59)


KEYS = [
    "simple",
    "100%",
    "%25",
    "%27",
    "a%20b",
    " blanks around ",
    "a+b",
    "a&b=c",
    "(a)",
    'say "hi"',
    "..",
    "a;b:c@d!$*~",
]
KEYS += ["<xml>&amp;", "{json}[0]", "|^`", "zażółć", "中文", "😀", "k" * 512]
QUOTED = ["O'Neil", "''", "(a),RowKey='b'"]


def test_keys_of_every_kind():
    for key in KEYS + QUOTED * ESCAPES_QUOTES:
        with Table() as table:
            SERVICE.insert_entity(table, entity(key, key, n=0))
            SERVICE.merge_entity(table, entity(key, key, m=1))
            SERVICE.update_entity(table, entity(key, key, n=2))
            SERVICE.insert_or_merge_entity(table, entity(key, key, m=3))
            assert properties(SERVICE.get_entity(table, key, key)) == {"n": 2, "m": 3}, key
            quoted = key.replace("'", "''")
            (found,) = SERVICE.query_entities(table, filter=f"PartitionKey eq '{quoted}' and RowKey eq '{quoted}'")
            assert (found.PartitionKey, found.RowKey) == (key, key)
            batch = TableBatch()
            batch.update_entity(entity(key, key, n=4))
            batch.insert_entity(entity(f"{key}2", key))
            SERVICE.commit_batch(table, batch)
            assert properties(SERVICE.get_entity(table, key, key)) == {"n": 4}, key
            SERVICE.delete_entity(table, key, key)
            assert [each.RowKey for each in SERVICE.query_entities(table)] == [f"{key}2"]


def test_keys_with_quotes_doubled_by_the_caller():
    if ESCAPES_QUOTES:
        return
    with Table() as table:
        for key in QUOTED:
            SERVICE.insert_entity(table, entity(key, key))
            doubled = key.replace("'", "''")
            assert SERVICE.get_entity(table, doubled, doubled).RowKey == key
            SERVICE.delete_entity(table, doubled, doubled)
        SERVICE.insert_entity(table, entity("it's"))
        rejected(400, "InvalidInput", SERVICE.get_entity, table, "p", "it's")


def test_empty_keys():
    with Table() as table:
        if not SENDS_EMPTY_KEYS:
            own_rejection(SERVICE.insert_entity, table, entity("", ""))
            return
        SERVICE.insert_entity(table, entity("", "", n=1))
        assert properties(SERVICE.get_entity(table, "", "")) == {"n": 1}
        SERVICE.delete_entity(table, "", "")
        assert contents(table) == {}


def test_limits_are_the_services():
    with Table() as table:
        large = {f"p{n}": typed(EdmType.BINARY, bytes(65_536)) for n in range(16)}
        for rejection, sent in [
            ("OutOfRangeInput", entity("a/b")),
            ("PropertyNameInvalid", entity(**{"a-b": 1})),
            ("PropertyValueTooLarge", entity(a="x" * 32_769)),
            ("EntityTooLarge", entity(**large)),
        ]:
            rejected(400, rejection, SERVICE.insert_entity, table, sent)
        rejected(413, "RequestBodyTooLarge", SERVICE.insert_entity, table, entity(a="x" * 4 * 1024 * 1024))
        # The SDK counts properties and measures their names by itself.
        for sent in (entity(**{"x" * 256: 1}), entity(**{f"p{n}": True for n in range(254)})):
            own_rejection(SERVICE.insert_entity, table, sent)
        assert contents(table) == {}


def test_a_missing_table():
    for act in [
        lambda table: SERVICE.insert_entity(table, entity()),
        lambda table: SERVICE.update_entity(table, entity()),
        lambda table: SERVICE.insert_or_merge_entity(table, entity()),
        lambda table: SERVICE.get_entity(table, "p", "r"),
        lambda table: SERVICE.delete_entity(table, "p", "r"),
        lambda table: list(SERVICE.query_entities(table)),
    ]:
        rejected(404, "TableNotFound", act, unique_name())


if __name__ == "__main__":
    run(sys.modules["__main__"])
