"""`TableService` with tables, entities, queries and batches."""

import sys
from datetime import datetime, timedelta

from cases import run, unique_name
from rejections import rejected
from table_sdk import (
    FOLLOWS_PATHS,
    SERVICE,
    STALE,
    AzureBatchOperationError,
    AzureBatchValidationError,
    EdmType,
    EntityProperty,
    Table,
    TableBatch,
    TablePayloadFormat,
    contents,
    entity,
    properties,
)


def test_tables_are_created_found_and_deleted():
    name = unique_name()
    assert not SERVICE.exists(name)
    assert SERVICE.create_table(name) is True
    assert SERVICE.exists(name)
    assert SERVICE.create_table(name) is False
    rejected(409, "TableAlreadyExists", SERVICE.create_table, name, fail_on_exist=True)
    assert SERVICE.delete_table(name) is True
    assert SERVICE.delete_table(name) is False
    rejected(404, "ResourceNotFound", SERVICE.delete_table, name, fail_not_exist=True)
    rejected(400, "InvalidResourceName", SERVICE.create_table, "bad-name")


def test_tables_are_listed_page_by_page():
    prefix = unique_name()[:24]
    names = [prefix + letter for letter in "abcde"]
    for name in names:
        SERVICE.create_table(name)
    try:
        assert [table.name for table in SERVICE.list_tables() if table.name.startswith(prefix)] == names
        found, marker = [], None
        while True:
            page = SERVICE.list_tables(num_results=2, marker=marker)
            found += [table.name for table in page]
            marker = page.next_marker
            if not marker:
                break
        assert [name for name in found if name.startswith(prefix)] == names
        assert len(found) == len(set(found))
    finally:
        for name in names:
            SERVICE.delete_table(name)


def test_an_entity_is_inserted_once():
    with Table() as table:
        etag = SERVICE.insert_entity(table, entity(a=1, b="two"))
        found = SERVICE.get_entity(table, "p", "r")
        assert (properties(found), found.etag) == ({"a": 1, "b": "two"}, etag)
        assert etag == "W/\"datetime'" + etag[len("W/\"datetime'") : -2] + "'\""
        rejected(409, "EntityAlreadyExists", SERVICE.insert_entity, table, entity())


def test_update_replaces():
    with Table() as table:
        rejected(404, "ResourceNotFound", SERVICE.update_entity, table, entity())
        first = SERVICE.insert_entity(table, entity(a=1))
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.update_entity, table, entity(), if_match=STALE)
        rejected(400, "InvalidInput", SERVICE.update_entity, table, entity(), if_match="banana")
        second = SERVICE.update_entity(table, entity(b=2), if_match=first)
        assert contents(table) == {"r": {"b": 2}}
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.update_entity, table, entity(), if_match=first)
        assert SERVICE.update_entity(table, entity(c=3)) > second > first
        assert contents(table) == {"r": {"c": 3}}


def test_merge_keeps_what_is_not_named():
    with Table() as table:
        rejected(404, "ResourceNotFound", SERVICE.merge_entity, table, entity())
        first = SERVICE.insert_entity(table, entity(a=1, b=1))
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.merge_entity, table, entity(), if_match=STALE)
        second = SERVICE.merge_entity(table, entity(b="changed", c=None), if_match=first)
        assert contents(table) == {"r": {"a": 1, "b": "changed"}}
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.merge_entity, table, entity(), if_match=first)
        assert SERVICE.merge_entity(table, entity(c=3)) > second > first
        assert contents(table) == {"r": {"a": 1, "b": "changed", "c": 3}}


def test_upserts_need_no_entity():
    with Table() as table:
        for row, write, after in [
            ("merge", SERVICE.insert_or_merge_entity, {"a": 1, "b": 2}),
            ("replace", SERVICE.insert_or_replace_entity, {"b": 2}),
        ]:
            first = write(table, entity(row, a=1))
            assert contents(table)[row] == {"a": 1}
            assert write(table, entity(row, b=2)) > first
            assert contents(table)[row] == after


