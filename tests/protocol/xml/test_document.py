from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml import parser
from lazulite.protocol.xml.parser import ATTRIBUTES_MAX, MARKUP_BYTES_MAX, NAMESPACE_CHARACTERS_MAX

DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>'

BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
<!ENTITY lol3 "&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;">]><lolz>&lol3;</lolz>"""
EXTERNAL_ENTITY = b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>'

LOOKALIKES = "x='y' " * 99

MARKUP = ["<b>", "</b>", "<b c='d>'/>", "<!--", "-->", "<![CDATA[", "]]>", "<?p", "?>", "&lt;", "&#13;", "\r\n", "中"]

xml_text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


def rejection(body: bytes, **limits: int) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        xml.parse(body, **limits)
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"garbage",
        b"<a>",
        b"<a></b>",
        b"<a/><b/>",
        b"<a>&undefined;</a>",
        b"<a x='1' x='2'/>",
        b"<a>\x00</a>",
        b"<a>&#0;</a>",
        b"<a>\xff</a>",
        b"<p:a/>",
        BILLION_LAUGHS,
        EXTERNAL_ENTITY,
        b"<!DOCTYPE a><a/>",
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a/>',
        # In another encoding the check for a DOCTYPE would not see it: only UTF-8 is read.
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><a/>'.encode("utf-16"),
        b'<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE a+AD4-<a/>',
    ],
)
def test_what_is_not_plain_xml_is_rejected(body: bytes) -> None:
    error = rejection(body)
    assert (error.status, error.code) == (400, "InvalidXmlDocument")
    assert "Reason" in dict(error.details)


def test_a_syntax_error_is_located() -> None:
    assert dict(rejection(b"<a>\n</b>").details)["LineNumber"] == "2"


def test_the_size_is_bounded() -> None:
    assert rejection(b"<a x='" + b"y" * xml.BYTES_MAX + b"'/>").code == "RequestBodyTooLarge"


def test_a_huge_attribute_within_the_size_is_read() -> None:
    assert xml.parse(b"<a x='" + b"y" * (xml.BYTES_MAX - 100) + b"'/>").name == "a"


def test_the_number_of_elements_is_bounded() -> None:
    assert len(xml.parse(b"<a>" + b"<b/>" * 9 + b"</a>", max_elements=10).children) == 9
    assert rejection(b"<a>" + b"<b/>" * 10 + b"</a>", max_elements=10).code == "InvalidXmlDocument"


@pytest.mark.parametrize("depth", [xml.DEPTH_MAX + 1, 300, 5_000])
def test_the_depth_is_bounded(depth: int) -> None:
    assert rejection(b"<a>" * depth + b"</a>" * depth).code == "InvalidXmlDocument"


def test_the_greatest_depth_is_read() -> None:
    assert xml.parse(b"<a>" * xml.DEPTH_MAX + b"</a>" * xml.DEPTH_MAX).name == "a"


def test_what_surrounds_the_text_is_left_out() -> None:
    node = xml.parse(b"\xef\xbb\xbf" + DECLARATION + b"<a b='1'><!-- c -->x&amp;<![CDATA[<]]><?pi d?></a>")
    assert node == xml.Node("a", "x&<", (), xml.Position(1, len(DECLARATION) + 2), {"b": "1"})


def test_only_one_byte_order_mark_is_skipped() -> None:
    assert rejection(b"\xef\xbb\xbf" * 2 + b"<a/>").code == "InvalidXmlDocument"


def test_a_namespace_is_part_of_the_name() -> None:
    assert xml.parse(b"<a xmlns='urn:x'/>").name == "{urn:x}a"


def test_fields_come_in_any_order() -> None:
    node = xml.parse(b"<a>\n <c>2</c> <b> 1 </b></a>")
    found = xml.fields(node, ("b",), ("c", "d"))
    assert {name: xml.text_of(child) for name, child in found.items()} == {"b": "1", "c": "2"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<a/>", "MissingRequiredXmlNode"),
        (b"<a><b/><x/></a>", "UnsupportedXmlNode"),
        (b"<a><b/><b/></a>", "InvalidXmlDocument"),
        (b"<a>text<b/></a>", "InvalidXmlDocument"),
        (b"<a><b/>text</a>", "InvalidXmlDocument"),
    ],
)
def test_fields_reject(body: bytes, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        xml.fields(xml.parse(body), ("b",), names_code=True)
    assert caught.value.code == code
    with pytest.raises(ServiceError) as unnamed:
        xml.fields(xml.parse(body), ("b",))
    assert (unnamed.value.code, unnamed.value.details) == ("InvalidXmlDocument", caught.value.details)


def test_an_element_with_children_is_no_text() -> None:
    with pytest.raises(ServiceError) as caught:
        xml.text_of(xml.parse(b"<a>x<b/></a>"))
    assert caught.value.code == "InvalidXmlDocument"


def test_documents_begin_with_a_byte_order_mark_and_hold_no_blanks() -> None:
    written = xml.document(xml.element("A", xml.element("B"), xml.leaf("C", "<&>")))
    assert written == b"\xef\xbb\xbf" + DECLARATION + b"<A><B /><C>&lt;&amp;&gt;</C></A>"


def test_attributes_and_their_namespaces_are_read() -> None:
    body = b"<p:a xmlns:p='urn:x' xmlns='urn:y' b='1' p:b='&lt;' xml:lang='en'><c xmlns='' d='2'/><e/></p:a>"
    node = xml.parse(body)
    assert (node.name, [child.name for child in node.children]) == ("{urn:x}a", ["c", "{urn:y}e"])
    assert node.attributes == {"b": "1", "{urn:x}b": "<", "{http://www.w3.org/XML/1998/namespace}lang": "en"}
    assert node.children[0].attributes == {"d": "2"}


@pytest.mark.parametrize(
    "body",
    [
        b"<a p:b=''/>",
        b"<p:a xmlns:p=''/>",
        b"<:a/>",
        b"<a:/>",
        b"<a xmlns:p='u'><p:b:c/></a>",
        b"<?:?><a/>",
        b"<a xmlns:p='u'><?p:b c?></a>",
    ],
)
def test_names_that_no_namespace_explains_are_rejected(body: bytes) -> None:
    assert rejection(body).code == "InvalidXmlDocument"


@pytest.mark.parametrize(
    "body",
    [b"<a>\x01</a>", b"<a>&#1;</a>", b"<a b='\x02'/>", "<a>\uffff</a>".encode(), b"<a>\0</a>", b"<a>", b"<p:a/>"],
)
def test_the_reason_of_a_syntax_error_is_as_recorded(body: bytes) -> None:
    assert dict(rejection(body).details)["Reason"] == "Error parsing Xml content"


def test_attributes_and_namespaces_are_bounded() -> None:
    names = [f"a{index}=''" for index in range(ATTRIBUTES_MAX + 1)]
    assert len(xml.parse(f"<a {' '.join(names[1:])}/>".encode()).attributes) == ATTRIBUTES_MAX
    assert rejection(f"<a {' '.join(names)}/>".encode()).code == "InvalidXmlDocument"
    assert xml.parse(f"<a xmlns='{'u' * NAMESPACE_CHARACTERS_MAX}'/>".encode()).text == ""
    assert rejection(f"<a xmlns='{'u' * (NAMESPACE_CHARACTERS_MAX + 1)}'/>".encode()).code == "InvalidXmlDocument"


def test_attributes_are_counted_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expat takes in all attributes of a tag before it tells of it: half a second for four megabytes."""
    monkeypatch.setattr("xml.parsers.expat.ParserCreate", None)
    for quote in "'\"":
        names = " ".join(f"a{index}\n={quote}>{quote}" for index in range(ATTRIBUTES_MAX + 1))
        for start in ("<a", "<b c='>'></b><a", "<!----><a", "<![CDATA[x]]><a", "<?x '?><a", "<!-- < ' --><a"):
            (reason,) = rejection(f"{start} {names}".encode()).details
            assert reason == ("Reason", "An element has more than 64 attributes.")


