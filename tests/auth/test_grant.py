"""What operations demand (reference §14.4) against what credentials grant, with each refusal of §15."""

import pytest

from lazulite.auth.bearer.token import CONTRIBUTOR_GRANT, NO_ROLE_GRANT, READER_GRANT
from lazulite.auth.grant import SHARED_KEY_GRANT, Grant, Requirement, authorize
from lazulite.protocol.errors import ServiceError
from lazulite.table.sas import TableScope

CREATE_TABLE = Requirement("c", account=("c", "w"))
DELETE_TABLE = Requirement("c", account=("d",))
ACL = Requirement("c", shared_key_only=True)
QUERY = Requirement("o", account=("r",), service="r")
INSERT = Requirement("o", account=("a",), service="a")
UPSERT = Requirement("o", account=("au",), service="au")
UPDATE = Requirement("o", account=("u",), service="u")
DELETE = Requirement("o", account=("d",), service="d")
GET_PROPERTIES = Requirement("s", account=("r",))
LIST_TABLES = Requirement("c", account=("l",))
SET_PROPERTIES = Requirement("s", account=("w",))
EVERYTHING = [CREATE_TABLE, DELETE_TABLE, ACL, QUERY, INSERT, UPSERT, UPDATE, DELETE, GET_PROPERTIES]


def account_sas(resource_types: str, permissions: str) -> Grant:
    return Grant("account-sas", frozenset(permissions), resource_types)


def service_sas(permissions: str, *, table: str = "orders", hides_refusals: bool = False) -> Grant:
    return Grant("service-sas", frozenset(permissions), scope=TableScope(table), hides_refusals=hides_refusals)


def outcome(grant: Grant, requirement: Requirement, resource: str = "Orders") -> str:
    try:
        authorize(grant, requirement, resource)
    except ServiceError as error:
        return error.code
    return "allowed"


@pytest.mark.parametrize("requirement", EVERYTHING)
def test_shared_key_may_do_everything(requirement: Requirement) -> None:
    assert outcome(SHARED_KEY_GRANT, requirement) == "allowed"


@pytest.mark.parametrize(
    ("requirement", "resource_type", "letters"),
    [
        (CREATE_TABLE, "c", "c"),
        (CREATE_TABLE, "c", "w"),
        (DELETE_TABLE, "c", "d"),
        (QUERY, "o", "r"),
        (INSERT, "o", "a"),
        (UPSERT, "o", "au"),
        (UPDATE, "o", "u"),
        (DELETE, "o", "d"),
        (GET_PROPERTIES, "s", "r"),
    ],
)
def test_account_sas(requirement: Requirement, resource_type: str, letters: str) -> None:
    assert outcome(account_sas(resource_type, letters), requirement) == "allowed"
    assert outcome(account_sas("sco", "rwdlacup"), requirement) == "allowed"
    others = "sco".replace(resource_type, "")
    assert outcome(account_sas(others, "rwdlacup"), requirement) == "AuthorizationResourceTypeMismatch"
    assert outcome(account_sas(others, "x"), requirement) == "AuthorizationResourceTypeMismatch"
    assert outcome(account_sas("sco", "x"), requirement) == "AuthorizationPermissionMismatch"


@pytest.mark.parametrize("letters", ["a", "u", "rwd"])
def test_an_upsert_needs_both_letters(letters: str) -> None:
    assert outcome(account_sas("o", letters), UPSERT) == "AuthorizationPermissionMismatch"
    assert outcome(service_sas(letters), UPSERT) == "AuthorizationPermissionMismatch"


def test_no_account_sas_reaches_the_acl() -> None:
    assert outcome(account_sas("sco", "rwdlacup"), ACL) == "AuthorizationFailure"
    assert outcome(account_sas("sco", "rwdlacup"), Requirement("o", service="r")) == "AuthorizationFailure"


@pytest.mark.parametrize(
    ("requirement", "letters"), [(QUERY, "r"), (INSERT, "a"), (UPSERT, "ua"), (UPDATE, "u"), (DELETE, "d")]
)
def test_service_sas(requirement: Requirement, letters: str) -> None:
    assert outcome(service_sas(letters), requirement, "ORDERS") == "allowed"
    assert outcome(service_sas("raud"), requirement) == "allowed"
    assert outcome(service_sas("x"), requirement) == "AuthorizationPermissionMismatch"
    assert outcome(service_sas("raud"), requirement, "other") == "AuthenticationFailed"
    assert outcome(service_sas("x", hides_refusals=True), requirement) == "ResourceNotFound"


@pytest.mark.parametrize("requirement", [CREATE_TABLE, DELETE_TABLE, ACL, GET_PROPERTIES])
def test_no_service_sas_reaches_tables_or_the_service(requirement: Requirement) -> None:
    assert outcome(service_sas("raud"), requirement, "") == "AuthorizationFailure"
    assert outcome(service_sas("raud"), requirement) == "AuthorizationFailure"
    assert outcome(service_sas("raud", hides_refusals=True), requirement) == "ResourceNotFound"


def test_the_texts_are_the_services() -> None:
    with pytest.raises(ServiceError, match=r"403 .* using this permission") as caught:
        authorize(service_sas("r"), INSERT, "orders")
    assert caught.value.status == 403
    with pytest.raises(ServiceError, match="404 ResourceNotFound"):
        authorize(service_sas("r", hides_refusals=True), INSERT, "orders")


@pytest.mark.parametrize("requirement", [*EVERYTHING, LIST_TABLES, SET_PROPERTIES])
def test_bearer(requirement: Requirement) -> None:
    reads = requirement in (LIST_TABLES, QUERY)
    by_account = requirement in (ACL, GET_PROPERTIES, SET_PROPERTIES)
    lacking = "AuthorizationFailure" if requirement is ACL else "AuthorizationPermissionMismatch"
    assert outcome(NO_ROLE_GRANT, requirement) == lacking
    assert outcome(READER_GRANT, requirement) == ("allowed" if reads else lacking)
    assert outcome(CONTRIBUTOR_GRANT, requirement) == (lacking if by_account else "allowed")
