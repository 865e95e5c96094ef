import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model import date_time, edm, literals
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties
from lazulite.table.payload.atom_writer import AtomEntityWriter, AtomTableWriter, check, error_payload
from tests.table.strategies import keys, properties

BASE = 'http://a"&<b/acct/'
ESCAPED = "http://a&quot;&amp;&lt;b/acct/"
TICKS = date_time.parse_datetime("2017-08-30T13:20:33.413914Z")
DECLARATION = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>'
NAMESPACES = (
    'xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
    'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata" xmlns="http://www.w3.org/2005/Atom"'
)
SCHEME = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme"
ETAG = "m:etag=\"W/&quot;datetime'2017-08-30T13%3A20%3A33.413914Z'&quot;\""
UPDATED = "<updated>2017-08-30T13:20:33Z</updated>"


def row(partition_key: str, row_key: str, values: dict[str, Property]) -> bytes:
    return assemble(TICKS, encode_keys(partition_key, row_key), encode_properties(values))


def prop(edm_type: edm.EdmType, value: literals.Json) -> Property:
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


def entry(attributes: str, title: str, link: str, content: str) -> str:
    return (
        f'<entry{attributes}><id>http://a"&amp;&lt;b/acct/{link}</id><title type="text"></title>{UPDATED}'
        f'<author><name /></author><link rel="edit" title="{title}" href="{link}" />'
        f'<category term="acct.{title}" scheme="{SCHEME}" />'
        f'<content type="application/xml"><m:properties>{content}</m:properties></content></entry>'
    )


LINK = "T(PartitionKey='O''Neil',RowKey='r')"
ROOT = f' xml:base="{ESCAPED}" {NAMESPACES}'


def writer(select: list[str] | None = None) -> AtomEntityWriter:
    return AtomEntityWriter(BASE, "acct", "T", TICKS, select)


def test_an_entity() -> None:
    assert writer().entity(ROW).decode() == DECLARATION + entry(f"{ROOT} {ETAG}", "T", LINK, PROPERTIES)


def feed(title: str, rest: str) -> str:
    return (
        f'{DECLARATION}<feed{ROOT}><title type="text">{title}</title><id>http://a"&amp;&lt;b/acct/{title}</id>'
        f"{UPDATED}{rest}</feed>"
    )


def test_a_feed() -> None:
    written = writer()
    entries = entry(f" {ETAG}", "T", LINK, PROPERTIES) * 2
    expected = feed("T", f'<link rel="self" title="T" href="T" />{entries}')
    assert written.feed(empty=False).whole([written.item(ROW), written.item(ROW)]).decode() == expected


def test_an_empty_feed_has_an_author() -> None:
    expected = feed("T", '<author><name /></author><link rel="self" title="T" href="T" />')
    assert writer().feed(empty=True).whole([]).decode() == expected


def test_a_projection_has_nulls_for_what_is_not_there() -> None:
    wanted = '<d:Id m:type="Edm.Int64">5</d:Id><d:Gone m:null="true" /><d:RowKey>r</d:RowKey>'
    written = writer(["Id", "Gone", "RowKey", "Id"])
    assert written.item(ROW).decode() == entry(f" {ETAG}", "T", LINK, wanted)


@pytest.mark.parametrize("name", ["a b", "<x>", "a:b", "", "1a", '"', "a/>", "²"])
def test_only_names_can_be_selected(name: str) -> None:
    with pytest.raises(ServiceError) as caught:
        writer(["Id", name])
    assert caught.value.code == "InvalidInput"


def test_tables() -> None:
    written = AtomTableWriter(BASE, "acct", TICKS)
    content = "<d:TableName>Abc</d:TableName>"
    assert written.table("Abc").decode() == DECLARATION + entry(ROOT, "Tables", "Tables('Abc')", content)
    entries = entry("", "Tables", "Tables('Abc')", content)
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
