"""Header fields, and a response's ready opening."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.fields import CHANGING, Fields
from lazulite.protocol.message import Response

NAMES = st.sampled_from(["host", "accept", "x-ms-version", *sorted(CHANGING)])


@given(st.dictionaries(NAMES, st.text(st.characters(max_codepoint=255))))
def test_steady_lines_are_all_but_the_changing_fields(headers: dict[str, str]) -> None:
    fields = Fields.of(headers)
    assert fields == headers
    assert len(fields.steady) == len(headers.keys() - CHANGING)
    assert fields.steady == Fields.of({**headers, "x-ms-date": "another"}).steady


def test_another_value_is_another_head() -> None:
    fields = Fields.of({"host": "a", "accept": "*/*"})
    changed = fields.replaced("host", "b")
    assert (changed["host"], fields["host"]) == ("b", "a")
    assert changed.steady not in (fields.steady, fields.replaced("host", "c").steady)
    assert fields.replaced("host", "b").steady == changed.steady


def test_fields_of_a_response_begin_with_its_opening() -> None:
    response = Response(200, [("Date", "now")], opening='ETag: W/"a: b"\r\nServer: s\r\n')
    assert response.fields() == [("ETag", 'W/"a: b"'), ("Server", "s"), ("Date", "now")]
    assert Response(200, [("Date", "now")]).fields() == [("Date", "now")]
