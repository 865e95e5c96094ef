"""Reference §11.3, §14.4: each operation of a batch needs its own permission, and one rejection rejects the whole."""

import pytest

from .answers import Answer
from .batches import Operation, body, changeset, insert, operation, query_body, query_part, sole_part, submit, url
from .sas import Fields, account_sas, table_sas
from .signing import Signer, anonymous
from .tables import Table, entity

PERMISSION = (403, "AuthorizationPermissionMismatch")
OUTSIDE = (403, "AuthorizationFailure")


def changes(table: Table) -> dict[str, Operation]:
    """One change by the permissions that it needs; (p, old) exists."""
    old = url(table, table.at("p", "old"))
    return {
        "a": insert(table, entity("p", "new")),
        "u": operation("MERGE", old, {"B": 2}, If_Match="*"),
        "d": operation("DELETE", old, If_Match="*"),
        "au": operation("PUT", url(table, table.at("p", "put")), {}),
        "ua": operation("PATCH", url(table, table.at("p", "put")), {}),
    }


def send(table: Table, operations: list[Operation], fields: Fields, *, account: bool = False) -> Answer:
    """Send a batch with a SAS on its URL."""
    endpoint = table.client.endpoint
    sas = account_sas(endpoint, {"srt": "o", **fields}) if account else table_sas(endpoint, table.name, fields)
    return submit(table.client, body(operations), query=sas, signer=anonymous)


@pytest.mark.parametrize("account", [False, True])
@pytest.mark.parametrize("given", ["r", "a", "u", "d", "au", "ad", "ud", "raud"])
@pytest.mark.parametrize("needs", ["a", "u", "d", "au", "ua"])
def test_each_operation_needs_its_permission(table: Table, needs: str, given: str, account: bool) -> None:
    table.add(entity("p", "old"))
    answer = send(table, [changes(table)[needs]], {"sp": given}, account=account)
    if set(needs) <= set(given):
        assert changeset(answer.expect(202))[0].status == 204
    else:
        assert answer.code == PERMISSION
        assert table.row_keys() == ["old"]


FORMATS = {
    "application/json": "application/json",
    "application/json;odata=minimalmetadata": "application/json",
    "application/xml": "application/xml",
    "application/atom+xml,application/xml": "application/xml",
    None: "application/xml",
}


@pytest.mark.parametrize(("accept", "content_type"), FORMATS.items(), ids=map(str, FORMATS))
@pytest.mark.parametrize("wrong", [anonymous, lambda *_: "SharedKeyLite x:y", lambda *_: "SharedKey"])
def test_rejected_credentials_have_the_format_of_accept(
    table: Table, wrong: Signer, accept: str | None, content_type: str
) -> None:
    """§25: without Accept, XML."""
    headers = {"Content-Type": "multipart/mixed; boundary=b", "Accept": accept}
    answer = table.client.send("POST", "/$batch", body=b"--b--\r\n", headers=headers, signer=wrong)
    assert answer.status in {400, 401, 403}
    assert answer.header("Content-Type") == content_type
    assert answer.rejection.code == answer.header("x-ms-error-code")


@pytest.mark.parametrize("account", [False, True])
def test_one_rejection_rejects_the_change_set(table: Table, account: bool) -> None:
    table.add(entity("p", "old"))
    several = [changes(table)[needs] for needs in ("a", "au", "d")]
    assert send(table, several, {"sp": "au"}, account=account).code == PERMISSION
    assert table.row_keys() == ["old"]
    parts = changeset(send(table, several, {"sp": "aud"}, account=account).expect(202))
    assert [part.status for part in parts] == [204, 204, 204]


def test_query_in_a_batch_needs_its_permission(table: Table) -> None:
    table.add(entity("p", "old"))
    text = query_body([operation("GET", url(table) + "()")])
    for given, status in (("r", 200), ("a", 403)):
        sas = table_sas(table.client.endpoint, table.name, {"sp": given})
        answer = submit(table.client, text, query=sas, signer=anonymous)
        if status == 200:
            assert len(query_part(answer.expect(202)).json()["value"]) == 1
        else:
            assert answer.code == PERMISSION


def test_sas_range_applies_to_each_operation(table: Table) -> None:
    fields: Fields = {"spk": "p", "srk": "b", "epk": "p", "erk": "d"}
    inside = [insert(table, entity("p", row)) for row in "bcd"]
    assert len(changeset(send(table, inside, fields).expect(202))) == 3
    outside = [insert(table, entity("p", row)) for row in ("c1", "e")]
    assert send(table, outside, fields).code == OUTSIDE
    assert table.row_keys() == ["b", "c", "d"]


def test_ranges_filter_queries(table: Table) -> None:
    table.add(*(entity("p", row) for row in "abc"))
    sas = table_sas(table.client.endpoint, table.name, {"spk": "p", "srk": "b"})
    text = query_body([operation("GET", url(table) + "()")])
    rows = query_part(submit(table.client, text, query=sas, signer=anonymous).expect(202)).json()["value"]
    assert [row["RowKey"] for row in rows] == ["b", "c"]


def test_sas_of_another_table_is_rejected(table: Table, shared_table: Table) -> None:
    sas = table_sas(table.client.endpoint, table.name, {})
    text = body([insert(shared_table, entity("p", "r"))])
    answer = submit(table.client, text, query=sas, signer=anonymous)
    assert answer.status == 403


def test_batch_without_credentials_is_rejected(table: Table) -> None:
    answer = submit(table.client, body([insert(table, entity("p", "r"))]), signer=anonymous)
    assert answer.code == (401, "NoAuthenticationInformation")


def test_an_account_sas_without_objects(table: Table) -> None:
    answer = send(table, [insert(table, entity("p", "r"))], {"srt": "sc"}, account=True)
    assert answer.code == (403, "AuthorizationResourceTypeMismatch")
    assert table.page().rows == []


def test_expired_sas_is_rejected(table: Table) -> None:
    answer = send(table, [insert(table, entity("p", "r"))], {"se": "2020-01-01"})
    assert answer.code == (403, "AuthenticationFailed")


@pytest.mark.unverified
def test_a_rejection_of_an_old_sas(table: Table) -> None:
    """Before 2015-04-05 a lack of permission is 404; where in the answer it stands is not recorded."""
    answer = send(table, [insert(table, entity("p", "r"))], {"sv": "2014-02-14", "sp": "r"})
    status = answer.status if answer.status != 202 else sole_part(answer).status
    assert status in {403, 404}
    assert table.page().rows == []
