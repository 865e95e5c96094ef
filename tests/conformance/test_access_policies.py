"""Reference §8.5, §8.6, §23: Get and Set Table ACL."""

import re

import pytest

from .access_policies import malformed
from .answers import Answer, xml_text
from .sas import account_sas, table_sas
from .signing import anonymous
from .tables import Table

BOM = b"\xef\xbb\xbf"
DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
EMPTY = f"{DECLARATION}<SignedIdentifiers />"
START, EXPIRY = "2021-06-08T02:05:09.0000000Z", "2031-06-08T02:05:09.0000000Z"


def put(table: Table, text: str) -> Answer:
    """Set the ACL."""
    return table.client.send("PUT", table.path, "comp=acl", body=text, headers={"Content-Type": "application/xml"})


def get(table: Table) -> str:
    """The ACL's XML, without its byte order mark, which must be there."""
    answer = table.client.send("GET", table.path, "comp=acl").expect(200)
    assert answer.header("Content-Type") == "application/xml"
    assert answer.body.startswith(BOM)
    return answer.body.removeprefix(BOM).decode()


def identifier(name: str = "i", policy: str = "") -> str:
    """One SignedIdentifier."""
    return f"<SignedIdentifier><Id>{name}</Id>{policy}</SignedIdentifier>"


def identifiers(*each: str) -> str:
    """A document of identifiers."""
    return f"{DECLARATION}<SignedIdentifiers>{''.join(each)}</SignedIdentifiers>"


def policy(start: str = "", expiry: str = "", permission: str = "") -> str:
    """An AccessPolicy of the fields that are given."""
    fields = {"Start": start, "Expiry": expiry, "Permission": permission}
    return "<AccessPolicy>" + "".join(f"<{k}>{v}</{k}>" for k, v in fields.items() if v) + "</AccessPolicy>"


def test_is_empty_at_first(table: Table) -> None:
    assert get(table) == EMPTY


WHOLE = identifier("i", policy(START, EXPIRY, "raud"))
KEPT = [
    [WHOLE],
    [identifier("a" * 64, policy(START, EXPIRY, "raud"))],
    [identifier("i", policy(expiry=EXPIRY, permission="r"))],
    [identifier("i", policy(permission="au"))],
    [identifier("i", policy(start=START))],
    [identifier(f"i{number}", policy(START, EXPIRY, "raud"[number % 4])) for number in range(5)],
    [identifier("MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=", policy(START, EXPIRY, "raud"))],
]


@pytest.mark.parametrize("given", KEPT)
def test_comes_back_as_it_was_set(table: Table, given: list[str]) -> None:
    answer = put(table, identifiers(*given)).expect(204)
    assert answer.body == b""
    assert get(table) == identifiers(*given)


TIMES = [
    ("2021-06-08", "2021-06-08T00:00:00.0000000Z"),
    ("2021-06-08T02:05Z", "2021-06-08T02:05:00.0000000Z"),
    ("2021-06-08T02:05:09Z", START),
    ("2021-06-08T02:05:09.123456Z", "2021-06-08T02:05:09.1234560Z"),
    ("2021-06-08T02:05:09.1234567Z", "2021-06-08T02:05:09.1234567Z"),
]


@pytest.mark.parametrize(("given", "kept"), TIMES)
def test_times_are_normalised(table: Table, given: str, kept: str) -> None:
    put(table, identifiers(identifier("i", policy(given, EXPIRY, "r")))).expect(204)
    assert get(table) == identifiers(identifier("i", policy(kept, EXPIRY, "r")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        EMPTY,
        "<SignedIdentifiers/>",
        f"{DECLARATION}<SignedIdentifiers></SignedIdentifiers>",
        "\ufeff<SignedIdentifiers/>",
    ],
)
def test_an_empty_document_clears(table: Table, text: str) -> None:
    put(table, identifiers(WHOLE)).expect(204)
    put(table, text).expect(204)
    assert get(table) == EMPTY


def test_setting_replaces_everything(table: Table) -> None:
    put(table, identifiers(WHOLE, identifier("j", policy(START, EXPIRY, "r")))).expect(204)
    put(table, identifiers(identifier("k", policy(START, EXPIRY, "d")))).expect(204)
    assert get(table) == identifiers(identifier("k", policy(START, EXPIRY, "d")))


