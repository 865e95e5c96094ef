"""Reference §14.5, §23: a SAS that leans on a stored access policy."""

import pytest

from .answers import Answer
from .sas import Fields, moment, table_sas
from .signing import anonymous
from .tables import Table

FAILED = (403, "AuthenticationFailed")


def set_policies(table: Table, **policies: dict[str, str]) -> None:
    """Replace the table's policies: id, then Start, Expiry and Permission as given."""
    inner = "".join(
        f"<SignedIdentifier><Id>{name}</Id><AccessPolicy>"
        + "".join(f"<{tag}>{text}</{tag}>" for tag, text in fields.items())
        + "</AccessPolicy></SignedIdentifier>"
        for name, fields in policies.items()
    )
    text = f'<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>{inner}</SignedIdentifiers>'
    headers = {"Content-Type": "application/xml"}
    table.client.send("PUT", table.path, "comp=acl", body=text, headers=headers).expect(204)


def read(table: Table, fields: Fields) -> Answer:
    """Query with a SAS that names policy `p` and has nothing else unless given."""
    sas = table_sas(table.client.endpoint, table.name, {"si": "p", "se": None, "sp": None, **fields})
    return table.client.send("GET", table.path, sas, signer=anonymous)


def insert(table: Table, fields: Fields) -> Answer:
    """Insert with such a SAS."""
    sas = table_sas(table.client.endpoint, table.name, {"si": "p", "se": None, "sp": None, **fields})
    text = '{"PartitionKey":"p","RowKey":"r"}'
    return table.client.send("POST", table.path, sas, body=text, signer=anonymous)


LATER, EARLIER, DAY = moment(60), moment(-60), 24 * 60
ALLOWED: list[tuple[dict[str, str], Fields]] = [
    ({"Expiry": LATER, "Permission": "r"}, {}),
    ({"Start": EARLIER, "Expiry": LATER, "Permission": "raud"}, {}),
    ({"Permission": "r"}, {"se": LATER}),
    ({"Expiry": LATER}, {"sp": "r"}),
    ({}, {"se": LATER, "sp": "r"}),
    ({"Start": EARLIER}, {"se": LATER, "sp": "r"}),
    ({"Expiry": LATER, "Permission": "r"}, {"st": EARLIER}),
    ({"Expiry": LATER, "Permission": "r"}, {"spk": "a", "epk": "b"}),
    ({"Expiry": moment(2 * DAY)[:10], "Permission": "r"}, {}),
    ({"Start": "", "Expiry": LATER, "Permission": "r"}, {}),
]


@pytest.mark.parametrize("version", ["2013-08-15", "2019-02-02"])
@pytest.mark.parametrize(("policy", "fields"), ALLOWED)
def test_sas_and_policy_complete_each_other(table: Table, policy: dict[str, str], fields: Fields, version: str) -> None:
    set_policies(table, p=policy)
    read(table, {"sv": version, **fields}).expect(200)


REJECTED: list[tuple[dict[str, str], Fields]] = [
    ({}, {}),
    ({"Permission": "r"}, {}),
    ({"Expiry": LATER}, {}),
    ({}, {"se": LATER}),
    ({}, {"sp": "r"}),
    ({"Expiry": EARLIER, "Permission": "r"}, {}),
    ({"Start": LATER, "Expiry": moment(120), "Permission": "r"}, {}),
    ({"Permission": "r"}, {"se": EARLIER}),
    ({"Expiry": LATER, "Permission": "r"}, {"st": LATER}),
]


@pytest.mark.parametrize(("policy", "fields"), REJECTED)
def test_incomplete_or_expired_sas_with_policy_is_rejected(
    table: Table, policy: dict[str, str], fields: Fields
) -> None:
    set_policies(table, p=policy)
    assert read(table, fields).code == FAILED


def test_permission_comes_from_the_policy(table: Table) -> None:
    set_policies(table, p={"Expiry": LATER, "Permission": "a"})
    assert read(table, {}).code == (403, "AuthorizationPermissionMismatch")
    insert(table, {}).expect(201)
    set_policies(table, p={"Expiry": LATER, "Permission": "r"})
    read(table, {}).expect(200)
    assert insert(table, {}).code == (403, "AuthorizationPermissionMismatch")


@pytest.mark.parametrize("name", ["unknown", "P", "p ", ""])
def test_unknown_policies(table: Table, name: str) -> None:
    set_policies(table, p={"Expiry": LATER, "Permission": "r"})
    assert read(table, {"si": name}).code == FAILED


def test_a_policy_of_another_table_does_not_count(table: Table, shared_table: Table) -> None:
    set_policies(shared_table, p={"Expiry": LATER, "Permission": "r"})
    assert read(table, {}).code == FAILED


@pytest.mark.unverified
@pytest.mark.parametrize("fields", [{"sp": "r"}, {"se": LATER}, {"se": LATER, "sp": "r"}])
def test_a_field_in_both_is_rejected(table: Table, fields: Fields) -> None:
    set_policies(table, p={"Expiry": LATER, "Permission": "r"})
    assert read(table, fields).status in {400, 403}


def test_deleting_a_policy_revokes_and_adding_it_again_revives(table: Table) -> None:
    policy = {"Expiry": LATER, "Permission": "r"}
    set_policies(table, p=policy)
    read(table, {}).expect(200)
    set_policies(table)
    assert read(table, {}).code == FAILED
    set_policies(table, q=policy)
    assert read(table, {}).code == FAILED
    set_policies(table, p=policy)
    read(table, {}).expect(200)


def test_a_changed_policy_counts_at_once(table: Table) -> None:
    set_policies(table, p={"Expiry": LATER, "Permission": "r"})
    read(table, {}).expect(200)
    set_policies(table, p={"Expiry": EARLIER, "Permission": "r"})
    assert read(table, {}).code == FAILED


def test_a_sas_without_policy_survives_changes_of_policies(table: Table) -> None:
    free: Fields = {"si": None, "se": LATER, "sp": "r"}
    read(table, free).expect(200)
    set_policies(table, p={"Expiry": EARLIER, "Permission": "r"})
    read(table, free).expect(200)


def test_policy_id_of_64_characters_grants(table: Table) -> None:
    name = "i" * 64
    set_policies(table, **{name: {"Expiry": LATER, "Permission": "r"}})
    read(table, {"si": name}).expect(200)


def test_each_of_five_policies_grants(table: Table) -> None:
    set_policies(table, **{f"p{number}": {"Expiry": LATER, "Permission": "r"} for number in range(5)})
    for number in range(5):
        read(table, {"si": f"p{number}"}).expect(200)
