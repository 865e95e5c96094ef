"""`TableService` of azure-storage 0.20 (2015), which speaks Atom by version 2014-02-14.

It knows an account by its host name alone, save the emulator's. So the account is `NAME.table.localhost` here. Not
every resolver knows that this is the loopback (RFC 6761, 6.3); the one of this program does.
"""

import os
import socket
import sys
from datetime import UTC, datetime, timedelta
from unittest import mock

from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError
from azure.storage._http import HTTPError
from azure.storage.models import (
    AccessPolicy,
    AzureBatchOperationError,
    AzureBatchValidationError,
    SignedIdentifier,
    StorageServiceProperties,
)
from azure.storage.sharedaccesssignature import SharedAccessPolicy
from azure.storage.table import EntityProperty, TableService
from cases import fields, run, unique_name

STALE = "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\""
ENDPOINT = fields()["TableEndpoint"].rstrip("/")
PORT = ENDPOINT.split("/")[2].split(":")[1]
ACCOUNT, KEY = fields()["AccountName"], fields()["AccountKey"]
METADATA = ("PartitionKey", "RowKey", "Timestamp", "etag", "id", "updated")


def loopback(host, *arguments, resolve=socket.getaddrinfo, **keywords):
    """Resolve a name as `socket.getaddrinfo` does, and each under `localhost` as it has to be."""
    return resolve("127.0.0.1" if host.endswith(".localhost") else host, *arguments, **keywords)


def connect(account_key=KEY, **keywords):
    """A service by host name."""
    return TableService(ACCOUNT, account_key, "http", f".table.localhost:{PORT}", **keywords)


socket.getaddrinfo = loopback
SERVICE = connect()


def instant(hours):
    """A time from now, as this SDK wants it."""
    return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def policy(permission="", expiry="", **bounds):
    return AccessPolicy(permission=permission, expiry=expiry, **bounds)


def grant(table, **terms):
    """A service that holds nothing but a SAS."""
    sas = SERVICE.generate_shared_access_signature(table, SharedAccessPolicy(policy(**{"expiry": instant(1), **terms})))
    return connect(None, sas_token=sas)


class Table:
    """A table of its own for one case."""

    def __enter__(self):
        self.name = unique_name()
        assert SERVICE.create_table(self.name) is True
        return self.name

    def __exit__(self, *failure):
        SERVICE.cancel_batch()
        assert SERVICE.delete_table(self.name) is True


def entity(row="r", partition="p", **properties):
    return dict(properties, PartitionKey=partition, RowKey=row)


def properties(found):
    """What the user stored, neither keys nor metadata."""
    return {name: value for name, value in vars(found).items() if name not in METADATA}


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
        assert f"code>{code}<" in str(error), str(error)
        return
    raise AssertionError(f"not rejected with {status} {code}")


def test_tables_are_created_found_and_deleted():
    name = unique_name()
    assert SERVICE.create_table(name) is True
    assert SERVICE.create_table(name) is False
    assert [table.name for table in SERVICE.query_tables(name)] == [name]
    rejected(409, "TableAlreadyExists", SERVICE.create_table, name, fail_on_exist=True)
    assert SERVICE.delete_table(name) is True
    assert SERVICE.delete_table(name) is False
    rejected(404, "ResourceNotFound", SERVICE.query_tables, name)
    rejected(404, "ResourceNotFound", SERVICE.delete_table, name, fail_not_exist=True)
    rejected(400, "InvalidResourceName", SERVICE.create_table, "bad-name")


def test_tables_are_listed_page_by_page():
    prefix = unique_name()[:24]
    names = [prefix + letter for letter in "abcde"]
    for name in names:
        SERVICE.create_table(name)
    try:
        found, following = [], None
        while True:
            page = SERVICE.query_tables(top=2, next_table_name=following)
            found += [table.name for table in page]
            following = getattr(page, "x_ms_continuation", {}).get("nexttablename")
            if not following:
                break
        assert [name for name in found if name.startswith(prefix)] == names
        assert len(found) == len(set(found))
    finally:
        for name in names:
            SERVICE.delete_table(name)


