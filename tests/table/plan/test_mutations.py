"""Whatever a plan settles is looked for again as soon as it changes: one test for each thing."""

import base64
import hashlib

import pytest

from lazulite.auth.accounts.document import StoredAccount
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.table.model.row import LARGE_BYTES

from .world import ENTITY, HEAD, JSON, KEYS, NAME, NOW, Answer, World

CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods>"
    b"<AllowedOrigins>http://%b</AllowedOrigins><AllowedHeaders/><ExposedHeaders>x-ms-*</ExposedHeaders>"
    b"<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>"
)
LETTERS = (
    b"<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>"
    b"</SignedIdentifier></SignedIdentifiers>"
)
POLICY = (
    b"<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2030-12-31</Start>"
    b"<Expiry>2031-01-02</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)


@pytest.fixture(name="world")
async def _world() -> World:
    return await World().prepare()


async def warm(world: World, query: str | None = None, method: str = "GET", **arguments: object) -> Answer:
    """Send a request three times: the words come, come again, and have a plan."""
    await world.ask(method, query=query, **arguments)  # type: ignore[arg-type]  # the arguments of `ask`
    first = await world.ask(method, query=query, **arguments)  # type: ignore[arg-type]  # the arguments of `ask`
    planned = world.planned
    again = await world.ask(method, query=query, **arguments)  # type: ignore[arg-type]  # the arguments of `ask`
    assert world.planned == planned + 1, "there is a plan"
    assert (first.status, first.record) == (again.status, again.record)
    return again


async def unplanned(world: World, query: str | None = None, method: str = "GET", **arguments: object) -> None:
    """Send a request three times; each is compiled."""
    planned = world.planned
    for _ in range(3):
        assert (await world.ask(method, query=query, **arguments)).status < 300  # type: ignore[arg-type]  # see `warm`
    assert world.planned == planned


async def test_a_read_is_answered_at_once_and_a_write_by_its_plan(world: World) -> None:
    assert (await warm(world)).status == 200
    assert world.immediate == 1
    assert (await warm(world, method="PUT", body={"A": 2})).status == 204
    assert world.immediate == 1
    assert b'"A":2' in (await world.ask("GET")).body


async def test_the_credentials_of_a_write_are_found_good_before_it_runs(world: World) -> None:
    await warm(world, method="PUT", body={"A": 2})
    assert world.authenticated
    await world.ask("PUT", body={"A": 3}, steady=False)
    assert not world.authenticated


@pytest.mark.parametrize("path", [ENTITY, "orders(PartitionKey='p',RowKey='other')"])
async def test_the_keys_are_those_of_the_request(world: World, path: str) -> None:
    await world.ask("PUT", "orders(PartitionKey='p',RowKey='other')", body={"A": 2})
    await warm(world)
    assert (await world.ask("GET", path)).body == (await world.ask("GET", path, steady=False)).body
    await warm(world, method="PUT", body={"B": 1})
    assert (await world.ask("PUT", path, body={"C": 1})).status == 204
    assert b'"C":1' in (await world.ask("GET", path)).body
    assert (await world.ask("GET", "orders(PartitionKey='p',RowKey='none')")).error_code == "ResourceNotFound"


async def test_a_list_is_not_taken_for_an_entity(world: World) -> None:
    await warm(world)
    assert b'"value":[' in (await world.ask("GET", "orders")).body
    assert b'"value":[' in (await world.ask("GET", "orders()")).body


@pytest.mark.parametrize("query", [None, ""])
async def test_a_rotated_key(world: World, query: str | None) -> None:
    sas = world.sas() if query is None else ""
    signed = world.shared_key("GET", f"/{NAME}/{ENTITY}", HEAD) if query == "" else {}
    await warm(world, sas, headers=signed)
    world.accounts.replace({NAME: StoredAccount((b"third", b"fourth"))})
    assert (await world.ask("GET", query=sas, headers=signed)).error_code == "AuthenticationFailed"
    world.accounts.replace({NAME: StoredAccount(KEYS)})
    assert (await world.ask("GET", query=sas, headers=signed)).status == 200


async def test_an_account_that_is_gone(world: World) -> None:
    sas = world.sas()
    await warm(world, sas)
    world.accounts.replace({"other": StoredAccount(KEYS)})
    assert (await world.ask("GET", query=sas)).error_code == "ResourceNotFound"


async def test_a_deleted_table_and_one_of_its_name(world: World) -> None:
    insert = {"PartitionKey": "p", "RowKey": "r"}
    await warm(world)
    await warm(world, method="PUT", body={"A": 1})
    await world.ask("POST", "orders", body={**insert, "RowKey": "1"})
    await world.ask("DELETE", "Tables('orders')")
    assert (await world.ask("GET")).error_code == "TableNotFound"
    assert (await world.ask("PUT", body={"A": 1})).error_code == "TableNotFound"
    assert (await world.ask("POST", "orders", body=insert)).error_code == "TableNotFound"
    await world.ask("POST", "Tables", body={"TableName": "orders"})
    assert (await world.ask("GET")).error_code == "ResourceNotFound"
    assert (await world.ask("PUT", body={"A": 1})).status == 204
    assert (await world.ask("DELETE", headers={"if-match": "*"})).status == 204
    assert (await world.ask("POST", "orders", body=insert)).status == 201
    assert (await world.ask("GET")).status == 200


async def test_cors_rules(world: World) -> None:
    origin = {"origin": "http://a"}
    await warm(world, headers=origin)
    for host in (b"a", b"b", b"a"):
        await world.ask("PUT", "", f"restype=service&comp=properties&{world.sas()}", CORS % host)
        for method, body in (("GET", b""), ("PUT", {"A": 1})):
            answer = await warm(world, method=method, headers=origin, body=body)
            allowed = "http://a" if host == b"a" else None
            assert answer.field("Access-Control-Allow-Origin") == allowed
            exposed = answer.field("Access-Control-Expose-Headers")
            assert exposed == (None if allowed is None else "x-ms-request-id,x-ms-version")
            assert answer.field("Vary") == ("Origin" if method == "GET" else None)


@pytest.mark.parametrize("seconds", [-86_401, 86_401])
async def test_the_time_of_a_token(world: World, seconds: int) -> None:
    sas = world.sas()
    await warm(world, sas)
    world.now = NOW + seconds * TICKS_PER_SECOND
    assert (await world.ask("GET", query=sas)).error_code == "AuthenticationFailed"


@pytest.mark.parametrize("seconds", [-901, 901])
async def test_the_date_of_a_signed_request(world: World, seconds: int) -> None:
    signed = world.shared_key("GET", f"/{NAME}/{ENTITY}", HEAD)
    await warm(world, "", headers=signed)
    world.now = NOW + seconds * TICKS_PER_SECOND
    assert (await world.ask("GET", query="", headers=signed)).error_code == "AuthenticationFailed"
    await warm(world, "")


async def test_a_signature_is_of_its_request(world: World) -> None:
    await warm(world, "")
    signed = world.shared_key("GET", f"/{NAME}/{ENTITY}", HEAD)
    other = await world.ask("GET", "orders(PartitionKey='p',RowKey='s')", "", headers=signed)
    assert other.error_code == "AuthenticationFailed"
    for header in (
        signed["authorization"].replace(f" {NAME}:", " bcct:"),
        signed["authorization"][:-2] + "A=",
        f"SharedKey {NAME}:",
        "SharedKey other:AAAA",
        "Bearer AAAA",
        "",
    ):
        answer = await world.ask("GET", query="", headers={**signed, "authorization": header})
        assert answer.status in (401, 403, 400), header
    undated = {"authorization": signed["authorization"], "date": "soon"}
    assert (await world.ask("GET", query="", headers=undated)).error_code == "AuthenticationFailed"


async def test_an_authorization_wins_over_a_token(world: World) -> None:
    await warm(world)
    answer = await world.ask("GET", headers={"authorization": f"SharedKey {NAME}:AAAA"})
    assert answer.error_code == "AuthenticationFailed"


async def test_a_token_does_not_serve_as_a_signature(world: World) -> None:
    await warm(world, "")
    assert (await world.ask("GET", query="x=y", headers={"authorization": "SharedKey"})).status == 400
    assert (await world.ask("GET", query="&")).error_code == "NoAuthenticationInformation"


@pytest.mark.parametrize(("policy", "times"), [(POLICY, {"start": "", "expiry": ""}), (LETTERS, {})])
async def test_a_revoked_policy(world: World, policy: bytes, times: dict[str, str]) -> None:
    async def set_policy(document: bytes) -> None:
        assert (await world.ask("PUT", "orders", "comp=acl", document, await _signed(world))).status == 204

    await set_policy(policy)
    sas = world.table_sas(permission="", policy_id="one", **times)
    await unplanned(world, sas)
    await set_policy(b"")
    assert (await world.ask("GET", query=sas)).error_code == "AuthenticationFailed"


async def _signed(world: World) -> dict[str, str]:
    return world.shared_key("PUT", f"/{NAME}/orders", HEAD, "comp=acl")


async def test_a_token_of_one_table(world: World) -> None:
    sas = world.table_sas(permission="r")
    await warm(world, sas)
    assert (await world.ask("GET", "others(PartitionKey='p',RowKey='r')", sas)).error_code == "AuthenticationFailed"
    assert (await world.ask("PUT", query=sas, body={"A": 1})).error_code == "AuthorizationPermissionMismatch"


async def test_key_ranges_are_not_cached(world: World) -> None:
    sas = world.table_sas(start_partition="p", start_row="r", end_partition="p", end_row="r")
    await unplanned(world, sas)
    await unplanned(world, sas, "PUT", body={"A": 1})
    assert (await world.ask("GET", "orders(PartitionKey='p',RowKey='s')", sas)).error_code == "AuthorizationFailure"


async def test_addresses(world: World) -> None:
    sas = world.sas(ip="192.0.2.1")
    await warm(world, sas)
    assert (await world.ask("GET", query=sas, client="192.0.2.2")).error_code == "AuthorizationSourceIPMismatch"


async def test_the_scheme(world: World) -> None:
    sas = world.sas(protocol="https")
    await warm(world, sas, scheme="https")
    assert (await world.ask("GET", query=sas)).error_code == "AuthorizationProtocolMismatch"
    full = {"accept": f"{JSON};odata=fullmetadata"}
    assert b"https://h/" in (await warm(world, scheme="https", headers=full)).body
    assert b"http://h/" in (await world.ask("GET", headers=full)).body


async def test_the_version(world: World) -> None:
    assert (await warm(world)).field("x-ms-version") == HEAD["x-ms-version"]
    old = await warm(world, headers={"x-ms-version": "2013-08-15"})
    assert (old.field("x-ms-version"), old.field("DataServiceVersion")) == ("2013-08-15", "3.0;NetFx")
    assert (await world.ask("GET", headers={"x-ms-version": "x"})).error_code == "InvalidHeaderValue"
    named = await world.ask("GET", query=f"{world.sas()}&api-version=2018-03-28")
    assert named.field("x-ms-version") == "2018-03-28"


async def test_the_host(world: World) -> None:
    full = {"accept": f"{JSON};odata=fullmetadata"}
    assert b"http://h/" in (await warm(world, headers=full)).body
    assert b"http://other/" in (await world.ask("GET", headers={**full, "host": "other"})).body
    insert = {"PartitionKey": "p", "RowKey": "1"}
    created = [
        await world.ask("POST", "orders", body={**insert, "RowKey": str(number)}, headers={"host": host})
        for number, host in enumerate(("h", "h", "h", "other"))
    ]
    assert str(created[2].field("Location")).startswith("http://h/acct/orders(")
    assert str(created[3].field("Location")).startswith("http://other/acct/orders(")


async def test_select(world: World) -> None:
    await world.ask("PUT", body={"A": 1, "B": 2})
    await warm(world)
    await unplanned(world, f"{world.sas()}&$select=A")
    assert b'"B"' not in (await world.ask("GET", query=f"{world.sas()}&$select=A")).body
    assert b'"A"' not in (await world.ask("GET", query=f"{world.sas()}&$select=B")).body


async def test_the_secondary(world: World) -> None:
    root = f"/{NAME}-secondary/"
    await warm(world)
    await warm(world, root=root)
    await warm(world, method="PUT", body={"A": 1})
    assert (await world.ask("PUT", body={"A": 1}, root=root)).error_code == "InsufficientAccountPermissions"


async def test_the_format(world: World) -> None:
    assert (await warm(world)).field("Content-Type") == f"{JSON};odata=minimalmetadata;streaming=true;charset=utf-8"
    bare = await world.ask("GET", headers={"accept": f"{JSON};odata=nometadata"})
    assert bare.field("Content-Type") == f"{JSON};odata=nometadata;streaming=true;charset=utf-8"
    assert b"odata.metadata" not in bare.body
    assert (await world.ask("GET", headers={"accept": "text/html"})).status == 415


async def test_atom_tells_the_time_of_each_response(world: World) -> None:
    atom = {"accept": "application/atom+xml", "x-ms-version": "2013-08-15", "dataserviceversion": "1.0"}
    await unplanned(world, headers=atom)


async def test_a_tunnelled_method(world: World) -> None:
    await warm(world, method="PUT", body={"A": 1})
    merged = await warm(world, method="POST", headers={"x-http-method": "MERGE"}, body={"B": 2})
    assert (merged.status, "InsertOrMergeEntity" in merged.record) == (204, True)
    assert b'"A":1' in (await world.ask("GET")).body
    assert (await world.ask("PUT", headers={"x-http-method": "MERGE"}, body={})).error_code == "XMethodNotUsingPost"


async def test_conditions_are_read_for_each_request(world: World) -> None:
    stored = str((await world.ask("GET")).field("ETag"))
    first = await world.ask("PUT", body={"A": 1}, headers={"if-match": stored})
    second = await world.ask("PUT", body={"A": 2}, headers={"if-match": str(first.field("ETag"))})
    third = await world.ask("PUT", body={"A": 2}, headers={"if-match": str(second.field("ETag"))})
    assert (third.status, world.planned) == (204, 1)
    assert (await world.ask("PUT", body={"A": 3}, headers={"If-Match".lower(): stored})).status == 412
    assert (await world.ask("PUT", body={"A": 3}, headers={"if-match": "x"})).error_code == "InvalidInput"
    assert (await world.ask("PUT", body={"A": 3}, headers={"if-none-match": "*"})).error_code == "InvalidInput"
    missing = "orders(PartitionKey='p',RowKey='none')"
    assert (await world.ask("PUT", missing, body={}, headers={"if-match": "*"})).error_code == "ResourceNotFound"
    assert (await world.ask("DELETE", headers={})).error_code == "InvalidInput"
    deleted = [await world.ask("DELETE", headers={"if-match": "*"}) for _ in range(2)]
    assert [answer.status for answer in deleted] == [204, 404]


async def test_an_update_is_not_taken_for_an_upsert(world: World) -> None:
    await warm(world, method="PUT", body={"A": 1})
    await warm(world, method="PUT", body={"A": 1}, headers={"if-match": "*"})
    missing = "orders(PartitionKey='p',RowKey='none')"
    updated = await world.ask("PUT", missing, body={}, headers={"if-match": "*"})
    assert (updated.error_code, "UpdateEntity" in updated.record) == ("ResourceNotFound", True)
    assert (await world.ask("PUT", missing, body={})).status == 204


async def test_a_checksum_is_of_its_body(world: World) -> None:
    digest = base64.b64encode(hashlib.md5(b'{"A": 1}').digest()).decode()
    await unplanned(world, None, "PUT", body={"A": 1}, headers={"content-md5": digest})
    assert (await world.ask("PUT", body={"A": 2}, headers={"content-md5": digest})).error_code == "Md5Mismatch"


async def test_a_timeout_is_kept(world: World) -> None:
    await unplanned(world, f"{world.sas()}&timeout=5")
    assert (await world.ask("GET", query=f"{world.sas()}&timeout=x")).error_code == "InvalidQueryParameterValue"


async def test_a_large_entity_is_read_in_steps(world: World) -> None:
    await warm(world)
    immediate = world.immediate
    large = {f"A{number}": "x" * 30_000 for number in range(LARGE_BYTES // 30_000 + 1)}
    await world.ask("PUT", body=large)
    assert (await world.ask("GET")).status == 200
    assert world.immediate == immediate


async def test_a_closed_engine(world: World) -> None:
    await warm(world)
    await warm(world, method="PUT", body={"A": 1})
    await world.engine.close()
    assert (await world.ask("GET")).error_code == "ServerBusy"
    assert (await world.ask("PUT", body={"A": 1})).error_code == "ServerBusy"


async def test_the_date_is_the_time_of_the_response(world: World) -> None:
    assert (await warm(world)).field("Date") == "Wed, 01 Jan 2031 00:00:00 GMT"
    world.now += TICKS_PER_SECOND
    assert (await world.ask("GET")).field("Date") == "Wed, 01 Jan 2031 00:00:01 GMT"


async def test_unchecked_ids_of_clients_are_not_echoed(world: World) -> None:
    for reported, echoed in (("mine", "mine"), ("a\tb", None), ("é", None), ("x" * 1025, None), ("", "")):
        answer = await warm(world, headers={"x-ms-client-request-id": reported})
        assert answer.field("x-ms-client-request-id") == echoed
