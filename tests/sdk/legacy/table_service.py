"""`TableService` of the SDKs between 2016 and 2020, which speak JSON: azure-storage 0.3x and azure-cosmosdb-table.

They differ in where their modules are and in three faults of the older ones, named by constants below. A case shows
each fault, so that it is known for the SDK's.
"""

import sys
from datetime import UTC, datetime, timedelta

from azure.common import AzureConflictHttpError, AzureException, AzureHttpError, AzureMissingResourceHttpError
from cases import CONNECTION_STRING, fields, run, unique_name

try:
    from azure.cosmosdb.table import (
        EdmType,
        EntityProperty,
        TableBatch,
        TablePayloadFormat,
        TablePermissions,
        TableService,
    )
    from azure.cosmosdb.table.common import models
    from azure.cosmosdb.table.models import AzureBatchOperationError, AzureBatchValidationError, Entity

    VERSION = "1.0"
except ImportError:
    from azure.storage import __version__ as VERSION  # noqa: N812
    from azure.storage import models
    from azure.storage.table import (
        AzureBatchOperationError,
        AzureBatchValidationError,
        EdmType,
        Entity,
        EntityProperty,
        TableBatch,
        TablePayloadFormat,
        TablePermissions,
        TableService,
    )

ESCAPES_QUOTES = VERSION == "1.0"
"""Doubles the quotes of a key in addresses. Without, the caller has to."""
FOLLOWS_PATHS = VERSION == "1.0"
"""Asks for the second page of a listing where it asked for the first. Without, the account is lost out of a path-style
address, whatever the server; asking for each page anew works."""
SENDS_EMPTY_KEYS = VERSION >= "0.36"

STALE = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\""
SOON = datetime.now(UTC).replace(tzinfo=None, microsecond=0) + timedelta(hours=1)
PAST = SOON - timedelta(hours=2)
ENDPOINT = fields()["TableEndpoint"].rstrip("/")
EVERYTHING = TablePermissions(query=True, add=True, update=True, delete=True)
METADATA = ("PartitionKey", "RowKey", "Timestamp", "etag")


def connect(connection_string=CONNECTION_STRING):
    """A service that never retries."""
    service = TableService(connection_string=connection_string)
    service.retry = lambda context: None
    return service


def grant(sas):
    """A service that holds nothing but a SAS."""
    return connect(f"TableEndpoint={ENDPOINT};SharedAccessSignature={sas}")


SERVICE = connect()


class Table:
    """A table of its own for one case."""

    def __enter__(self):
        self.name = unique_name()
        assert SERVICE.create_table(self.name) is True
        return self.name

    def __exit__(self, *failure):
        assert SERVICE.delete_table(self.name) is True


def entity(row="r", partition="p", **properties):
    return dict(properties, PartitionKey=partition, RowKey=row)


def properties(found):
    """What the user stored: neither keys nor metadata, and integers without their wrapper."""
    plain = lambda value: value.value if isinstance(value, EntityProperty) else value  # noqa: E731
    return {name: plain(value) for name, value in found.items() if name not in METADATA}


def contents(table):
    return {found.RowKey: properties(found) for found in SERVICE.query_entities(table)}


def rejected(status, code, act, *arguments, **keywords):
    """Expect the SDK's exception for a status, with the service's code in its text."""
    kinds = {404: AzureMissingResourceHttpError, 409: AzureConflictHttpError}
    try:
        act(*arguments, **keywords)
    except AzureHttpError as error:
        assert type(error) is kinds.get(status, AzureHttpError), type(error)
        assert error.status_code == status, (error.status_code, str(error))
        assert code in str(error), str(error)
        return
    raise AssertionError(f"not rejected with {status} {code}")


def own_rejection(act, *arguments):
    """Expect that the SDK rejects by itself."""
    try:
        act(*arguments)
    except ValueError:
        return
    raise AssertionError("the SDK did not reject")


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


GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"


def typed(kind, value):
    return EntityProperty(kind, value)


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


def test_a_table_sas_permits_what_it_says():
    with Table() as table:
        SERVICE.insert_entity(table, entity())
        acts = {
            "query": lambda service: (service.get_entity(table, "p", "r"), list(service.query_entities(table))),
            "add": lambda service: service.insert_entity(table, entity("added")),
            "update": lambda service: (
                service.update_entity(table, entity()),
                service.merge_entity(table, entity()),
            ),
            "delete": lambda service: service.delete_entity(table, "p", "added"),
        }
        for permission in acts:
            sas = SERVICE.generate_table_shared_access_signature(table, TablePermissions(**{permission: True}), SOON)
            for needed, act in acts.items():
                if needed == permission:
                    act(grant(sas))
                else:
                    rejected(403, "AuthorizationPermissionMismatch", act, grant(sas))