def test_an_entity_is_inserted_once():
    with Table() as table:
        made = SERVICE.insert_entity(table, entity(a=1, b="two"))
        found = SERVICE.get_entity(table, "p", "r")
        assert properties(found) == properties(made) == {"a": 1, "b": "two"}
        assert found.etag == made.etag
        assert found.Timestamp == made.Timestamp
        rejected(409, "EntityAlreadyExists", SERVICE.insert_entity, table, entity())


def test_writes_obey_their_condition():
    for write, after in [(SERVICE.update_entity, {"b": 2}), (SERVICE.merge_entity, {"a": 1, "b": 2})]:
        with Table() as table:
            rejected(404, "ResourceNotFound", write, table, "p", "r", entity())
            first = SERVICE.insert_entity(table, entity(a=1)).etag
            rejected(412, "UpdateConditionNotSatisfied", write, table, "p", "r", entity(), if_match=STALE)
            rejected(400, "InvalidInput", write, table, "p", "r", entity(), if_match="banana")
            second = write(table, "p", "r", entity(b=2), if_match=first)["etag"]
            assert contents(table) == {"r": after}
            rejected(412, "UpdateConditionNotSatisfied", write, table, "p", "r", entity(), if_match=first)
            assert write(table, "p", "r", entity(b=3))["etag"] > second > first
            assert contents(table) == {"r": {**after, "b": 3}}


def test_upserts_need_no_entity():
    for write, after in [
        (SERVICE.insert_or_merge_entity, {"a": 1, "b": 2}),
        (SERVICE.insert_or_replace_entity, {"b": 2}),
    ]:
        with Table() as table:
            first = write(table, "p", "r", entity(a=1))["etag"]
            assert contents(table) == {"r": {"a": 1}}
            assert write(table, "p", "r", entity(b=2))["etag"] > first
            assert contents(table) == {"r": after}


def test_delete_obeys_its_condition():
    with Table() as table:
        rejected(404, "ResourceNotFound", SERVICE.delete_entity, table, "p", "r")
        etag = SERVICE.insert_entity(table, entity()).etag
        rejected(412, "UpdateConditionNotSatisfied", SERVICE.delete_entity, table, "p", "r", if_match=STALE)
        SERVICE.delete_entity(table, "p", "r", if_match=etag)
        SERVICE.insert_entity(table, entity())
        SERVICE.delete_entity(table, "p", "r")
        rejected(404, "ResourceNotFound", SERVICE.get_entity, table, "p", "r")


def filled(table):
    for partition in "ab":
        SERVICE.begin_batch()
        for n in range(5):
            note = {"note": f"it's {n}"} if n % 2 else {}
            many = {"n": n, "big": 2**40 + n, "half": n / 2, "at": datetime(2024, 1, 1 + n), "flag": n > 2}
            SERVICE.insert_entity(table, entity(f"r{n}", partition, **many, **note))
        SERVICE.commit_batch()


def test_queries_filter():
    with Table() as table:
        filled(table)
        for condition, expected in [
            ("RowKey eq 'r3'", [3]),
            ("n gt 2", [3, 4]),
            ("big eq 1099511627778L", [2]),
            ("half le 0.5", [0, 1]),
            ("at lt datetime'2024-01-03T00:00:00Z'", [0, 1]),
            ("flag eq true", [3, 4]),
            ("note eq 'it''s 1'", [1]),
            ("not (note eq 'it''s 1')", [0, 2, 3, 4]),
            ("absent eq 1", []),
        ]:
            assert [each.n for each in SERVICE.query_entities(table, condition)] == expected * 2, condition
        rejected(400, "InvalidInput", SERVICE.query_entities, table, "aaa bbb ccc")


def test_queries_select():
    with Table() as table:
        filled(table)
        found = SERVICE.query_entities(table, "PartitionKey eq 'a' and n lt 2", "RowKey,note")
        assert [(each.RowKey, getattr(each, "note", None)) for each in found] == [("r0", None), ("r1", "it's 1")]
        assert not hasattr(found[0], "PartitionKey")
        assert properties(SERVICE.get_entity(table, "a", "r1", "note,absent")) == {"note": "it's 1"}


