from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model import edm
from lazulite.table.model.edm import EdmType
from lazulite.table.model.entity import Entity
from lazulite.table.model.row import Property
from lazulite.table.payload.atom_reader import BODY_MAX_BYTES, ELEMENTS_MAX, read_entity, read_table_name

KEYS = "<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>"
NAMESPACES = (
    'xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
    'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" xmlns="http://www.w3.org/2005/Atom"'
)
AROUND = '<title/><updated>2009-03-18T11:48:34Z</updated><author><name/></author><id/><content type="application/xml">'


def entry(properties: str, namespaces: str = NAMESPACES) -> bytes:
    inner = f"{AROUND}<m:properties>{properties}</m:properties></content>"
    return f'<?xml version="1.0" encoding="utf-8" standalone="yes"?><entry {namespaces}>{inner}</entry>'.encode()


def value_of(markup: str) -> Property | None:
    return finish(read_entity(entry(KEYS + markup))).properties.get("A")


def rejection(body: bytes) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        finish(read_entity(body))
    return caught.value


@pytest.mark.parametrize(
    ("type_name", "text", "edm_type", "literal"),
    [
        (None, "x", edm.STRING, '"x"'),
        ("Edm.String", "", edm.STRING, '""'),
        ("Edm.String", " \n\tx ", edm.STRING, '" \\n\\tx "'),
        ("Edm.String", "&lt;&amp;&#x1F600;&#xD;", edm.STRING, '"<&\\ud83d\\ude00\\r"'),
        ("Edm.String", "<![CDATA[<b>]]> &gt;<!-- no --> c", edm.STRING, '"<b> > c"'),
        ("Edm.Boolean", "true", edm.BOOLEAN, "true"),
        ("Edm.Boolean", " 1 ", edm.BOOLEAN, "true"),
        ("Edm.Boolean", "0", edm.BOOLEAN, "false"),
        ("Edm.Int32", "-5", edm.INT32, "-5"),
        ("Edm.Int32", "\n 5 \n", edm.INT32, "5"),
        ("Edm.Int64", "9223372036854775807", edm.INT64, '"9223372036854775807"'),
        ("Edm.Double", "10", edm.DOUBLE, "10.0"),
        ("Edm.Double", "1E-3", edm.DOUBLE, "0.001"),
        ("Edm.Double", "INF", edm.DOUBLE, '"Infinity"'),
        ("Edm.Double", "-INF", edm.DOUBLE, '"-Infinity"'),
        ("Edm.Double", "NaN", edm.DOUBLE, '"NaN"'),
        ("Edm.DateTime", "2008-07-10T00:00:00", edm.DATETIME, '"2008-07-10T00:00:00Z"'),
        ("Edm.DateTime", "2008-07-10T02:00:00.5+02:00", edm.DATETIME, '"2008-07-10T00:00:00.5Z"'),
        (
            "Edm.Guid",
            "C9DA6455-213D-42C9-9A79-3E9149A57833",
            edm.GUID,
            '"c9da6455-213d-42c9-9a79-3e9149a57833"',
        ),
        ("Edm.Binary", "AAEC\n  Aw==", edm.BINARY, '"AAECAw=="'),
        ("Edm.Binary", "", edm.BINARY, '""'),
    ],
)
def test_values_are_typed_by_their_attribute(type_name: str | None, text: str, edm_type: EdmType, literal: str) -> None:
    attribute = "" if type_name is None else f' m:type="{type_name}"'
    assert value_of(f"<d:A{attribute}>{text}</d:A>") == Property(edm_type, literal)


@pytest.mark.parametrize(
    "markup",
    [
        '<d:A m:null="true"/>',
        '<d:A m:null="1" m:type="Edm.Guid">whatever</d:A>',
        '<d:A m:null="true"><d:B/></d:A>',
        "",
    ],
)
def test_a_null_is_no_property(markup: str) -> None:
    assert value_of(markup) is None


def test_what_is_not_the_clients_is_ignored() -> None:
    timestamp = '<d:Timestamp m:type="Edm.DateTime">0001-01-01T00:00:00</d:Timestamp>'
    assert finish(read_entity(entry(KEYS + timestamp))) == Entity("p", "r", {})
    assert finish(read_entity(entry(""))) == Entity(None, None, {})
    assert finish(read_entity(entry('<d:PartitionKey m:null="true"/><d:RowKey/>'))) == Entity(None, "", {})


def test_white_space_is_kept_with_and_without_a_wish_for_it() -> None:
    for space in ("", ' xml:space="preserve"', ' xml:space="default"'):
        assert value_of(f"<d:A{space}> \n </d:A>") == Property(edm.STRING, '" \\n "')


def test_prefixes_and_a_byte_order_mark_are_the_clients_choice() -> None:
    body = entry(KEYS).replace(b"d:", b"data:").replace(b"m:", b"meta:").replace(b":d=", b":data=")
    assert finish(read_entity(b"\xef\xbb\xbf" + body.replace(b":m=", b":meta="))) == Entity("p", "r", {})


def test_namespaces_with_https_are_accepted() -> None:
    typed = '<d:A m:type="Edm.Int32">1</d:A>'
    entity = finish(read_entity(entry(KEYS + typed, NAMESPACES.replace("http:", "https:"))))
    assert entity == Entity("p", "r", {"A": Property(edm.INT32, "1")})


