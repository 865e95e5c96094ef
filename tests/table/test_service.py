import asyncio
import json
from dataclasses import replace

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.engine.contract import Engine, EngineUnavailableError
from lazulite.protocol.clock import LAST_TICK
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, response_of
from lazulite.records.spaces import TABLES
from lazulite.service.common_fields import FRONT_DOOR
from lazulite.table.service import SERVER
from tests.request_bodies import FixedBody
from tests.table.client import ACCOUNT, ALL_PERMISSIONS, Client, header


async def test_every_answer_carries_the_common_headers(client: Client) -> None:
    for response in (await client("GET", "Tables"), await client("GET", "people()")):
        assert header(response, "Server") == SERVER
        assert header(response, "x-ms-request-id") == "id"
        assert (header(response, "Date") or "").endswith(" GMT")
        assert header(response, "x-ms-client-request-id") is None


@pytest.mark.parametrize(
    ("headers", "content_type", "start"),
    [
        ({}, "application/json", b"{"),
        ({"accept": "application/atom+xml", "x-ms-version": "2014-02-14"}, "application/xml", b"<?xml "),
    ],
)
async def test_a_rejection_of_credentials_says_the_format_that_it_has(
    engine: Engine, headers: dict[str, str], content_type: str, start: bytes
) -> None:
    response = await Client(engine, sas="sv=2019-02-02&sig=x")("GET", "Tables", headers=headers)
    assert response.status == 403
    assert header(response, "Content-Type") == content_type
    assert response.body.startswith(start)


async def test_no_browser_guesses_the_type_of_a_rejection(client: Client) -> None:
    for path, query, start in (("none()", "", b"{"), ("", "restype=service&comp=stats", b"<?xml ")):
        response = await client("GET", path, query)
        assert response.status >= 400
        assert response.body.lstrip(b"\xef\xbb\xbf").startswith(start)
        assert header(response, "X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    ("sent", "echoed"), [("abc", "abc"), ("a" * 1024, "a" * 1024), ("a" * 1025, None), ("a\x01", None), ("ä", None)]
)
async def test_the_clients_own_id_is_echoed_if_harmless(client: Client, sent: str, echoed: str | None) -> None:
    response = await client("GET", "Tables", headers={"x-ms-client-request-id": sent})
    assert header(response, "x-ms-client-request-id") == echoed


@pytest.mark.parametrize(
    ("version", "status", "echoed"),
    [("2019-02-02", 200, "2019-02-02"), ("2099-01-01", 200, "2099-01-01"), ("latest", 400, None)],
)
async def test_versions(client: Client, version: str, status: int, echoed: str | None) -> None:
    response = await client("GET", "Tables", f"api-version={version}")
    assert response.status == status
    assert header(response, "x-ms-version") == echoed
    if status == 400:
        assert response.error_code == "InvalidHeaderValue"


async def test_json_needs_the_version_that_brought_it(client: Client) -> None:
    response = await client("GET", "Tables", "api-version=2012-02-12")
    assert (response.status, response.error_code) == (415, "JsonFormatNotSupported")


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "code"),
    [
        ("GET", "", "", 400, "InvalidUri"),
        ("GET", "", "restype=service&comp=nothing", 400, "InvalidQueryParameterValue"),
        ("GET", "", "comp=properties", 400, "InvalidQueryParameterValue"),
        ("GET", "", "restype=service&comp=stats", 400, "InvalidQueryParameterValue"),
        ("GET", "people", "comp=metadata", 400, "InvalidQueryParameterValue"),
        ("GET", "Tables", "timeout=soon", 400, "InvalidQueryParameterValue"),
        ("PUT", "Tables", "", 405, "MethodNotAllowed"),
        ("DELETE", "people", "", 405, "MethodNotAllowed"),
        ("POST", "people(PartitionKey='p',RowKey='r')", "", 405, "MethodNotAllowed"),
        ("HEAD", "people(PartitionKey='p',RowKey='r')", "", 405, "MethodNotAllowed"),
        ("GET", "$batch", "", 405, "MethodNotAllowed"),
        ("GET", "people%FF", "", 400, "RequestUrlFailedToParse"),
        ("GET", "Tables", "$filter=%FF", 400, "RequestUrlFailedToParse"),
        ("GET", "people", "comp=acl", 403, "AuthorizationFailure"),
    ],
)
async def test_rejections_of_requests_as_such(
    client: Client, method: str, path: str, query: str, status: int, code: str
) -> None:
    response = await client(method, path, query)
    assert (response.status, response.error_code) == (status, code)
    assert header(response, "x-ms-error-code") == code


