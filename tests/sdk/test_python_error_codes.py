"""Every member of the Python SDK's TableErrorCode: provoked here, provoked elsewhere, or out of an SDK's reach."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    ResourceTypes,
    TableClient,
    TableCorsRule,
    TableErrorCode,
    TableMetrics,
    TableServiceClient,
    generate_account_sas,
)

from .failures import refused
from .server import Account

KEYS = {"PartitionKey": "p", "RowKey": "r"}
STALE: dict[str, Any] = {
    "etag": "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\"",
    "match_condition": MatchConditions.IfNotModified,
}


class Clients(NamedTuple):
    """The clients of a case. Those with a SAS may change the parts of a request that a Shared Key would cover."""

    table: TableClient
    sas_table: TableClient
    service: TableServiceClient


@pytest.fixture
def clients(account: Account, service: TableServiceClient, table: TableClient) -> Iterator[Clients]:
    """Clients of one table that holds one entity."""
    table.create_entity(KEYS | {"A": "kept"})
    soon = datetime.now(UTC) + timedelta(hours=1)
    token = generate_account_sas(account.credential, ResourceTypes.from_string("sco"), "rwdlacu", soon)
    credential = AzureSasCredential(token)
    with TableClient(account.endpoint, table.table_name, credential=credential, retry_total=0) as sas_table:
        yield Clients(table, sas_table, service)


def sent_with(**changes: str) -> dict[str, Any]:
    """Keyword arguments that change headers of the request after it was signed; an empty value removes one."""

    def change(request: Any) -> None:
        for underscored, value in changes.items():
            name = underscored.replace("_", "-")
            request.http_request.headers.pop(name, None)
            if value:
                request.http_request.headers[name] = value

    return {"raw_request_hook": change}


def sent_as(*, method: str | None = None, url: tuple[str, str] = ("", ""), body: bytes | None = None) -> dict[str, Any]:
    """Keyword arguments that change the request's method, a part of its address, or its body."""

    def change(request: Any) -> None:
        sent = request.http_request
        sent.method = method or sent.method
        sent.url = sent.url.replace(*url) if url[0] else sent.url
        if body is not None:
            sent.set_bytes_body(body)

    return {"raw_request_hook": change}


Case = tuple[type[HttpResponseError], int, Callable[[Clients], object]]


def bad(act: Callable[[Clients], object], status: int = 400) -> Case:
    """A case that the SDK has no class of its own for."""
    return HttpResponseError, status, act


def written(**properties: Any) -> Case:
    """A bad entity."""
    return bad(lambda c: c.table.upsert_entity(KEYS | properties))


