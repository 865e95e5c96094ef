"""Reference §7: what an Atom body may say, and what is rejected."""

import pytest

from .atom import ERROR_TYPE, NAMESPACES, VERSIONS, element, entity, entry, old, read_entry, writing
from .tables import Table
from .tables import entity as json_entity

TYPED = [
    (element("A", "x"), "x"),
    (element("A", "", "Edm.String"), ""),
    ("<d:A> \n x\t</d:A>", " \n x\t"),
    ('<d:A xml:space="preserve">  </d:A>', "  "),
    ("<d:A><![CDATA[<b>&]]></d:A>", "<b>&"),
    ("<d:A>&#x1F600;&#xD;&#10;</d:A>", "😀\r\n"),
    (element("A", "true", "Edm.Boolean"), True),
    (element("A", "0", "Edm.Boolean"), False),
    (element("A", " 7 ", "Edm.Int32"), 7),
    (element("A", "3", "Edm.Double"), 3.0),
    (element("A", "4.94065645841247E-324", "Edm.Double"), 5e-324),
    (element("A", "INF", "Edm.Double"), "Infinity"),
    (element("A", "-INF", "Edm.Double"), "-Infinity"),
    (element("A", "NaN", "Edm.Double"), "NaN"),
    (element("A", "-9223372036854775808", "Edm.Int64"), "-9223372036854775808"),
    (element("A", "2008-07-10T00:00:00", "Edm.DateTime"), "2008-07-10T00:00:00Z"),
    (element("A", "2008-07-10T02:00:00.1234567+02:00", "Edm.DateTime"), "2008-07-10T00:00:00.1234567Z"),
    (element("A", "C9DA6455-213D-42C9-9A79-3E9149A57833", "Edm.Guid"), "c9da6455-213d-42c9-9a79-3e9149a57833"),
    (element("A", "AAEC\nAw==", "Edm.Binary"), "AAECAw=="),
]


@pytest.mark.parametrize(("markup", "value"), TYPED)
def test_a_value_means_the_same_in_json(table: Table, markup: str, value: object) -> None:
    table.client.send("POST", table.path, headers=writing(), body=entity("p", "r", markup)).expect(201)
    assert table.get().json()["A"] == value


@pytest.mark.parametrize("version", VERSIONS)
def test_every_write_with_an_atom_body(table: Table, version: str) -> None:
    def write(method: str, path: str, body: str, **changes: str | None) -> None:
        answer = table.client.send(method, path, headers=writing(version, **changes), body=body)
        answer.expect(201 if method == "POST" and "X_HTTP_Method" not in changes else 204)

    def stored() -> dict[str, object]:
        return dict(table.get(accept="application/json;odata=nometadata").json())

    write("POST", table.path, entity("p", "r", element("A", "1", "Edm.Int32"), element("B", "b")))
    write("MERGE", table.at(), entity("p", "r", element("A", "2", "Edm.Int32"), '<d:B m:null="true"/>'), If_Match="*")
    assert (stored()["A"], stored()["B"]) == (2, "b")
    tag = table.get().etag
    write("PUT", table.at(), entity("p", "r", element("C", "c")), If_Match=tag)
    assert set(stored()) == {"PartitionKey", "RowKey", "Timestamp", "C"}
    write("POST", table.at(), entity("p", "r", element("D", "d")), If_Match="*", X_HTTP_Method="MERGE")
    assert (stored()["C"], stored()["D"]) == ("c", "d")
    stale = table.client.send("DELETE", table.at(), headers=old(version, If_Match=tag))
    assert stale.code == (412, "UpdateConditionNotSatisfied")
    assert stale.header("Content-Type") == ERROR_TYPE
    table.client.send("DELETE", table.at(), headers=old(version, If_Match="*")).expect(204)


def test_upserts_with_an_atom_body(table: Table) -> None:
    for method, markup in (("PUT", element("A", "a")), ("MERGE", element("B", "b"))):
        table.client.send(method, table.at(), headers=writing(), body=entity("p", "r", markup)).expect(204)
    found = table.get().json()
    assert (found["A"], found["B"]) == ("a", "b")


