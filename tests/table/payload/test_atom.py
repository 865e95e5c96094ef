from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model import edm
from lazulite.table.model.edm import EdmType
from lazulite.table.model.entity import Entity
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties
from lazulite.table.payload.atom import (
    BODY_MAX_BYTES,
    ELEMENTS_MAX,
    AtomEntityWriter,
    AtomTableWriter,
    check,
    error_payload,
    read_entity,
    read_table_name,
)
from tests.table.strategies import keys, properties

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


BASE = 'http://a"&<b/acct/'
ESCAPED = "http://a&quot;&amp;&lt;b/acct/"
TICKS = edm.parse_datetime("2017-08-30T13:20:33.413914Z")
DECLARATION = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>'
WRITTEN_NAMESPACES = (
    'xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
    'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" xmlns="http://www.w3.org/2005/Atom"'
)
SCHEME = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme"
ETAG = "m:etag=\"W/&quot;datetime'2017-08-30T13%3A20%3A33.413914Z'&quot;\""
UPDATED = "<updated>2017-08-30T13:20:33Z</updated>"


def row(partition_key: str, row_key: str, values: dict[str, Property]) -> bytes:
    return assemble(TICKS, encode_keys(partition_key, row_key), encode_properties(values))


def prop(edm_type: edm.EdmType, value: edm.Json) -> Property:
    return Property(edm_type, edm_type.literal(value))


VALUES = {
    "Name": prop(edm.STRING, "<x> & 'y'"),
    "Blank": prop(edm.STRING, " \n"),
    "Return": prop(edm.STRING, "a\r"),
    "Empty": prop(edm.STRING, ""),
    "Astral": prop(edm.STRING, "é\U0001f600"),
    "Id": prop(edm.INT64, "5"),
    "Rate": prop(edm.DOUBLE, "NaN"),
    "High": prop(edm.DOUBLE, "Infinity"),
    "Low": prop(edm.DOUBLE, "-Infinity"),
    "Ten": prop(edm.DOUBLE, 10.0),
    "Big": prop(edm.DOUBLE, 1e300),
    "Age": prop(edm.INT32, 23),
    "Is": prop(edm.BOOLEAN, True),
    "When": prop(edm.DATETIME, "2008-07-10T00:00:00"),
    "Guid": prop(edm.GUID, "C9DA6455-213D-42C9-9A79-3E9149A57833"),
    "Bytes": prop(edm.BINARY, "AAEC"),
}
ROW = row("O'Neil", "r", VALUES)
PROPERTIES = (
    "<d:PartitionKey>O'Neil</d:PartitionKey><d:RowKey>r</d:RowKey>"
    '<d:Timestamp m:type="Edm.DateTime">2017-08-30T13:20:33.413914Z</d:Timestamp>'
    "<d:Name>&lt;x&gt; &amp; 'y'</d:Name>"
    '<d:Blank xml:space="preserve"> \n</d:Blank><d:Return xml:space="preserve">a&#xD;</d:Return>'
    "<d:Empty></d:Empty><d:Astral>é\U0001f600</d:Astral>"
    '<d:Id m:type="Edm.Int64">5</d:Id><d:Rate m:type="Edm.Double">NaN</d:Rate><d:High m:type="Edm.Double">INF</d:High>'
    '<d:Low m:type="Edm.Double">-INF</d:Low><d:Ten m:type="Edm.Double">10</d:Ten>'
    '<d:Big m:type="Edm.Double">1E+300</d:Big><d:Age m:type="Edm.Int32">23</d:Age>'
    '<d:Is m:type="Edm.Boolean">true</d:Is><d:When m:type="Edm.DateTime">2008-07-10T00:00:00Z</d:When>'
    '<d:Guid m:type="Edm.Guid">c9da6455-213d-42c9-9a79-3e9149a57833</d:Guid><d:Bytes m:type="Edm.Binary">AAEC</d:Bytes>'
)


def written_entry(attributes: str, title: str, link: str, content: str) -> str:
    return (
        f'<entry{attributes}><id>http://a"&amp;&lt;b/acct/{link}</id><title type="text"></title>{UPDATED}'
        f'<author><name /></author><link rel="edit" title="{title}" href="{link}" />'
        f'<category term="acct.{title}" scheme="{SCHEME}" />'
        f'<content type="application/xml"><m:properties>{content}</m:properties></content></entry>'
    )


LINK = "T(PartitionKey='O''Neil',RowKey='r')"
ROOT = f' xml:base="{ESCAPED}" {WRITTEN_NAMESPACES}'


def writer(select: list[str] | None = None) -> AtomEntityWriter:
    return AtomEntityWriter(BASE, "acct", "T", TICKS, select)