def test_a_table_sas_in_a_batch():
    with Table() as table:
        batch = TableBatch()
        batch.insert_entity(entity("1"))
        batch.insert_or_replace_entity(entity("2"))
        only_add = SERVICE.generate_table_shared_access_signature(table, TablePermissions(add=True), SOON)
        rejected(403, "AuthorizationPermissionMismatch", grant(only_add).commit_batch, table, batch)
        assert contents(table) == {}
        batch = TableBatch()
        batch.insert_entity(entity("1"))
        batch.insert_or_replace_entity(entity("2"))
        sas = SERVICE.generate_table_shared_access_signature(table, EVERYTHING, SOON)
        assert len(grant(sas).commit_batch(table, batch)) == 2


def test_a_table_sas_of_a_key_range():
    with Table() as table:
        for partition in "abcd":
            with SERVICE.batch(table) as batch:
                for row in "012":
                    batch.insert_entity(entity(row, partition))
        sas = SERVICE.generate_table_shared_access_signature(
            table, EVERYTHING, SOON, start_pk="b", start_rk="1", end_pk="c", end_rk="1"
        )
        bounded = grant(sas)
        found = [each.PartitionKey + each.RowKey for each in bounded.query_entities(table)]
        assert found == ["b1", "b2", "c0", "c1"]
        for inside in found:
            bounded.update_entity(table, entity(inside[1], inside[0]))
        for outside in ("a2", "b0", "c2", "d0"):
            rejected(403, "AuthorizationFailure", bounded.get_entity, table, outside[0], outside[1])
            rejected(403, "AuthorizationFailure", bounded.update_entity, table, entity(outside[1], outside[0]))


def test_a_sas_of_times_address_and_protocol():
    with Table() as table:

        def read(**terms):
            terms = {"expiry": SOON, **terms}
            sas = SERVICE.generate_table_shared_access_signature(table, TablePermissions(query=True), **terms)
            return list(grant(sas).query_entities(table))

        assert read(start=PAST, ip="127.0.0.0-127.0.0.9", protocol="https,http") == []
        rejected(403, "AuthenticationFailed", read, expiry=PAST)
        rejected(403, "AuthenticationFailed", read, start=SOON, expiry=SOON + timedelta(hours=1))
        rejected(403, "AuthorizationSourceIPMismatch", read, ip="192.0.2.1")
        rejected(403, "AuthorizationProtocolMismatch", read, protocol="https")


def test_a_stored_policy_grants_and_revokes():
    with Table() as table:
        service = grant(SERVICE.generate_table_shared_access_signature(table, id="reader"))
        read = lambda: list(service.query_entities(table))  # noqa: E731
        rejected(403, "AuthenticationFailed", read)
        SERVICE.set_table_acl(table, {"reader": models.AccessPolicy(TablePermissions(query=True), SOON)})
        assert read() == []
        rejected(403, "AuthorizationPermissionMismatch", service.insert_entity, table, entity())
        SERVICE.set_table_acl(table, {})
        rejected(403, "AuthenticationFailed", read)


def test_access_policies_are_kept():
    with Table() as table:
        assert dict(SERVICE.get_table_acl(table)) == {}
        SERVICE.set_table_acl(
            table,
            {
                "whole": models.AccessPolicy(EVERYTHING, SOON, PAST),
                "partial": models.AccessPolicy(permission=TablePermissions(query=True)),
                "empty": models.AccessPolicy(),
            },
        )
        kept = SERVICE.get_table_acl(table)
        assert {name: policy.permission for name, policy in kept.items()} == {
            "whole": "raud",
            "partial": "r",
            "empty": kept["empty"].permission,
        }
        times = (kept["whole"].start, kept["whole"].expiry)
        assert tuple(time.replace(tzinfo=None) for time in times) == (PAST, SOON), times
        SERVICE.set_table_acl(table)
        assert dict(SERVICE.get_table_acl(table)) == {}
    rejected(404, "ResourceNotFound", SERVICE.get_table_acl, unique_name())


def test_an_account_sas():
    Types, Permissions = models.ResourceTypes, models.AccountPermissions  # noqa: N806
    whole = Types(service=True, container=True, object=True)
    broad = Permissions(read=True, write=True, delete=True, list=True, add=True, create=True, update=True)
    make = SERVICE.generate_account_shared_access_signature
    service = grant(make(whole, broad, SOON, start=PAST, protocol="https,http"))
    name = unique_name()
    assert service.create_table(name)
    assert name in [table.name for table in service.list_tables()]
    service.insert_entity(name, entity(a=1))
    service.merge_entity(name, entity(b=2))
    batch = TableBatch()
    batch.insert_or_replace_entity(entity("2"))
    service.commit_batch(name, batch)
    assert len(list(service.query_entities(name))) == 2
    service.get_table_service_properties()
    rejected(403, "AuthorizationFailure", service.get_table_acl, name)
    reader = grant(make(Types(object=True), Permissions(read=True), SOON))
    assert properties(reader.get_entity(name, "p", "r")) == {"a": 1, "b": 2}
    rejected(403, "AuthorizationPermissionMismatch", reader.delete_entity, name, "p", "r")
    rejected(403, "AuthorizationResourceTypeMismatch", reader.delete_table, name)
    rejected(403, "AuthenticationFailed", grant(make(whole, broad, PAST)).delete_table, name)
    assert service.delete_table(name)