@pytest.mark.parametrize(
    "text", ["<![CDATA[<b {}>]]>", "<!--<b {}>-->", "<?b <c {}>?>", "<b>{}</b>", "<b c='>'>{}</b>", "<b/>{}<b/>"]
)
def test_what_only_looks_like_attributes_is_not_counted(text: str) -> None:
    assert xml.parse(f"<a>{text.format(LOOKALIKES)}</a>".encode()).name == "a"


@pytest.mark.parametrize("markup", ["<b c='{}'/>", "<b {}/>", "<!--{}-->", "<?b {}?>"])
def test_length_of_markup_is_bounded(markup: str) -> None:
    """Expat reads each tag, comment and instruction in one call."""
    length = MARKUP_BYTES_MAX - len(markup.format(""))
    for blanks in (length, length + 1):
        document = f"<a>{markup.format(' ' * blanks)}</a>".encode()
        if blanks == length:
            assert large(document).name == "a"
        else:
            (reason,) = rejection(document, max_bytes=1 << 22, max_elements=2048).details
            assert reason == ("Reason", "A tag, comment or instruction is longer than 65536 bytes.")


def large(body: bytes) -> xml.Node:
    return xml.parse(body, max_bytes=1 << 22, max_elements=2048)


@pytest.mark.parametrize("text", ["x", "\n", "&amp;", "]", "中", "<![CDATA[ ]]"])
def test_long_documents_are_read_piece_by_piece(text: str) -> None:
    repeated = text if "CDATA" not in text else f"<b>{text}{'x' * 9_000}]]></b>"
    body = f"<a>{repeated * (1_000_000 // len(repeated))}</a>".encode()
    pauses = sum(1 for _ in xml.parse_in_steps(body, max_bytes=1 << 22, max_elements=2048))
    assert pauses > len(body) // (64 * 1024)