def test_delete_obeys_its_condition():
    with Table() as table:
        rejected(404, "ResourceNotFound", SERVICE.delete_entity, table, "p", "r")
        etag = SERVICE.insert_entity(table, entity())
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.delete_entity, table, "p", "r", if_match=STALE)
        SERVICE.delete_entity(table, "p", "r", if_match=etag)
        SERVICE.insert_entity(table, entity())
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.delete_entity, table, "p", "r", if_match=etag)
        SERVICE.delete_entity(table, "p", "r")
        rejected(404, "ResourceNotFound", SERVICE.get_entity, table, "p", "r")


def filled(table):
    for partition in "ab":
        with SERVICE.batch(table) as batch:
            for n in range(5):
                more = {"note": f"it's {n}"} if n % 2 else {}
                batch.insert_entity(
                    entity(
                        f"r{n}",
                        partition,
                        n=EntityProperty(EdmType.INT32, n),
                        big=2**40 + n,
                        half=n / 2,
                        at=datetime(2024, 1, 1 + n),
                        flag=n > 2,
                        **more,
                    )
                )


def test_queries_filter():
    with Table() as table:
        filled(table)
        for condition, expected in [
            ("RowKey eq 'r3'", [3]),
            ("n gt 2", [3, 4]),
            ("n ge 1 and n lt 3", [1, 2]),
            ("big eq 1099511627778L", [2]),
            ("half le 0.5", [0, 1]),
            ("at lt datetime'2024-01-03T00:00:00Z'", [0, 1]),
            ("flag eq true", [3, 4]),
            ("not (note eq 'it''s 1')", [0, 2, 3, 4]),
            ("note eq 'it''s 1'", [1]),
            ("n eq 0 or (n eq 1 or RowKey eq 'r4')", [0, 1, 4]),
            ("absent eq 1", []),
        ]:
            found = [properties(each)["n"] for each in SERVICE.query_entities(table, filter=condition)]
            assert found == expected * 2, condition
            inside = f"PartitionKey eq 'b' and ({condition})"
            found = [properties(each)["n"] for each in SERVICE.query_entities(table, filter=inside)]
            assert found == expected, inside
        rejected(400, "InvalidInput", SERVICE.query_entities, table, filter="aaa bbb ccc")
        rejected(501, "NotImplemented", SERVICE.query_entities, table, filter="startswith(RowKey,'r')")


def test_queries_select():
    with Table() as table:
        filled(table)
        found = list(SERVICE.query_entities(table, filter="PartitionKey eq 'a' and n lt 2", select="RowKey,note"))
        assert [dict(each, etag=None) for each in found] == [
            {"RowKey": "r0", "note": None, "etag": None},
            {"RowKey": "r1", "note": "it's 1", "etag": None},
        ]
        one = SERVICE.get_entity(table, "a", "r1", select="note,absent")
        assert properties(one) == {"note": "it's 1", "absent": None}


def test_queries_page_by_their_continuation():
    with Table() as table:
        filled(table)
        found, sizes, marker = [], [], None
        while True:
            page = SERVICE.query_entities(table, num_results=3, marker=marker)
            rows = [each.PartitionKey + each.RowKey for each in page]
            found += rows
            sizes.append(len(rows))
            marker = page.next_marker
            if not marker:
                break
        assert sizes == [3, 3, 3, 1]
        assert found == [f"{partition}r{n}" for partition in "ab" for n in range(5)]
        rejected(400, "InvalidInput", SERVICE.query_entities, table, num_results=1001)


def test_queries_go_on_after_a_thousand_entities():
    with Table() as table:
        for start in range(0, 1100, 100):
            with SERVICE.batch(table) as batch:
                for n in range(start, start + 100):
                    batch.insert_entity(entity(f"{n:05}"))
        everything = SERVICE.query_entities(table)
        if not FOLLOWS_PATHS:
            rejected(404, "ResourceNotFound", list, everything)
            everything = SERVICE.query_entities(table, num_results=1000)
            everything = [*everything, *SERVICE.query_entities(table, marker=everything.next_marker)]
        assert [each.RowKey for each in everything] == [f"{n:05}" for n in range(1100)]


