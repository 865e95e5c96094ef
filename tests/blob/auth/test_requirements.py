"""The permissions of operations: each kind of credentials, letter by letter and role by role."""

import pytest

from lazulite.auth.grant import SHARED_KEY_GRANT, Grant, Requirement, permits
from lazulite.blob.auth import requirements as may
from lazulite.blob.auth.requirements import BLOB_ROLES
from lazulite.blob.auth.sas import BlobScope

LETTERS = "racwdxyltfi"
ROLES = {role.flag: role.actions for role in BLOB_ROLES}
READER, CONTRIBUTOR, OWNER = "blob-reader", "blob-contributor", "blob-owner"
TABLE: list[tuple[Requirement, str, str, str, str]] = [
    # requirement, types and letters of an account SAS, letters of a service SAS, roles
    (may.ACCOUNT_INFORMATION, "sco", LETTERS, LETTERS, " ".join(ROLES)),
    (may.LIST_CONTAINERS, "s", "l", "", f"{READER} {CONTRIBUTOR} {OWNER}"),
    (may.FIND_IN_ACCOUNT, "o", "f", "", OWNER),
    (may.BATCH, "sco", LETTERS, "", f"{CONTRIBUTOR} {OWNER}"),
    (may.CREATE_CONTAINER, "c", "cw", "", f"{CONTRIBUTOR} {OWNER}"),
    (may.READ_CONTAINER, "c", "r", "", f"{READER} {CONTRIBUTOR} {OWNER}"),
    (may.WRITE_CONTAINER, "c", "w", "", f"{CONTRIBUTOR} {OWNER}"),
    (may.DELETE_CONTAINER, "c", "d", "", f"{CONTRIBUTOR} {OWNER}"),
    (may.BREAK_CONTAINER_LEASE, "c", "dw", "", f"{CONTRIBUTOR} {OWNER}"),
    (may.LIST, "c", "l", "l", f"{READER} {CONTRIBUTOR} {OWNER}"),
    (may.LIST_UNPUBLISHED, "c", "l", "l", f"{READER} {CONTRIBUTOR} {OWNER}"),
    (may.LIST_TAGS, "c", "t", "t", OWNER),
    (may.FIND, "o", "f", "f", OWNER),
    (may.CONTAINER_BATCH, "sco", LETTERS, LETTERS, f"{CONTRIBUTOR} {OWNER}"),
    (may.OWNER, "", "", "", ""),
    (may.READ, "o", "r", "r", f"{READER} {CONTRIBUTOR} {OWNER}"),
    (may.READ_UNCOMMITTED, "o", "r", "r", f"{READER} {CONTRIBUTOR} {OWNER}"),
    (may.WRITE, "o", "w", "w", f"{CONTRIBUTOR} {OWNER}"),
    (may.CREATE_OR_WRITE, "o", "cw", "cw", f"{CONTRIBUTOR} {OWNER}"),
    (may.ADD_OR_WRITE, "o", "aw", "aw", f"{CONTRIBUTOR} {OWNER}"),
    (may.DELETE, "o", "d", "d", f"{CONTRIBUTOR} {OWNER}"),
    (may.DELETE_OR_WRITE, "o", "dw", "dw", f"{CONTRIBUTOR} {OWNER}"),
    (may.DELETE_VERSION, "o", "x", "x", OWNER),
    (may.PERMANENT_DELETE, "o", "y", "y", OWNER),
    (may.UNDELETE, "o", "w", "w", f"{CONTRIBUTOR} {OWNER}"),
    (may.READ_TAGS, "o", "t", "t", OWNER),
    (may.WRITE_TAGS, "o", "t", "t", OWNER),
]