@given(
    st.from_regex(rb"\A<a>[<>/ab&!\[\]\-?;'\"= \r\n]{0,60}</a>\Z")
    | st.lists(
        st.sampled_from(
            [
                "<b>",
                "</b>",
                "<b c='d>'/>",
                "<!--",
                "-->",
                "<![CDATA[",
                "]]>",
                "<?p",
                "?>",
                "&lt;",
                "&#13;",
                "\r\n",
                "中",
                "x",
            ]
        ),
        max_size=12,
    ).map(lambda parts: f"<a>{''.join(parts)}</a>".encode())
)
def test_pieces_make_no_difference(body: bytes) -> None:
    def read(piece_bytes: int) -> xml.Node | dict[str, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parser, "_PIECE", piece_bytes)
            try:
                return xml.parse(body)
            except ServiceError as error:
                return dict(error.details)

    assert read(5) == read(1 << 20)


@pytest.mark.parametrize("length", range(12))
def test_the_end_of_a_section_is_found_wherever_the_search_pauses(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "_PIECE", 5)
    body = f"<a><![CDATA[{'x' * length}]]><b {LOOKALIKES}/></a>".encode()
    (reason,) = rejection(body).details
    assert reason == ("Reason", "An element has more than 64 attributes.")


@pytest.mark.parametrize("text", ["<![CDATA[", "<!--", "<?b "])
def test_markup_without_an_end_is_searched_once(text: str) -> None:
    body = b"<a>" + text.encode() * 8000 + b" " * 3_000_000
    assert rejection(body, max_bytes=1 << 22, max_elements=2048).code == "InvalidXmlDocument"


def test_the_attributes_of_all_elements_are_bounded() -> None:
    element = b"<b " + b" ".join(b"a%d=''" % index for index in range(10)) + b"/>"
    assert len(xml.parse(b"<a>" + element * 4 + b"</a>", max_elements=10).children) == 4
    assert rejection(b"<a>" + element * 5 + b"</a>", max_elements=10).code == "InvalidXmlDocument"


def test_markup_that_makes_no_element_is_bounded_too() -> None:
    assert xml.parse(b"<a>" + b"<!---->" * 38 + b"</a>", max_elements=10).text == ""
    assert rejection(b"<a>" + b"<!---->" * 39 + b"</a>", max_elements=10).code == "InvalidXmlDocument"


@given(xml_text)
def test_text_survives(text: str) -> None:
    assert xml.parse(xml.document(xml.leaf("a", text))).text == text


@given(st.text())
def test_any_text_can_be_written(text: str) -> None:
    xml.parse(xml.document(xml.leaf("a", text)))


@given(st.binary(max_size=200) | st.from_regex(rb"\A<a>[<>/a&!\[\]\-?;'\" ]{0,40}</a>\Z"))
def test_bytes_are_read_or_rejected(body: bytes) -> None:
    with suppress(ServiceError):
        xml.parse(body)


def test_errors_have_the_recorded_form() -> None:
    assert xml.error_document("ResourceNotFound", "Gone.\nRequestId:r") == (
        DECLARATION + b'<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
        b'<m:code>ResourceNotFound</m:code><m:message xml:lang="en-US">Gone.\nRequestId:r</m:message></m:error>'
    )
    with_details = xml.error_document("InvalidXmlDocument", "<bad>", [("Reason", "a & b")])
    namespace = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}"
    assert [(child.tag, child.text) for child in etree.fromstring(with_details)] == [
        (namespace + "code", "InvalidXmlDocument"),
        (namespace + "message", "<bad>"),
        (namespace + "Reason", "a & b"),
    ]


def test_every_element_has_its_position() -> None:
    root = xml.parse(b"<a>\n <!-- <x> --><b/><![CDATA[<y>]]>\n<?pi <z>?>  <c>\n</c></a>")
    assert [root.position, *(child.position for child in root.children)] == [(1, 2), (2, 15), (3, 14)]
    assert dict(rejection(b"<a>\n</b>").details)["LinePosition"]