def test_properties_may_stand_beside_the_content_as_in_an_entry_with_media() -> None:
    body = f'<entry {NAMESPACES}><content type="image/png" src="x"/><m:properties>{KEYS}</m:properties></entry>'
    assert finish(read_entity(body.encode())) == Entity("p", "r", {})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<entry/>",
        entry("").replace(b"entry", b"feed"),
        f"<entry {NAMESPACES}/>".encode(),
        f"<entry {NAMESPACES}><content><m:properties/><m:properties/></content></entry>".encode(),
        entry(KEYS + "<A>1</A>"),
        entry(KEYS + "<m:A>1</m:A>"),
        entry(KEYS + "<d:A><d:B>1</d:B></d:A>"),
        entry(KEYS + '<d:A m:type="Edm.Nothing">1</d:A>'),
        entry(KEYS + '<d:A m:type="">1</d:A>'),
        entry(KEYS + '<d:A m:type="Edm.Int32"></d:A>'),
        entry(KEYS + '<d:A m:type="Edm.Int32">2147483648</d:A>'),
        entry(KEYS + '<d:A m:type="Edm.Boolean">2</d:A>'),
        entry('<d:PartitionKey m:type="Edm.Int32">1</d:PartitionKey>'),
        entry(KEYS + "<d:A>\x01</d:A>"),
        entry(KEYS + "<d:A>&#xD800;</d:A>"),
        entry(KEYS + "<d:A>&e;</d:A>"),
        b"<!DOCTYPE entry [<!ENTITY e 'x'>]>" + entry(KEYS + "<d:A>&e;</d:A>")[55:],
        entry(KEYS).decode().encode("utf-16"),
        b"<a>" * 5_000,
    ],
)
def test_malformed_bodies(body: bytes) -> None:
    error = rejection(body)
    assert (error.status, error.code) == (400, "InvalidInput")


def test_an_illegal_character_is_located() -> None:
    body = entry(KEYS + "<d:A>\n\x01</d:A>")
    assert "LineNumber: 2" in rejection(body).message
    assert "Error parsing Xml content" in rejection(body).message


@pytest.mark.parametrize(
    ("markup", "code"),
    [
        ("<d:A>1</d:A><d:A>2</d:A>", "DuplicatePropertiesSpecified"),
        ("<d:RowKey>2</d:RowKey>", "DuplicatePropertiesSpecified"),
        ("<d:odata.type>1</d:odata.type>", "PropertyNameInvalid"),
        ("<d:a-b>1</d:a-b>", "PropertyNameInvalid"),
        (f"<d:{'a' * 256}>1</d:{'a' * 256}>", "PropertyNameTooLong"),
        ("".join(f"<d:P{i}>1</d:P{i}>" for i in range(253)), "TooManyProperties"),
        ('<d:A m:type="Edm.DateTime">1500-01-01T00:00:00Z</d:A>', "OutOfRangeInput"),
        (f"<d:A>{'a' * 32_769}</d:A>", "PropertyValueTooLarge"),
    ],
)
def test_violations(markup: str, code: str) -> None:
    assert rejection(entry(KEYS + markup)).code == code


def test_the_name_of_a_table() -> None:
    assert finish(read_table_name(entry("<d:TableName>Movies</d:TableName>"))) == "Movies"


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "<d:TableName/>",
        '<d:TableName m:null="true"/>',
        '<d:TableName m:type="Edm.Int32">1</d:TableName>',
        "<d:Name>x</d:Name>",
        "<d:TableName>x</d:TableName><d:A>1</d:A>",
    ],
)
def test_no_name_of_a_table(properties: str) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        finish(read_table_name(entry(properties)))


PIECES = [b"<", b"/>", b">", b"</entry>", b"<d:A", b' m:type="Edm.Int32"', b' m:null="true"', b"&#1;", b"&lt;", b"]]>"]
PIECES += [
    b"<![CDATA[",
    b"<!--",
    b"-->",
    b"<?x?>",
    b'xmlns:d=""',
    b"\xff",
    b"\0",
    b"1",
    "é".encode(),
    b"<m:properties>",
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join), st.integers(0, 700))
def test_any_bytes_are_read_or_rejected(piece: bytes, at: int) -> None:
    whole = entry(KEYS + '<d:A m:type="Edm.Double">1</d:A>')
    for body in (piece, whole[:at] + piece + whole[at:], whole[:at] + piece):
        with suppress(ServiceError):
            finish(read_entity(body))


@given(st.binary(max_size=80))
def test_rubbish_is_rejected(body: bytes) -> None:
    with pytest.raises(ServiceError):
        finish(read_entity(body))


@pytest.mark.parametrize(
    "middle",
    [
        b"<d:A/>" * 700_000,
        b"<d:A>" * 800_000,
        b"<d:A " + b" ".join(b"a%d=''" % index for index in range(300_000)) + b"/>",
        b"<d:A xmlns:u='" + b"u" * 2_000_000 + b"'>" + b"<u:b/>" * 4_000 + b"</d:A>",
        b"<!---->" * 500_000,
        b"&lt;" * 1_000_000,
        b"]]" * 2_000_000,
        b"<![CDATA[" * 400_000,
    ],
)
def test_hostile_bodies_are_read_in_linear_time(middle: bytes) -> None:
    """With work that grows faster than the body, this does not end."""
    with suppress(ServiceError):
        finish(read_entity(entry(middle.decode())))


def test_a_body_out_of_all_proportion_is_rejected() -> None:
    assert rejection(b"<a>" + b" " * BODY_MAX_BYTES + b"</a>").code == "RequestBodyTooLarge"
    assert rejection(entry("".join(f"<d:P{i} m:null='1'/>" for i in range(ELEMENTS_MAX)))).code == "InvalidInput"
    assert rejection(entry("".join(f"<d:P{i} m:null='1'/>" for i in range(1_200)))).code == "TooManyProperties"
