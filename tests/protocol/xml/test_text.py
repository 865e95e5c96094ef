import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from lazulite.protocol.xml.text import attribute, content, is_name, is_text


@pytest.mark.parametrize("text", ["a", "_", "A1", "a-b", "a.b", "ô", "日本", "Ω1"])
def test_names(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text", ["", "1", "-a", ".a", "a b", "a:b", "<", "a/", "a>", "a=", "a'", "µ", "²", "a\0", "\ud800"]
)
def test_no_names(text: str) -> None:
    assert not is_name(text)


@given(st.text(max_size=4))
def test_a_name_is_one_to_another_parser_too(text: str) -> None:
    if is_name(text):
        assert etree.fromstring(f"<{text}/>".encode()).tag == text


@given(st.text(max_size=8))
def test_text_that_xml_can_carry_comes_back(text: str) -> None:
    element = etree.fromstring(f'<a b="{attribute(text)}">{content(text)}</a>'.encode())
    if is_text(text):
        assert (element.get("b"), element.text or "") == (text, text)
    else:
        assert "\ufffd" in (element.text or "")