def test_keys_may_be_left_out_of_an_update(table: Table) -> None:
    table.add(json_entity("p", "r"))
    body = entry(element("A", "a"))
    table.client.send("MERGE", table.at(), headers=writing(If_Match="*"), body=body).expect(204)
    assert table.get().json()["A"] == "a"


KEYS = element("PartitionKey", "p") + element("RowKey", "r")
REJECTED = [
    ("", "InvalidInput"),
    ("{}", "InvalidInput"),
    ("<entry/>", "InvalidInput"),
    (f"<entry {NAMESPACES}/>", "InvalidInput"),
    (entity().replace("entry", "feed"), "InvalidInput"),
    (entity()[:-1], "InvalidInput"),
    ("<!DOCTYPE entry [<!ENTITY e 'x'>]>" + entity("p", "r", "<d:A>&e;</d:A>").partition("?>")[2], "InvalidInput"),
    (entity("p", "r", "<d:A>\x01</d:A>"), "InvalidInput"),
    (entity("p", "r", "<d:A>&#x1;</d:A>"), "InvalidInput"),
    (entity("p", "r", "<d:A>&#xD800;</d:A>"), "InvalidInput"),
    (entity("p", "r", "<d:A>\uffff</d:A>"), "InvalidInput"),
    (entity("p", "r", "<d:A><d:B/></d:A>"), "InvalidInput"),
    (entity("p", "r", "<A>1</A>"), "InvalidInput"),
    (entity("p", "r", element("A", "x", "Edm.Int32")), "InvalidInput"),
    (entity("p", "r", element("A", "2147483648", "Edm.Int32")), "InvalidInput"),
    (entity("p", "r", element("A", "1e400", "Edm.Double")), "InvalidInput"),
    (entity("p", "r", element("A", "x", "Edm.Nothing")), "InvalidInput"),
    (entity("p", "r", element("A", "1500-01-01T00:00:00Z", "Edm.DateTime")), "OutOfRangeInput"),
    (entity("p", "r", element("A", "x"), element("A", "y")), "DuplicatePropertiesSpecified"),
    (entity("p", "r", element("a-b", "x")), "PropertyNameInvalid"),
    (entity("p", "r", *(element(f"P{i}", "x") for i in range(253))), "TooManyProperties"),
    (entity("p", "r", element("A", "x" * 32_769)), "PropertyValueTooLarge"),
    (entity("p/q", "r"), "OutOfRangeInput"),
    (entry(element("PartitionKey", "p")), "PropertiesNeedValue"),
    (entry(element("PartitionKey", "p"), '<d:RowKey m:null="true"/>'), "PropertiesNeedValue"),
    (entry(element("PartitionKey", "1", "Edm.Int32"), element("RowKey", "r")), "InvalidInput"),
]


@pytest.mark.parametrize(("body", "code"), REJECTED)
def test_a_body_is_rejected_and_changes_nothing(table: Table, body: str, code: str) -> None:
    answer = table.client.send("POST", table.path, headers=writing(), body=body)
    assert answer.code == (400, code)
    assert answer.header("Content-Type") == ERROR_TYPE
    assert table.page().rows == []


@pytest.mark.parametrize("body", ["", entry(), entry(element("TableName", "")), entry(element("Name", "abc"))])
def test_a_create_table_without_a_name_is_rejected(table: Table, body: str) -> None:
    assert table.client.send("POST", "/Tables", headers=writing(), body=body).code == (400, "InvalidInput")


def test_large_entity_in_an_atom_body(table: Table) -> None:
    """As much as an entity may hold, in as many characters as that can take."""
    body = entity("p", "r", *(element(f"P{i:02}", "&" * 32_768) for i in range(15)))
    answer = table.client.send("POST", table.path, headers=writing(), body=body).expect(201)
    assert read_entry(answer).properties["P14"] == ("Edm.String", "&" * 32_768)
    more = entity("p", "s", *(element(f"P{i:02}", "x" * 32_768) for i in range(16)))
    assert table.client.send("POST", table.path, headers=writing(), body=more).code == (400, "EntityTooLarge")