async def test_the_secondary_reads_but_does_not_write(client: Client) -> None:
    async def send(method: str, path: str, query: str = "") -> tuple[int, str]:
        request = Request(method, f"/{ACCOUNT}-secondary/{path}", f"{query}{client.sas}", {"host": "h"}, id="id")
        response = await response_of(client.service, request)
        return response.status, response.error_code

    assert await send("GET", "Tables") == (200, "")
    assert await send("POST", "Tables") == (403, "InsufficientAccountPermissions")
    assert await send("GET", "", "restype=service&comp=stats&") == (200, "")


async def test_errors_of_xml_operations_are_xml(client: Client) -> None:
    response = await client("GET", "", "restype=service&comp=stats")
    assert header(response, "Content-Type") == "application/xml"
    assert header(response, "X-Content-Type-Options") == "nosniff"
    assert b"<m:code>InvalidQueryParameterValue</m:code>" in response.body


async def test_no_credentials(client: Client) -> None:
    client.sas = ""
    response = await client("GET", "Tables")
    assert (response.status, response.error_code) == (401, "NoAuthenticationInformation")
    assert header(response, "WWW-Authenticate") == "SharedKey"


@pytest.mark.parametrize(("token", "asked"), [("", True), ("AAAA", False), (None, False)])
async def test_a_body_is_asked_for_when_the_credentials_are_good(
    client: Client, token: str | None, asked: bool
) -> None:
    body = FixedBody(b'{"TableName":"later"}', 21)
    query = "" if token is None else client.sas.replace("sig=", f"sig={token}", 1)
    headers = {"host": "h", "content-type": "application/json", "content-length": "21"}
    request = Request("POST", f"/{ACCOUNT}/Tables", query, headers, body_to_come=body)
    response = await response_of(client.service, request)
    assert (response.status == 201, request.authenticated, body.accepted) == (asked, asked, int(asked))


@pytest.mark.parametrize("beyond", [1, 10**19])
async def test_requests_past_the_last_year_are_answered(engine: Engine, beyond: int) -> None:
    last = AccountSas(services="t", resource_types="sco", permission="rl", expiry="9999-12-31T23:59:59Z")
    late = Client(engine, clock=lambda: LAST_TICK + beyond, sas=sign_account_sas(DEVELOPMENT_ACCOUNT, last))
    answers = [
        await late("GET", "Tables"),
        await late("GET", "Tables", "api-version=2014-02-14", headers={"accept": "application/atom+xml"}),
        await late("GET", "missing"),
        await late("GET", "", "restype=service&comp=nothing"),
        late.service.reject(Request("POST", "/", id="id"), ServiceError("RequestBodyTooLarge")),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 400, 413]
    assert {header(answer, "Date") for answer in answers} == {"Fri, 31 Dec 9999 23:59:59 GMT"}


async def test_a_body_that_means_nothing_is_not_accepted(client: Client) -> None:
    body = FixedBody(b"", 4194304)
    headers = {"host": "h", "content-length": "4194304", "content-md5": "AAAA"}
    request = Request("GET", f"/{ACCOUNT}/Tables", client.sas, headers, body_to_come=body)
    assert (await response_of(client.service, request)).status == 200
    assert body.accepted == 0


async def test_an_error_the_server_found_is_spelled_alike(client: Client) -> None:
    response = client.service.reject(Request("POST", "/", "%FF", id="id"), ServiceError("RequestBodyTooLarge"))
    assert response.status == 413
    assert json.loads(response.body)["odata.error"]["code"] == "RequestBodyTooLarge"
    assert header(response, "x-ms-request-id") == "id"


async def test_cors_preflight_and_vary(client: Client) -> None:
    preflight = {"origin": "http://a.com", "access-control-request-method": "GET"}
    assert (await client("OPTIONS", "people", headers=preflight)).error_code == "CorsPreflightFailure"
    rule = (
        "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>http://a.com</AllowedOrigins><AllowedHeaders/>"
        "<ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
    )
    body = f"<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>".encode()
    assert (await client("PUT", "", "restype=service&comp=properties", body)).status == 202
    client.sas, sas = "", client.sas
    granted = await client("OPTIONS", "people", headers=preflight)
    assert (granted.status, header(granted, "Access-Control-Allow-Origin")) == (200, "http://a.com")
    client.sas = sas
    response = await client("GET", "people()", headers={"origin": "http://a.com"})
    assert response.status == 404
    assert header(response, "Access-Control-Allow-Origin") == "http://a.com"
    assert header(response, "Vary") == "Origin"
    assert header(await client("GET", "people()"), "Vary") == "Origin"


class _Broken:
    """An engine whose disk is full, or whose store never answers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.answer: Exception = EngineUnavailableError("no room")

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        if space == TABLES:
            raise self.answer
        return await self._engine.get(space, partition, row)


async def test_a_store_that_cannot_serve_is_a_503(engine: Engine) -> None:
    client = Client(_Broken(engine))  # type: ignore[arg-type]  # only `get` is reached
    response = await client("GET", "people()")
    assert (response.status, response.error_code) == (503, "ServerBusy")


class _Slow:
    """An engine whose tables are read only when the test says so."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.go_on = asyncio.Event()
        self.went_on = asyncio.Event()

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        if space == TABLES:
            await self.go_on.wait()
            self.went_on.set()
            raise EngineUnavailableError("seen by nobody")
        return await self._engine.get(space, partition, row)