EMPTY_POLICIES = [
    identifier("i", "<AccessPolicy/>"),
    identifier("i", "<AccessPolicy />"),
    identifier("i"),
    identifier("i", "<AccessPolicy><Start></Start><Expiry></Expiry><Permission></Permission></AccessPolicy>"),
]
PARTIAL = [
    identifier("i", f"<AccessPolicy><Start/><Expiry>{EXPIRY}</Expiry><Permission>r</Permission></AccessPolicy>"),
    identifier("i", f"<AccessPolicy><Permission>r</Permission><Expiry>{EXPIRY}</Expiry></AccessPolicy>"),
]


@pytest.mark.parametrize("given", EMPTY_POLICIES)
def test_a_policy_without_terms_has_no_element(table: Table, given: str) -> None:
    put(table, identifiers(given, WHOLE.replace(">i<", ">whole<"))).expect(204)
    assert get(table) == identifiers(identifier("i"), WHOLE.replace(">i<", ">whole<"))


@pytest.mark.parametrize("given", PARTIAL)
def test_policies_may_be_partial(table: Table, given: str) -> None:
    put(table, identifiers(given)).expect(204)
    assert get(table) == identifiers(identifier("i", policy(expiry=EXPIRY, permission="r")))


INVALID = [identifiers(*(identifier(f"i{number}") for number in range(6)))]
INVALID += ["<SignedIdentifiers>", "nonsense", "<Other/>", "<SignedIdentifiers></Other>", "{}"]
MALFORMED = malformed("raud")


@pytest.mark.parametrize("text", INVALID, ids=lambda text: text[:40])
def test_invalid_documents(table: Table, text: str) -> None:
    put(table, identifiers(WHOLE)).expect(204)
    assert put(table, text).rejection == (400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
    assert get(table) == identifiers(WHOLE)


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_invalid_contents(table: Table, text: str) -> None:
    put(table, identifiers(WHOLE)).expect(204)
    assert put(table, text).code == (400, "InvalidXmlDocument")
    assert get(table) == identifiers(WHOLE)


def test_a_sixth_policy_has_no_details(table: Table) -> None:
    """§25: as recorded."""
    answer = put(table, MALFORMED["six"]).expect(400)
    assert re.findall(r"<m:(\w+)", xml_text(answer.body)) == ["error", "code", "message"]
    assert answer.header("X-Content-Type-Options") is None


@pytest.mark.parametrize("text", ['<!DOCTYPE x [<!ENTITY e "v">]><SignedIdentifiers>&e;</SignedIdentifiers>'])
def test_entities_of_xml_are_not_expanded(table: Table, text: str) -> None:
    assert put(table, text).status == 400


@pytest.mark.parametrize(("method", "text"), [("GET", None), ("PUT", EMPTY)])
def test_access_policies_of_a_missing_table_are_not_found(missing: Table, method: str, text: str | None) -> None:
    answer = missing.client.send(
        method, missing.path, "comp=acl", body=text, headers={"Content-Type": "application/xml" if text else None}
    )
    assert answer.rejection == (404, "ResourceNotFound", "The specified resource does not exist.")
    assert "xml" in answer.required("Content-Type")


def test_head_of_access_policies(table: Table) -> None:
    answer = table.client.send("HEAD", table.path, "comp=acl").expect(200)
    assert answer.body == b""
    assert answer.header("Content-Type") == "application/xml"


@pytest.mark.parametrize("path", ["{path}", "{path}()"])
def test_parentheses_after_the_table_name(table: Table, path: str) -> None:
    table.client.send("GET", path.format(path=table.path), "comp=acl").expect(200)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_is_never_open_to_a_shared_access_signature(table: Table, method: str) -> None:
    for sas in (account_sas(table.client.endpoint, {}), table_sas(table.client.endpoint, table.name, {})):
        answer = table.client.send(
            method, table.path, f"comp=acl&{sas}", body=EMPTY if method == "PUT" else None, signer=anonymous
        )
        assert answer.code == (403, "AuthorizationFailure")


def test_ends_with_the_table(table: Table) -> None:
    put(table, identifiers(WHOLE)).expect(204)
    table.client.send("DELETE", f"/Tables('{table.name}')").expect(204)
    text = f'{{"TableName":"{table.name}"}}'
    answer = table.client.send("POST", "/Tables", body=text)
    if not table.client.endpoint.is_path_style and answer.status == 409:
        pytest.skip("the table is still being deleted")
    answer.expect(201)
    assert get(table) == EMPTY
