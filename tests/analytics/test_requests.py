"""Requests as analytics sees them. Source: reference §18.1."""

import pytest

from lazulite.protocol.message import Response, SubOperation
from tests.analytics.samples import NOW, SHARED_KEY, answered, read, request_of

SAS = "sv=2020-12-06&sig=c2ln&sp=r"
HOST = {"host": "127.0.0.1:10002"}


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (200, "", "Success"),
        (304, "ConditionNotMet", "ClientOtherError"),
        (404, "ResourceNotFound", "ClientOtherError"),
        (409, "EntityAlreadyExists", "ClientOtherError"),
        (400, "InvalidAuthenticationInfo", "AuthorizationError"),
        (401, "NoAuthenticationInformation", "AuthorizationError"),
        (403, "AuthenticationFailed", "AuthorizationError"),
        (408, "OperationTimedOut", "ClientTimeoutError"),
        (500, "OperationTimedOut", "ServerTimeoutError"),
        (500, "InternalError", "ServerOtherError"),
        (503, "ServerBusy", "ThrottlingError"),
    ],
)
def test_status(status: int, code: str, expected: str) -> None:
    (request,) = read(answered(request_of("table", "QueryEntity"), Response(status, error_code=code)))
    assert (request.status, request.http_status, request.error_code) == (expected, status, code)


def test_a_response_that_did_not_reach_the_client_is_a_network_error() -> None:
    (request,) = read(answered(request_of("blob", "GetBlob"), Response(200), is_whole=False))
    assert request.status == "NetworkError"


@pytest.mark.parametrize(
    ("headers", "query", "authentication", "prefix"),
    [
        (SHARED_KEY, "", "authenticated", ""),
        (HOST | {"authorization": "SharedKeyLite acct:c2ln"}, "", "authenticated", ""),
        (HOST | {"authorization": "Bearer a.b.c"}, "", "bearer", "OAuth"),
        (HOST, SAS, "sas", "SAS"),
        (HOST, "sv=1&s%69g=c2ln", "sas", "SAS"),
        (HOST, "notsig=c2ln", "anonymous", "Anonymous"),
        (HOST, "", "anonymous", "Anonymous"),
    ],
)
def test_authentication(headers: dict[str, str], query: str, authentication: str, prefix: str) -> None:
    (request,) = read(answered(request_of("blob", "GetBlob", query=query, headers=headers), Response(200)))
    assert (request.authentication, request.prefix) == (authentication, prefix)


@pytest.mark.parametrize(
    ("status", "method", "known"),
    [(200, "GET", True), (304, "GET", True), (304, "HEAD", False), (404, "GET", False), (401, "GET", False)],
)
def test_of_anonymous_failures_only_some_are_known(status: int, method: str, known: bool) -> None:
    found = read(answered(request_of("blob", "GetBlob", method, headers=HOST), Response(status)))
    assert len(found) == known


@pytest.mark.parametrize("status", [500, 503])
def test_failures_of_the_server_are_known_of_anonymous_requests(status: int) -> None:
    assert len(read(answered(request_of("blob", "GetBlob", headers=HOST), Response(status)))) == 1


@pytest.mark.parametrize(
    ("service", "operation", "path", "key"),
    [
        ("table", "QueryTables", "/acct/Tables", "/acct"),
        ("table", "QueryTable", "/acct/Tables('orders')", "/acct/orders"),
        ("table", "EntityGroupTransaction", "/acct/$batch", "/acct"),
        ("table", "QueryEntities", "/acct/orders()", "/acct/orders"),
        ("table", "QueryEntity", "/acct/orders(PartitionKey='a%20b',RowKey='it''s')", "/acct/orders/a b/it's"),
        ("table", "GetTableServiceProperties", "/acct/", "/acct"),
        ("queue", "ListQueues", "/acct", "/acct"),
        ("queue", "PutMessage", "/acct/jobs/messages", "/acct/jobs"),
        ("queue", "DeleteMessage", "/acct/jobs/messages/1", "/acct/jobs"),
        ("blob", "GetBlob", "/acct/box/a/b%20c.txt", "/acct/box/a/b c.txt"),
        ("blob", "ListContainers", "/acct/", "/acct"),
    ],
)
def test_key(service: str, operation: str, path: str, key: str) -> None:
    (request,) = read(answered(request_of(service, operation, path=path), Response(200)))
    assert (request.key, request.is_secondary) == (key, False)


def test_a_container_is_told_from_a_blob_of_the_root_container() -> None:
    asked = request_of("blob", "ListBlobs", path="/acct/box", query="restype=container&comp=list")
    (container,) = read(answered(asked, Response(200)))
    (blob,) = read(answered(request_of("blob", "GetBlob", path="/acct/box"), Response(200)))
    assert (container.key, blob.key) == ("/acct/box", "/acct/$root/box")


