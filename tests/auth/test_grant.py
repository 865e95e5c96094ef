"""What operations demand (reference §14.4) against what credentials grant, with each rejection of §15."""

import pytest

from lazulite.auth.grant import SHARED_KEY_GRANT, Grant, Requirement, authorize, either
from lazulite.protocol.errors import ServiceError
from lazulite.queue.roles import QUEUE_ROLES
from lazulite.queue.routes import ROUTES as QUEUE_ROUTES
from lazulite.table.credentials import TableScope
from lazulite.table.roles import TABLE_ROLES

CREATE_TABLE = Requirement("c", account=("c", "w"), actions=either("tables/write"))
DELETE_TABLE = Requirement("c", account=("d",), actions=either("tables/delete"))
ACL = Requirement("c", shared_key_only=True)
QUERY = Requirement("o", account=("r",), service=("r",), actions=either("entities/read"))
INSERT = Requirement("o", account=("a",), service=("a",), actions=either("entities/write"))
UPSERT = Requirement("o", account=("au",), service=("au",), actions=either("entities/write"))
UPDATE = Requirement("o", account=("u",), service=("u",), actions=either("entities/write"))
DELETE = Requirement("o", account=("d",), service=("d",), actions=either("entities/delete"))
GET_PROPERTIES = Requirement("s", account=("r",), actions=either("service/read"))
LIST_TABLES = Requirement("c", account=("l",), actions=either("tables/read"))
SET_PROPERTIES = Requirement("s", account=("w",), actions=either("service/write"))
EVERYTHING = [CREATE_TABLE, DELETE_TABLE, ACL, QUERY, INSERT, UPSERT, UPDATE, DELETE, GET_PROPERTIES]


def account_sas(resource_types: str, permissions: str) -> Grant:
    return Grant("account-sas", frozenset(permissions), resource_types)


def service_sas(permissions: str, *, table: str = "orders", hides_rejections: bool = False) -> Grant:
    return Grant("service-sas", frozenset(permissions), scope=TableScope(table), hides_rejections=hides_rejections)


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
    assert outcome(account_sas("sco", "rwdlacup"), Requirement("o", service=("r",))) == "AuthorizationFailure"


@pytest.mark.parametrize(
    ("requirement", "letters"), [(QUERY, "r"), (INSERT, "a"), (UPSERT, "ua"), (UPDATE, "u"), (DELETE, "d")]
)
def test_service_sas(requirement: Requirement, letters: str) -> None:
    assert outcome(service_sas(letters), requirement, "ORDERS") == "allowed"
    assert outcome(service_sas("raud"), requirement) == "allowed"
    assert outcome(service_sas("x"), requirement) == "AuthorizationPermissionMismatch"
    assert outcome(service_sas("raud"), requirement, "other") == "AuthenticationFailed"
    assert outcome(service_sas("x", hides_rejections=True), requirement) == "ResourceNotFound"


@pytest.mark.parametrize("requirement", [CREATE_TABLE, DELETE_TABLE, ACL, GET_PROPERTIES])
def test_no_service_sas_reaches_tables_or_the_service(requirement: Requirement) -> None:
    assert outcome(service_sas("raud"), requirement, "") == "AuthorizationFailure"
    assert outcome(service_sas("raud"), requirement) == "AuthorizationFailure"
    assert outcome(service_sas("raud", hides_rejections=True), requirement) == "ResourceNotFound"


def test_the_texts_are_the_services() -> None:
    with pytest.raises(ServiceError, match=r"403 .* using this permission") as caught:
        authorize(service_sas("r"), INSERT, "orders")
    assert caught.value.status == 403
    with pytest.raises(ServiceError, match="404 ResourceNotFound"):
        authorize(service_sas("r", hides_rejections=True), INSERT, "orders")


@pytest.mark.parametrize("requirement", [*EVERYTHING, LIST_TABLES, SET_PROPERTIES])
def test_bearer(requirement: Requirement) -> None:
    reads = requirement in (LIST_TABLES, QUERY)
    by_account = requirement in (ACL, GET_PROPERTIES, SET_PROPERTIES)
    lacking = "AuthorizationFailure" if requirement is ACL else "AuthorizationPermissionMismatch"
    reader, contributor = (Grant("bearer", actions=role.actions) for role in TABLE_ROLES)
    assert outcome(Grant("bearer"), requirement) == lacking
    assert outcome(reader, requirement) == ("allowed" if reads else lacking)
    assert outcome(contributor, requirement) == (lacking if by_account else "allowed")


QUEUE_PERMISSIONS = {
    "ListQueues": "reader contributor",
    "GetQueueMetadata": "reader contributor",
    "CreateQueue": "contributor",
    "SetQueueMetadata": "contributor",
    "DeleteQueue": "contributor",
    "PutMessage": "contributor sender",
    "GetMessages": "contributor processor",
    "PeekMessages": "reader contributor processor",
    "DeleteMessage": "contributor processor",
    "UpdateMessage": "contributor",
    "ClearMessages": "contributor",
}
"""By operation, the roles that permit it (queue reference §13); all others permit it to no role."""


@pytest.mark.parametrize("operation", sorted(QUEUE_ROUTES.operations - {"GetUserDelegationKey"}))
def test_the_roles_of_queues(operation: str) -> None:
    [requirement] = {route.requires for route in QUEUE_ROUTES.rows if route.operation == operation}
    assert requirement is not None
    allowed = {
        role.flag.removeprefix("queue-")
        for role in QUEUE_ROLES
        if outcome(Grant("bearer", actions=role.actions), requirement) == "allowed"
    }
    assert allowed == set(QUEUE_PERMISSIONS.get(operation, "").split())


def test_what_only_a_bearer_may() -> None:
    requirement = Requirement("s", actions=either("a b", "c"), bearer_only=True)
    assert outcome(SHARED_KEY_GRANT, requirement) == "AuthenticationFailed"
    assert outcome(account_sas("sco", "rwdlacup"), requirement) == "AuthenticationFailed"
    for actions, expected in (("a", "AuthorizationPermissionMismatch"), ("ab", "allowed"), ("c", "allowed")):
        assert outcome(Grant("bearer", actions=frozenset(actions)), requirement) == expected


def test_a_delegation_sas_needs_both_its_permission_and_the_role() -> None:
    requirement = Requirement("o", service=("r",), actions=either("read"))
    for letters, actions, expected in (
        ("r", {"read"}, "allowed"),
        ("r", set(), "AuthorizationPermissionMismatch"),
        ("a", {"read"}, "AuthorizationPermissionMismatch"),
    ):
        delegated = Grant("delegation-sas", frozenset(letters), scope=TableScope("orders"), actions=frozenset(actions))
        assert outcome(delegated, requirement) == expected
    assert outcome(delegated, requirement, "other") == "AuthenticationFailed"