def test_the_three_metadata_levels():
    with Table() as table:
        SERVICE.insert_entity(table, entity(big=2**40, at=datetime(2024, 2, 29)))
        for accept in (TablePayloadFormat.JSON_MINIMAL_METADATA, TablePayloadFormat.JSON_FULL_METADATA):
            found = SERVICE.get_entity(table, "p", "r", accept=accept)
            assert found.big == 2**40
            assert found.at == datetime(2024, 2, 29, tzinfo=found.at.tzinfo)
            assert found.at.utcoffset() == timedelta()
        types = {"big": EdmType.INT64, "at": EdmType.DATETIME}
        bare = TablePayloadFormat.JSON_NO_METADATA
        assert SERVICE.get_entity(table, "p", "r", accept=bare).big == str(2**40)
        resolve = lambda partition, row, name, value, kind: types[name]  # noqa: E731
        found = SERVICE.get_entity(table, "p", "r", accept=bare, property_resolver=resolve)
        assert found.big == 2**40


def test_a_batch_of_every_kind():
    with Table() as table:
        etags = {row: SERVICE.insert_entity(table, entity(row, a=1)) for row in "123456"}
        batch = TableBatch()
        batch.insert_entity(entity("new", b=2))
        batch.insert_or_merge_entity(entity("upserted", b=2))
        batch.insert_or_merge_entity(entity("1", b=2))
        batch.insert_or_replace_entity(entity("2", b=2))
        batch.merge_entity(entity("3", b=2))
        batch.update_entity(entity("4", b=2))
        batch.merge_entity(entity("5", b=2), if_match=etags["5"])
        batch.delete_entity("p", "6", if_match=etags["6"])
        answers = SERVICE.commit_batch(table, batch)
        after = {row: {"b": 2} for row in ("new", "upserted", "2", "4")}
        assert contents(table) == {**after, **{row: {"a": 1, "b": 2} for row in "135"}}
        stored = {each.RowKey: each.etag for each in SERVICE.query_entities(table)}
        assert answers == [*(stored[row] for row in ["new", "upserted", "1", "2", "3", "4", "5"]), None]


def batch_fails(table, batch, status, code, index):
    before = contents(table)
    try:
        SERVICE.commit_batch(table, batch)
    except AzureBatchOperationError as error:
        assert (error.status_code, error.code) == (status, code), (error.status_code, error.code, str(error))
        assert str(error).startswith(f"{index}:"), str(error)
    else:
        raise AssertionError(f"the batch was not rejected with {status} {code}")
    assert contents(table) == before


def test_a_batch_fails_whole_and_says_where():
    with Table() as table:
        for row in "12":
            SERVICE.insert_entity(table, entity(row, a=1))
        for status, code, last in [
            (409, "EntityAlreadyExists", lambda batch: batch.insert_entity(entity("2"))),
            (404, "ResourceNotFound", lambda batch: batch.update_entity(entity("absent"))),
            (404, "ResourceNotFound", lambda batch: batch.delete_entity("p", "absent")),
            (412, "UpdateConditionNotSatisfied", lambda batch: batch.merge_entity(entity("2"), if_match=STALE)),
            (412, "UpdateConditionNotSatisfied", lambda batch: batch.delete_entity("p", "2", if_match=STALE)),
            (400, "PropertyValueTooLarge", lambda batch: batch.insert_entity(entity("3", a="x" * 32_769))),
        ]:
            batch = TableBatch()
            batch.delete_entity("p", "1")
            batch.insert_entity(entity("new"))
            last(batch)
            batch_fails(table, batch, status, code, 2)
    missing = TableBatch()
    missing.insert_entity(entity("1"))
    try:
        SERVICE.commit_batch(unique_name(), missing)
    except AzureBatchOperationError as error:
        assert (error.status_code, error.code) == (404, "TableNotFound")
    else:
        raise AssertionError("a batch on a missing table was not rejected")


def test_a_batch_of_a_hundred():
    with Table() as table:
        rows = [f"{n:02}" for n in reversed(range(100))]
        batch = TableBatch()
        for row in rows:
            batch.insert_entity(entity(row))
        answers = SERVICE.commit_batch(table, batch)
        stored = {each.RowKey: each.etag for each in SERVICE.query_entities(table)}
        assert answers == [stored[row] for row in rows]


def test_the_sdk_itself_rejects_mixed_batches():
    for second in (entity("2", "q"), entity("1")):
        batch = TableBatch()
        batch.insert_entity(entity("1"))
        try:
            batch.insert_entity(second)
        except AzureBatchValidationError:
            continue
        raise AssertionError(second)


if __name__ == "__main__":
    run(sys.modules["__main__"])
