"""Markers of lists, which clients send back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.requests.paging import LAST_TIME, Marker, read_marker, write_marker
from lazulite.protocol.errors import ServiceError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=1024)


@given(st.builds(Marker, NAMES, st.sampled_from([LAST_TIME, "2019-06-17T23:55:48.8621956Z", ""])))
def test_a_marker_survives_the_wire(marker: Marker) -> None:
    text = write_marker(marker)
    assert read_marker(text) == marker
    assert "=" not in text


@given(st.text() | st.binary().map(lambda content: f"2!{len(content)}!{content.hex()}"))
def test_any_text_is_a_marker_or_rejected(text: str) -> None:
    try:
        read_marker(text)
    except ServiceError as error:
        assert error.code == "InvalidQueryParameterValue"
        assert error.details[:2] == (("QueryParameterName", "marker"), ("QueryParameterValue", text[:256]))


def test_a_marker_to_the_byte() -> None:
    assert write_marker(Marker("a")) == "2!60!MDAwMDAxIWEhMDAwMDI4ITk5OTktMTItMzFUMjM6NTk6NTkuOTk5OTk5OVoh"
    assert write_marker(Marker("blob1")) == "2!68!MDAwMDA1IWJsb2IxITAwMDAyOCE5OTk5LTEyLTMxVDIzOjU5OjU5Ljk5OTk5OTlaIQ--"
    assert read_marker("") is None


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "1!4!AAAA",
        "2!5!AAAA",
        "2!4!AA==",
        write_marker(Marker("a")) + "-",
        write_marker(Marker("a"))[:-4],
        "2!" + "A" * 9000,
        "2!16!MDAwMDAxIWEh----",
        "2!12!MDAwMDA5IWEh",
    ],
)
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ServiceError):
        read_marker(text)