def test_queries_page_by_their_continuation():
    with Table() as table:
        filled(table)
        found, sizes, following = [], [], {}
        while True:
            page = SERVICE.query_entities(
                table,
                top=3,
                next_partition_key=following.get("nextpartitionkey"),
                next_row_key=following.get("nextrowkey"),
            )
            found += [each.PartitionKey + each.RowKey for each in page]
            sizes.append(len(page))
            following = getattr(page, "x_ms_continuation", None)
            if not following:
                break
        assert sizes == [3, 3, 3, 1]
        assert found == [f"{partition}r{n}" for partition in "ab" for n in range(5)]


GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
SAMPLES = {
    "string": "text",
    "empty": "",
    "blank": " \t\n ",
    "unicode": "zażółć 中文 \u2028 \ufeff 😀",
    "quotes": 'it\'s "quoted" \\ {json} <xml/> %27 &amp; ]]>',
    "like_a_date": "2020-01-01T00:00:00Z",
    "longest": "x" * 32_768,
    "true": True,
    "false": False,
    "int32": -(2**31),
    "int64": 2**63 - 1,
    "int64_least": -(2**63),
    "double": 0.1,
    "double_integral": 4.0,
    "double_large": 1.7976931348623157e308,
    "date": datetime(2024, 2, 29, 23, 59, 59),
    "date_least": datetime(1601, 1, 1),
    "guid": EntityProperty("Edm.Guid", GUID),
    "binary": EntityProperty("Edm.Binary", bytes(range(256))),
}


def test_every_type_is_read_as_it_was_written():
    with Table() as table:
        special = {"nan": EntityProperty("Edm.Double", "NaN"), "infinity": EntityProperty("Edm.Double", "INF")}
        SERVICE.insert_entity(table, entity(none=None, **special, **SAMPLES))
        for found in (SERVICE.get_entity(table, "p", "r"), *SERVICE.query_entities(table)):
            assert found.nan != found.nan
            assert found.infinity == float("inf")
            assert not hasattr(found, "none")
            for name, sent in SAMPLES.items():
                read = getattr(found, name)
                if isinstance(sent, EntityProperty):
                    assert (read.type, read.value) == (sent.type, sent.value), name
                elif isinstance(sent, datetime):
                    assert (read.replace(tzinfo=None), read.utcoffset()) == (sent, timedelta()), name
                else:
                    assert (type(read), read) == (type(sent), sent), name


KEYS = ["", "simple", "100%", "%25", "%27", "a%20b", " blanks around ", "a+b", "a&b=c", "(a)", 'say "hi"', "<xml>&amp;"]
KEYS += ["a;b:c@d!$*~", "{json}[0]", "|^`", "zażółć", "中文", "😀", "O'Neil", "''", "k" * 512]


def test_keys_of_every_kind():
    for key in KEYS:
        with Table() as table:
            quoted = key.replace("'", "''")  # The caller has to, as the SDK does not.
            SERVICE.insert_entity(table, entity(key, key, n=0))
            SERVICE.merge_entity(table, quoted, quoted, entity(key, key, m=1))
            SERVICE.update_entity(table, quoted, quoted, entity(key, key, n=2))
            SERVICE.insert_or_merge_entity(table, quoted, quoted, entity(key, key, m=3))
            assert properties(SERVICE.get_entity(table, quoted, quoted)) == {"n": 2, "m": 3}, key
            (found,) = SERVICE.query_entities(table, f"PartitionKey eq '{quoted}' and RowKey eq '{quoted}'")
            assert (found.PartitionKey, found.RowKey) == (key, key)
            SERVICE.delete_entity(table, quoted, quoted)
            assert contents(table) == {}