async def test_an_operation_over_its_time_is_a_500_and_goes_on(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.service.kernel.read_timeout", lambda _: 0.01)
    slow = _Slow(engine)
    client = Client(slow)  # type: ignore[arg-type]  # only `get` is reached
    response = await client("GET", "people()", "timeout=1")
    assert (response.status, response.error_code) == (500, "OperationTimedOut")
    slow.go_on.set()
    await slow.went_on.wait()


async def test_an_operation_within_its_time_is_answered(client: Client) -> None:
    assert (await client("GET", "Tables", "timeout=29")).status == 200
    assert (await client("GET", "people()", "timeout=29")).error_code == "TableNotFound"


async def test_nothing_is_kept_or_logged_of_an_account_that_does_not_exist(client: Client) -> None:
    for method in ("GET", "OPTIONS"):
        request = Request(method, "/nobody%3Fsig=SECRET/people", "", {"host": "h", "origin": "http://a.com"}, id="id")
        response = await response_of(client.service, request)
        assert (response.status, response.error_code) == (404, "ResourceNotFound")
        assert request.record.account == ""
    assert client.service._context.properties.cached("nobody?sig=SECRET") is None


@pytest.mark.parametrize(
    ("version", "echoed"), [("2009-09-19", "2009-09-19"), ("2009-07-17", None), ("2009-04-14", None)]
)
async def test_versions_are_reported_since_2009_09_19(client: Client, version: str, echoed: str | None) -> None:
    await client("POST", "Tables", body={"TableName": "abc"})
    for _ in range(2):
        response = await client("DELETE", "Tables('abc')", headers={"x-ms-version": version})
        assert header(response, "x-ms-version") == echoed


async def test_a_request_rejected_before_it_was_authorised_is_reported_its_version(client: Client) -> None:
    client.sas = sign_account_sas(DEVELOPMENT_ACCOUNT, replace(ALL_PERMISSIONS, services="b"))
    response = await client("GET", "Tables", headers={"x-ms-version": "2019-07-07"})
    assert (response.status, response.error_code) == (403, "AuthorizationServiceMismatch")
    assert (header(response, "Server"), header(response, "x-ms-version")) == (SERVER, "2019-07-07")


@pytest.mark.parametrize("query", ["", "comp=acl"])
async def test_the_front_door_rejects_credentials(client: Client, query: str) -> None:
    client.sas = ""
    response = await client("GET", "people", query, headers={"x-ms-version": "2019-07-07"})
    assert (response.status, response.error_code) == (401, "NoAuthenticationInformation")
    assert (header(response, "Server"), header(response, "x-ms-version")) == (FRONT_DOOR, None)
    assert header(response, "Content-Type") == ("application/xml" if query else "application/json")
    assert response.reason.startswith("Server failed to authenticate the request.")


@pytest.mark.parametrize(("version", "allowed"), [("2013-08-15", "*"), ("2012-02-12", None), (None, "*"), ("x", "*")])
async def test_cors_has_a_first_version(client: Client, version: str | None, allowed: str | None) -> None:
    rule = (
        "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders/>"
        "<ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
    )
    body = f"<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>".encode()
    await client("PUT", "", "restype=service&comp=properties", body)
    headers = {"origin": "http://a.com"} | ({} if version is None else {"x-ms-version": version})
    response = await client("GET", "Tables", headers=headers)
    assert header(response, "Access-Control-Allow-Origin") == allowed


@pytest.mark.parametrize(
    ("version", "stated", "with_content", "without"),
    [
        ("2009-09-19", {}, None, "1.0;NetFx"),
        ("2013-08-15", {}, "3.0;NetFx", "1.0;NetFx"),
        ("2015-07-08", {"maxdataserviceversion": "3.0"}, "3.0;NetFx", "1.0;NetFx"),
        ("2015-12-11", {}, None, None),
        ("2019-02-02", {"dataserviceversion": "3.0"}, None, None),
    ],
)
async def test_the_odata_version_of_answers(
    client: Client, version: str, stated: dict[str, str], with_content: str | None, without: str | None
) -> None:
    headers = {"x-ms-version": version, **stated}
    await client("POST", "Tables", body={"TableName": "abc"})
    assert header(await client("GET", "Tables", headers=headers), "DataServiceVersion") == with_content
    assert header(await client("DELETE", "Tables('abc')", headers=headers), "DataServiceVersion") == without
    if with_content:
        silent = {**headers, "prefer": "return-no-content"}
        created = await client("POST", "Tables", body={"TableName": "abc"}, headers=silent)
        assert (created.status, header(created, "DataServiceVersion")) == (204, with_content)