CASES: dict[str, Case] = {
    "TABLE_ALREADY_EXISTS": (ResourceExistsError, 409, lambda c: c.table.create_table()),
    "ENTITY_ALREADY_EXISTS": (ResourceExistsError, 409, lambda c: c.table.create_entity(KEYS)),
    "RESOURCE_NOT_FOUND": (ResourceNotFoundError, 404, lambda c: c.table.get_entity("p", "absent")),
    "TABLE_NOT_FOUND": (
        ResourceNotFoundError,
        404,
        lambda c: c.service.get_table_client("sdkAbsent").get_entity("p", "r"),
    ),
    "UPDATE_CONDITION_NOT_SATISFIED": (ResourceModifiedError, 412, lambda c: c.table.update_entity(KEYS, **STALE)),
    "AUTHENTICATION_FAILED": (
        ClientAuthenticationError,
        403,
        lambda c: c.table.get_entity("p", "r", **sent_with(Authorization=f"SharedKey {c.table.account_name}:YmFu")),
    ),
    "INVALID_AUTHENTICATION_INFO": (
        ClientAuthenticationError,
        400,
        lambda c: c.table.get_entity("p", "r", **sent_with(Authorization="banana")),
    ),
    "NO_AUTHENTICATION_INFORMATION": bad(lambda c: c.table.get_entity("p", "r", **sent_with(Authorization="")), 401),
    "ENTITY_TOO_LARGE": written(**{f"P{n}": b"x" * 65_536 for n in range(16)}),
    "PROPERTY_VALUE_TOO_LARGE": written(A="x" * 32_769),
    "PROPERTY_NAME_TOO_LONG": written(**{"x" * 256: 1}),
    "PROPERTY_NAME_INVALID": written(**{"a-b": 1}),
    "TOO_MANY_PROPERTIES": written(**{f"P{n}": n for n in range(253)}),
    "DUPLICATE_PROPERTIES_SPECIFIED": bad(lambda c: c.table.upsert_entity(KEYS, **sent_as(body=b'{"A":1,"A":2}'))),
    "REQUEST_BODY_TOO_LARGE": bad(lambda c: c.table.upsert_entity(KEYS | {"A": "x" * 4 * 1024 * 1024}), 413),
    "OUT_OF_RANGE_INPUT": bad(lambda c: c.table.create_entity(KEYS | {"RowKey": "a/b"})),
    "INVALID_INPUT": bad(lambda c: list(c.table.query_entities("aaa bbb ccc"))),
    "NOT_IMPLEMENTED": bad(lambda c: list(c.table.list_entities(params={"$orderby": "A"})), 501),
    "INVALID_HEADER_VALUE": bad(lambda c: c.table.get_entity("p", "r", **sent_with(x_ms_version="banana"))),
    "INVALID_QUERY_PARAMETER_VALUE": bad(lambda c: c.table.get_entity("p", "r", params={"timeout": "banana"})),
    "JSON_FORMAT_NOT_SUPPORTED": bad(
        lambda c: c.table.upsert_entity(KEYS, **sent_with(x_ms_version="2012-02-12")), 415
    ),
    "X_METHOD_NOT_USING_POST": bad(lambda c: c.table.get_entity("p", "r", headers={"X-HTTP-Method": "MERGE"})),
    "X_METHOD_INCORRECT_VALUE": bad(lambda c: c.table.create_entity(KEYS, headers={"X-HTTP-Method": "BANANA"})),
    "METHOD_NOT_ALLOWED": bad(lambda c: c.table.create_entity(KEYS, headers={"X-HTTP-Method": "PUT"}), 405),
    "INVALID_HTTP_VERB": bad(lambda c: c.sas_table.get_entity("p", "r", **sent_as(method="BANANA"))),
    "INVALID_URI": bad(lambda c: c.sas_table.get_entity("p", "r", **sent_as(url=("(Part", "/x/y(Part")))),
    "REQUEST_URL_FAILED_TO_PARSE": bad(lambda c: c.sas_table.get_entity("p", "r", **sent_as(url=("'p'", "'%ff'")))),
    "HOST_INFORMATION_NOT_PRESENT": bad(lambda c: c.table.get_entity("p", "r", headers={"Host": ""})),
    "INVALID_MD5": bad(lambda c: c.table.upsert_entity(KEYS, headers={"Content-MD5": "banana"})),
    "MD5_MISMATCH": bad(lambda c: c.table.upsert_entity(KEYS, headers={"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="})),
    "INVALID_XML_DOCUMENT": bad(lambda c: c.service.set_service_properties(**sent_as(body=b"<StorageService"))),
    "INVALID_XML_NODE_VALUE": bad(lambda c: c.service.set_service_properties(cors=[TableCorsRule(["*"], ["BANANA"])])),
    "MISSING_REQUIRED_XML_NODE": bad(
        lambda c: c.service.set_service_properties(hour_metrics=TableMetrics(enabled=True))
    ),
    "UNSUPPORTED_XML_NODE": bad(
        lambda c: c.service.set_service_properties(
            **sent_as(body=b"<StorageServiceProperties><Banana/></StorageServiceProperties>")
        )
    ),
}

ELSEWHERE = {
    "AUTHORIZATION_FAILURE": "test_python_sas.py",
    "INSUFFICIENT_ACCOUNT_PERMISSIONS": "test_python_service.py",
    "INVALID_DUPLICATE_ROW": "test_python_transactions.py",
    "INVALID_RESOURCE_NAME": "test_python_errors.py",
    "PROPERTIES_NEED_VALUE": "test_python_errors.py",
}

OUT_OF_REACH = {
    "what the Table service never answers": {
        "CONDITION_NOT_MET",
        "EMPTY_METADATA_KEY",
        "ENTITY_NOT_FOUND",
        "INVALID_METADATA",
        "INVALID_RANGE",
        "METADATA_TOO_LARGE",
        "RESOURCE_ALREADY_EXISTS",
        "RESOURCE_TYPE_MISMATCH",
    },
    "what another code stands for": {
        "CONDITION_HEADERS_NOT_SUPPORTED",
        "INVALID_VALUE_TYPE",
        "MISSING_REQUIRED_HEADER",
        "MISSING_REQUIRED_QUERY_PARAMETER",
        "MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED",
        "OUT_OF_RANGE_QUERY_PARAMETER_VALUE",
        "UNSUPPORTED_HEADER",
        "UNSUPPORTED_HTTP_VERB",
        "UNSUPPORTED_QUERY_PARAMETER",
    },
    "states of an account or a server that a test cannot bring about from outside": {
        "ACCOUNT_ALREADY_EXISTS",
        "ACCOUNT_BEING_CREATED",
        "ACCOUNT_IS_DISABLED",
        "INTERNAL_ERROR",
        "OPERATION_TIMED_OUT",
        "SERVER_BUSY",
        "TABLE_BEING_DELETED",
    },
    "requests that the SDK's transport cannot send": {
        "MISSING_CONTENT_LENGTH_HEADER",
        "X_METHOD_INCORRECT_COUNT",
    },
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_code_and_its_class(clients: Clients, name: str) -> None:
    kind, status, act = CASES[name]
    with refused(kind, TableErrorCode[name].value, status):
        act(clients)
    (entity,) = clients.table.list_entities()
    assert dict(entity) == KEYS | {"A": "kept"}


def test_no_code_is_forgotten() -> None:
    accounted = [*CASES, *ELSEWHERE, *(name for names in OUT_OF_REACH.values() for name in names)]
    assert sorted(accounted) == sorted(TableErrorCode.__members__)
