"""`TableService` with SAS and stored policies, the service's properties, and other addresses."""

import sys
from datetime import datetime, timedelta

from azure.common import AzureException, AzureHttpError
from cases import CONNECTION_STRING, fields, run, unique_name
from rejections import rejected
from table_sdk import (
    ENDPOINT,
    EVERYTHING,
    PAST,
    SERVICE,
    SOON,
    Table,
    TableBatch,
    TablePermissions,
    TableService,
    connect,
    contents,
    entity,
    grant,
    models,
    properties,
)


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