def test_an_entity() -> None:
    assert writer().entity(ROW).decode() == DECLARATION + written_entry(f"{ROOT} {ETAG}", "T", LINK, PROPERTIES)


def feed(title: str, rest: str) -> str:
    return (
        f'{DECLARATION}<feed{ROOT}><title type="text">{title}</title><id>http://a"&amp;&lt;b/acct/{title}</id>'
        f"{UPDATED}{rest}</feed>"
    )


def test_a_feed() -> None:
    written = writer()
    entries = written_entry(f" {ETAG}", "T", LINK, PROPERTIES) * 2
    expected = feed("T", f'<link rel="self" title="T" href="T" />{entries}')
    assert written.feed(empty=False).whole([written.item(ROW), written.item(ROW)]).decode() == expected


def test_an_empty_feed_has_an_author() -> None:
    expected = feed("T", '<author><name /></author><link rel="self" title="T" href="T" />')
    assert writer().feed(empty=True).whole([]).decode() == expected


def test_a_projection_has_nulls_for_what_is_not_there() -> None:
    wanted = '<d:Id m:type="Edm.Int64">5</d:Id><d:Gone m:null="true" /><d:RowKey>r</d:RowKey>'
    written = writer(["Id", "Gone", "RowKey", "Id"])
    assert written.item(ROW).decode() == written_entry(f" {ETAG}", "T", LINK, wanted)


@pytest.mark.parametrize("name", ["a b", "<x>", "a:b", "", "1a", '"', "a/>", "²"])
def test_only_names_can_be_selected(name: str) -> None:
    with pytest.raises(ServiceError) as caught:
        writer(["Id", name])
    assert caught.value.code == "InvalidInput"


def test_tables() -> None:
    written = AtomTableWriter(BASE, "acct", TICKS)
    content = "<d:TableName>Abc</d:TableName>"
    assert written.table("Abc").decode() == DECLARATION + written_entry(ROOT, "Tables", "Tables('Abc')", content)
    entries = written_entry("", "Tables", "Tables('Abc')", content)
    assert written.feed(["Abc"]).decode() == feed(
        "Tables", f'<link rel="self" title="Tables" href="Tables" />{entries}'
    )
    empty = '<author><name /></author><link rel="self" title="Tables" href="Tables" />'
    assert written.feed([]).decode() == feed("Tables", empty)


def test_an_error() -> None:
    error = ServiceError("InvalidInput", "<bad> \x01")
    assert error_payload(error, "id", "2017-08-30T13:20:33.4139140Z").decode() == (
        f'{DECLARATION}<error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
        '<code>InvalidInput</code><message xml:lang="en-US">&lt;bad&gt; \ufffd\nRequestId:id\n'
        "Time:2017-08-30T13:20:33.4139140Z</message></error>"
    )


@pytest.mark.parametrize(
    ("partition_key", "values", "named"),
    [
        ("p", {"Text": prop(edm.STRING, "a\x01")}, "Text"),
        ("p", {"Text": prop(edm.STRING, "\ud800")}, "Text"),
        ("p", {"Text": prop(edm.STRING, "\ufffe")}, "Text"),
        ("\uffff", {}, "PartitionKey"),
    ],
)
def test_what_xml_cannot_carry_is_rejected_by_name(partition_key: str, values: dict[str, Property], named: str) -> None:
    for attempt in (
        lambda: writer().entity(row(partition_key, "r", values)),
        lambda: writer().item(row(partition_key, "r", values)),
        lambda: finish(check(partition_key, "r", values)),
    ):
        with pytest.raises(ServiceError) as caught:
            attempt()
        assert (caught.value.status, caught.value.code) == (415, "AtomFormatNotSupported")
        assert f"The property '{named}' of the entity" in caught.value.message
        assert "RowKey='r'" in caught.value.message


def test_what_is_not_selected_does_not_matter() -> None:
    value = row("p", "r", {"Text": prop(edm.STRING, "a\x01"), "Age": prop(edm.INT32, 1)})
    assert b'<d:Age m:type="Edm.Int32">1</d:Age>' in writer(["Age"]).item(value)


@given(keys, keys, properties, st.text(max_size=5))
def test_a_document_is_well_formed_or_rejected(
    partition_key: str, row_key: str, values: dict[str, Property], text: str
) -> None:
    """The judge is another parser than the one that reads what clients send."""
    values = {**values, "Text": prop(edm.STRING, text)}
    try:
        body = writer().entity(row(partition_key, row_key, values))
    except ServiceError as error:
        assert error.code == "AtomFormatNotSupported"
        return
    finish(check(partition_key, row_key, values))
    found = etree.fromstring(body).find(".//{*}Text")
    assert found is not None
    assert (found.text or "") == text