def test_limits_are_the_services():
    with Table() as table:
        for rejection, sent in [
            ("OutOfRangeInput", entity("a/b")),
            ("PropertiesNeedValue", {"PartitionKey": "p"}),
            ("PropertyNameInvalid", entity(**{"a-b": 1})),
            ("PropertyNameTooLong", entity(**{"x" * 256: 1})),
            ("PropertyValueTooLarge", entity(a="x" * 32_769)),
            ("TooManyProperties", entity(**{f"p{n}": 1 for n in range(253)})),
            ("InvalidInput", entity(a=EntityProperty("Edm.Guid", "banana"))),
        ]:
            rejected(400, rejection, SERVICE.insert_entity, table, sent)
        assert contents(table) == {}


def test_a_missing_table():
    for act in [
        lambda table: SERVICE.insert_entity(table, entity()),
        lambda table: SERVICE.update_entity(table, "p", "r", entity()),
        lambda table: SERVICE.insert_or_merge_entity(table, "p", "r", entity()),
        lambda table: SERVICE.get_entity(table, "p", "r"),
        lambda table: SERVICE.delete_entity(table, "p", "r"),
        SERVICE.query_entities,
    ]:
        rejected(404, "TableNotFound", act, unique_name())


def test_a_batch_of_every_kind():
    with Table() as table:
        etags = {row: SERVICE.insert_entity(table, entity(row, a=1)).etag for row in "123456"}
        SERVICE.begin_batch()
        SERVICE.insert_entity(table, entity("new", b=2))
        SERVICE.insert_or_merge_entity(table, "p", "upserted", entity("upserted", b=2))
        SERVICE.insert_or_merge_entity(table, "p", "1", entity("1", b=2))
        SERVICE.insert_or_replace_entity(table, "p", "2", entity("2", b=2))
        SERVICE.merge_entity(table, "p", "3", entity("3", b=2))
        SERVICE.update_entity(table, "p", "4", entity("4", b=2))
        SERVICE.merge_entity(table, "p", "5", entity("5", b=2), if_match=etags["5"])
        SERVICE.delete_entity(table, "p", "6", if_match=etags["6"])
        SERVICE.commit_batch()
        after = {row: {"b": 2} for row in ("new", "upserted", "2", "4")}
        assert contents(table) == {**after, **{row: {"a": 1, "b": 2} for row in "135"}}


def test_a_batch_fails_whole_and_says_where():
    with Table() as table:
        for row in "12":
            SERVICE.insert_entity(table, entity(row, a=1))
        before = contents(table)
        for status, code, last in [
            (409, "EntityAlreadyExists", lambda: SERVICE.insert_entity(table, entity("2"))),
            (404, "ResourceNotFound", lambda: SERVICE.update_entity(table, "p", "absent", entity("absent"))),
            (404, "ResourceNotFound", lambda: SERVICE.delete_entity(table, "p", "absent")),
            (412, "UpdateConditionNotSatisfied", lambda: SERVICE.delete_entity(table, "p", "2", if_match=STALE)),
            (400, "PropertyValueTooLarge", lambda: SERVICE.insert_entity(table, entity("3", a="x" * 32_769))),
        ]:
            SERVICE.begin_batch()
            SERVICE.delete_entity(table, "p", "1")
            SERVICE.insert_entity(table, entity("new"))
            last()
            try:
                SERVICE.commit_batch()
            except AzureBatchOperationError as error:
                assert (error.status_code, error.code) == (status, code), (error.status_code, error.code, str(error))
                assert str(error).startswith("2:"), str(error)
            else:
                raise AssertionError(f"the batch was not rejected with {status} {code}")
            assert contents(table) == before


def test_the_sdk_itself_rejects_mixed_batches():
    for second in (entity("2", "q"), entity("1")):
        SERVICE.begin_batch()
        SERVICE.insert_entity("anything", entity("1"))
        try:
            SERVICE.insert_entity("anything", second)
        except AzureBatchValidationError:
            continue
        finally:
            SERVICE.cancel_batch()
        raise AssertionError(second)