def test_an_insert_has_the_key_of_its_location() -> None:
    opening = "Location: http://127.0.0.1:10002/acct/orders(PartitionKey='p%20',RowKey='r')\r\nETag: W/\"x\"\r\n"
    (request,) = read(answered(request_of("table", "InsertEntity", "POST"), Response(201, opening=opening)))
    assert request.key == "/acct/orders/p /r"
    assert request.fields["etag"] == 'W/"x"'


def test_host_style_and_the_secondary() -> None:
    headers = SHARED_KEY | {"host": "acct-secondary.blob.localhost:80"}
    (request,) = read(answered(request_of("blob", "GetBlob", path="/box/a", headers=headers), Response(200)))
    assert (request.key, request.is_secondary) == ("/acct/box/a", True)


@pytest.mark.parametrize(
    ("operation", "headers", "query", "name", "operation_class"),
    [
        ("GetBlob", {}, "", "GetBlob", "read"),
        ("LeaseBlob", {"x-ms-lease-action": "Break"}, "", "BreakBlobLease", "write"),
        ("LeaseContainer", {"x-ms-lease-action": "acquire"}, "", "AcquireContainerLease", "write"),
        ("LeaseBlob", {"x-ms-lease-action": "evil;\n"}, "", "AcquireBlobLease", "write"),
        ("PutPage", {"x-ms-page-write": "clear"}, "", "ClearPage", "write"),
        ("CopyBlob", {"x-ms-requires-sync": "true"}, "", "CopyBlobFromURL", "write"),
        ("SealAppendBlob", {}, "", "SealBlob", "write"),
        ("GetMessages", {}, "", "GetMessage", "read"),
        ("GetMessages", {}, "numofmessages=1", "GetMessage", "read"),
        ("PeekMessages", {}, "peekonly=true&numofmessages=32", "PeekMessages", "read"),
        ("ClearMessages", {}, "", "ClearMessages", "delete"),
        ("DeleteBlob", {}, "", "DeleteBlob", "delete"),
        ("BlobPreflightRequest", {}, "", "BlobPreflightRequest", "read"),
        ("", {}, "", "Unknown", "write"),
    ],
)
def test_operation(operation: str, headers: dict[str, str], query: str, name: str, operation_class: str) -> None:
    (request,) = read(answered(request_of("blob", operation, query=query, headers=SHARED_KEY | headers), Response(200)))
    assert (request.operation, request.operation_class) == (name, operation_class)


def test_messages_that_were_hidden_are_a_write() -> None:
    asked = request_of("queue", "GetMessages", path="/acct/jobs/messages", query="numofmessages=32")
    asked.record.rows_returned = 3
    (request,) = read(answered(asked, Response(200)))
    assert (request.operation, request.operation_class) == ("GetMessages", "write")


def test_times_and_sizes() -> None:
    (request,) = read(answered(request_of("table", "QueryEntity"), Response(200)))
    assert (request.started, request.ended) == (NOW - 120_000, NOW)
    assert (request.total_ms, request.server_ms) == (12.0, 7.0)
    sizes = request.request_body_bytes, request.response_head_bytes, request.response_body_bytes
    assert sizes == (5, 200, 100)
    head = "GET /acct/orders HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in SHARED_KEY.items())
    assert request.request_head_bytes == len(f"{head}\r\n")


def test_a_batch_of_blobs_is_its_parts() -> None:
    batch = request_of("blob", "BlobBatch", "POST", "/acct/", "comp=batch")
    parts = [request_of("blob", "DeleteBlob", "DELETE", f"/acct/box/{name}") for name in "ab"]
    batch.record.parts = list(zip(parts, (Response(202), Response(404, error_code="BlobNotFound")), strict=True))
    first, second = read(answered(batch, Response(202)))
    assert (first.operation, first.key, first.status) == ("DeleteBlob", "/acct/box/a", "Success")
    assert (second.key, second.error_code) == ("/acct/box/b", "BlobNotFound")
    assert (first.request_body_bytes, second.request_body_bytes) == (5, 0)


def test_the_operations_of_a_change_set() -> None:
    batch = request_of("table", "EntityGroupTransaction", "POST", "/acct/$batch")
    batch.record.operations = [SubOperation("InsertEntity", ("orders", "p", "r"), 'W/"x"')]
    (request,) = read(answered(batch, Response(202)))
    assert request.operations == batch.record.operations


def test_an_account_that_asks_no_more_has_no_requests() -> None:
    from lazulite.analytics.requests import RequestReader  # noqa: PLC0415
    from tests.analytics.samples import recorded  # noqa: PLC0415

    (found,) = recorded(answered(request_of("table", "QueryEntity"), Response(200)))
    assert RequestReader({}, {}).read([found]) == []