@pytest.mark.parametrize(("requirement", "types", "account", "service", "roles"), TABLE)
def test_the_permissions_of_an_operation(
    requirement: Requirement, types: str, account: str, service: str, roles: str
) -> None:
    scope = BlobScope("c")
    for letter in LETTERS:
        permission = frozenset(letter)
        for type_ in "sco":
            by_account = permits(Grant("account-sas", permission, type_), requirement, "c/b")
            assert by_account is (type_ in types and letter in account), (letter, type_)
        assert permits(Grant("service-sas", permission, scope=scope), requirement, "c/b") is (letter in service), letter
    for role, actions in ROLES.items():
        held = role in roles.split()
        assert permits(Grant("bearer", actions=actions), requirement, "c/b") is held, role
        for letter in LETTERS:
            delegated = Grant("delegation-sas", frozenset(letter), scope=scope, actions=actions)
            assert permits(delegated, requirement, "c/b") is (held and letter in service), (role, letter)
    assert permits(SHARED_KEY_GRANT, requirement, "c/b")


def test_the_table_has_each_requirement() -> None:
    named = [value for value in vars(may).values() if isinstance(value, Requirement)]
    assert [row[0] for row in TABLE] == named


@pytest.mark.parametrize(
    ("parameters", "requirement"),
    [
        ({}, may.DELETE),
        ({"snapshot": "t"}, may.DELETE),
        ({"versionid": "t"}, may.DELETE_VERSION),
        ({"versionid": ""}, may.DELETE),
        ({"deletetype": "other"}, may.DELETE),
        ({"versionid": "t", "deletetype": "permanent"}, may.PERMANENT_DELETE),
        ({"snapshot": "t", "deletetype": "Permanent"}, may.PERMANENT_DELETE),
    ],
)
def test_what_deletion_demands(parameters: dict[str, str], requirement: Requirement) -> None:
    assert may.delete_requirement(parameters) is requirement


@pytest.mark.parametrize(("action", "breaks"), [("break", True), ("Break", True), ("acquire", False), ("", False)])
def test_what_a_lease_demands(action: str, breaks: bool) -> None:
    headers = {"x-ms-lease-action": action}
    assert may.lease_requirement(headers) is (may.DELETE_OR_WRITE if breaks else may.WRITE)
    assert may.container_lease_requirement(headers) is (may.BREAK_CONTAINER_LEASE if breaks else may.WRITE_CONTAINER)


@pytest.mark.parametrize(
    ("type_", "is_public"), [(None, True), ("committed", True), ("Committed", True), ("all", False), ("", False)]
)
def test_only_committed_blocks_are_public(type_: str | None, is_public: bool) -> None:
    requirement = may.block_list_requirement({} if type_ is None else {"blocklisttype": type_})
    assert requirement is (may.READ if is_public else may.READ_UNCOMMITTED)
    reader = Grant("anonymous", may.LEVELS["blob"], scope=BlobScope("c"), anonymous_code="ResourceNotFound")
    assert permits(reader, requirement, "c/b") is is_public


def test_what_blocks_demand() -> None:
    assert may.block_requirement("2026-06-05") is may.WRITE
    assert may.block_requirement("2026-06-06") is may.CREATE_OR_WRITE


@pytest.mark.parametrize(
    ("grant", "overwrites"),
    [
        (SHARED_KEY_GRANT, True),
        (Grant("account-sas", frozenset("c"), "o"), False),
        (Grant("account-sas", frozenset("cw"), "o"), True),
        (Grant("service-sas", frozenset("c"), scope=BlobScope("c")), False),
        (Grant("service-sas", frozenset("w"), scope=BlobScope("c")), True),
        (Grant("bearer", actions=frozenset({"blobs/add"})), False),
        (Grant("bearer", actions=ROLES[CONTRIBUTOR]), True),
        (Grant("delegation-sas", frozenset("c"), scope=BlobScope("c"), actions=ROLES[CONTRIBUTOR]), False),
        (Grant("delegation-sas", frozenset("w"), scope=BlobScope("c"), actions=ROLES[CONTRIBUTOR]), True),
    ],
)
def test_which_credentials_may_overwrite(grant: Grant, overwrites: bool) -> None:
    assert may.may_overwrite(grant, "c/b") is overwrites