def test_a_table_sas_permits_what_it_says():
    with Table() as table:
        SERVICE.insert_entity(table, entity())
        acts = {
            "r": lambda service: (service.get_entity(table, "p", "r"), service.query_entities(table)),
            "a": lambda service: service.insert_entity(table, entity("added")),
            "u": lambda service: service.update_entity(table, "p", "r", entity()),
            "d": lambda service: service.delete_entity(table, "p", "added"),
        }
        for permission in acts:
            for needed, act in acts.items():
                if needed == permission:
                    act(grant(table, permission=permission))
                else:
                    # Its version is from before there was a code for this.
                    rejected(404, "ResourceNotFound", act, grant(table, permission=permission))
        rejected(403, "AuthenticationFailed", acts["r"], grant(table, permission="r", expiry=instant(-1)))


def test_a_table_sas_in_a_batch():
    with Table() as table:
        service = grant(table, permission="raud")
        service.begin_batch()
        service.insert_entity(table, entity("1"))
        service.insert_or_replace_entity(table, "p", "2", entity("2"))
        service.commit_batch()
        assert list(contents(table)) == ["1", "2"]


def test_a_table_sas_of_a_key_range():
    with Table() as table:
        for partition in "abcd":
            for row in "012":
                SERVICE.insert_entity(table, entity(row, partition))
        bounded = grant(table, permission="raud", start_pk="b", start_rk="1", end_pk="c", end_rk="1")
        found = [each.PartitionKey + each.RowKey for each in bounded.query_entities(table)]
        assert found == ["b1", "b2", "c0", "c1"]
        bounded.update_entity(table, "b", "1", entity("1", "b"))
        rejected(404, "ResourceNotFound", bounded.update_entity, table, "b", "0", entity("0", "b"))


def test_a_stored_policy_grants_and_revokes():
    with Table() as table:
        sas = SERVICE.generate_shared_access_signature(table, SharedAccessPolicy(signed_identifier="reader"))
        service = connect(None, sas_token=sas)
        rejected(403, "AuthenticationFailed", service.query_entities, table)
        reader = SignedIdentifier()
        reader.id = "reader"
        reader.access_policy = policy("r", instant(1))
        SERVICE.set_table_acl(table, [reader])
        assert list(service.query_entities(table)) == []
        (kept,) = SERVICE.get_table_acl(table).signed_identifiers
        assert (kept.id, kept.access_policy.permission) == ("reader", "r")
        assert kept.access_policy.expiry[:19] == reader.access_policy.expiry[:19]
        SERVICE.set_table_acl(table, [])
        rejected(403, "AuthenticationFailed", service.query_entities, table)
        assert list(SERVICE.get_table_acl(table).signed_identifiers) == []


def test_a_wrong_key():
    rejected(403, "AuthenticationFailed", connect("YmFuYW5h").query_tables)


def test_service_properties():
    before = SERVICE.get_table_service_properties()
    wanted = StorageServiceProperties()
    wanted.logging.delete = wanted.hour_metrics.enabled = wanted.hour_metrics.include_apis = True
    wanted.logging.retention_policy.enabled, wanted.logging.retention_policy.days = True, 7
    try:
        SERVICE.set_table_service_properties(wanted)
        found = SERVICE.get_table_service_properties()
        assert (found.logging.delete, found.logging.read, found.logging.retention_policy.days) == (True, False, 7)
        assert (found.hour_metrics.enabled, found.hour_metrics.include_apis) == (True, "true")
        assert found.minute_metrics.enabled is False
    finally:
        SERVICE.set_table_service_properties(before)


def test_the_emulator_flag():
    """The one account that it finds by its path. Batches it sends to a path without an account, on no server's."""
    if ACCOUNT != "devstoreaccount1":
        return
    with mock.patch.dict(os.environ, {"EMULATED": "true"}), Table() as table:
        service = TableService(dev_host=ENDPOINT.split("/")[2])
        service.insert_entity(table, entity("it's", a=1))
        service.merge_entity(table, "p", "it''s", entity("it's", b=2))
        assert properties(service.get_entity(table, "p", "it''s")) == {"a": 1, "b": 2}
        service.begin_batch()
        service.insert_entity(table, entity("2"))
        try:
            service.commit_batch()
        except HTTPError as error:
            assert error.status == 404
        else:
            raise AssertionError("a batch found its account")


if __name__ == "__main__":
    run(sys.modules["__main__"])