def test_a_wrong_key():
    wrong = connect(CONNECTION_STRING.replace(fields()["AccountKey"], "YmFuYW5h"))
    rejected(403, "AuthenticationFailed", lambda: list(wrong.list_tables()))


def test_service_properties():
    before = SERVICE.get_table_service_properties()
    week = models.RetentionPolicy(True, 7)
    logging = models.Logging(delete=True, read=True, write=False, retention_policy=week)
    hours = models.Metrics(enabled=True, include_apis=True, retention_policy=week)
    rules = [
        models.CorsRule(["https://a.example", "https://b.example"], ["GET", "PUT"], 500, ["x-ms-*"], ["x-ms-meta-*"])
    ]
    try:
        SERVICE.set_table_service_properties(logging, hours, models.Metrics(enabled=False), rules)
        found = SERVICE.get_table_service_properties()
        assert (found.logging.delete, found.logging.read, found.logging.write) == (True, True, False)
        assert found.logging.retention_policy.days == 7
        assert (found.hour_metrics.enabled, found.hour_metrics.include_apis) == (True, True)
        assert found.minute_metrics.enabled is False
        (rule,) = found.cors
        assert sorted(rule.allowed_origins) == ["https://a.example", "https://b.example"]
        assert rule.allowed_methods == ["GET", "PUT"]
        assert (rule.max_age_in_seconds, rule.exposed_headers) == (500, ["x-ms-*"])
        # What is not named stays.
        SERVICE.set_table_service_properties(cors=[])
        found = SERVICE.get_table_service_properties()
        assert (found.cors, found.logging.retention_policy.days) == ([], 7)
        rejected(400, "InvalidXmlDocument", SERVICE.set_table_service_properties, cors=rules * 6)
    finally:
        SERVICE.set_table_service_properties(before.logging, before.hour_metrics, before.minute_metrics, before.cors)


def test_statistics_of_the_secondary():
    service = connect()
    service.secondary_endpoint = service.primary_endpoint + "-secondary"
    found = service.get_table_service_stats()
    assert found.geo_replication.status == "live"
    assert isinstance(found.geo_replication.last_sync_time, datetime)
    service.location_mode = models.LocationMode.SECONDARY
    assert isinstance(list(service.list_tables()), list)


def test_the_emulator_flag():
    """Its port is 10002 and cannot be changed, so that a proxy has to lead to the server: the server itself."""
    if fields()["AccountName"] != "devstoreaccount1":
        return
    host, port = ENDPOINT.split("/")[2].split(":")
    with Table() as table:
        service = TableService(is_emulated=True)
        service.retry = lambda context: None
        service.set_proxy(host, port)
        batch = TableBatch()
        batch.insert_entity(entity("1"))
        batch.insert_entity(entity("2"))
        assert len(service.commit_batch(table, batch)) == 2
        assert [each.RowKey for each in service.query_entities(table)] == ["1", "2"]
        sas = service.generate_table_shared_access_signature(table, TablePermissions(query=True), SOON)
        reader = TableService(is_emulated=True, sas_token=sas)
        reader.set_proxy(host, port)
        assert reader.get_entity(table, "p", "1").RowKey == "1"


def test_an_account_by_its_host_name():
    """The address of Azure, where each SDK follows its pages; a proxy leads to the server: the server itself."""
    host, port = ENDPOINT.split("/")[2].split(":")
    names = {"account_name": fields()["AccountName"], "protocol": "http", "endpoint_suffix": "localhost"}
    service = TableService(account_key=fields()["AccountKey"], **names)
    service.retry = lambda context: None
    service.set_proxy(host, port)
    with Table() as table:
        for start in range(0, 1100, 100):
            batch = TableBatch()
            for n in range(start, start + 100):
                batch.insert_entity(entity(f"{n:05}"))
            service.commit_batch(table, batch)
        assert [each.RowKey for each in service.query_entities(table)] == [f"{n:05}" for n in range(1100)]
        sas = service.generate_table_shared_access_signature(table, TablePermissions(query=True), SOON)
        reader = TableService(sas_token=sas, **names)
        reader.set_proxy(host, port)
        assert reader.get_entity(table, "p", "00007").RowKey == "00007"


def test_an_unreachable_server_is_the_sdks_own_exception():
    service = connect(CONNECTION_STRING.replace(ENDPOINT, "http://127.0.0.1:9/devstoreaccount1"))
    try:
        service.create_table(unique_name())
    except AzureException as error:
        assert not isinstance(error, AzureHttpError)
        return
    raise AssertionError("nobody listens there")


if __name__ == "__main__":
    run(sys.modules["__main__"])
