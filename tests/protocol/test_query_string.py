import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import (
    MAX_PARAMETERS,
    REQUEST_SECONDS_MAX,
    parse_query_string,
    percent_decode,
    read_timeout,
    repeated_names,
)


@pytest.mark.parametrize(
    ("raw", "parameters"),
    [
        ("", {}),
        ("a=1&b=2", {"a": "1", "b": "2"}),
        ("Comp=ACL&NextRowKey=x", {"comp": "ACL", "nextrowkey": "x"}),
        ("$Filter=x&$filter=y", {"$Filter": "x", "$filter": "y"}),
        ("%24filter=a+b%2Bc", {"$filter": "a b+c"}),
        ("a=1&A=2&a=3", {"a": "1"}),
        ("a&b=&=c&&d==", {"a": "", "b": "", "d": "="}),
        ("k=%F0%9F%98%80", {"k": "😀"}),
        ("k=\u00c3\u00b4", {"k": "ô"}),
        ("k=%2520", {"k": "%20"}),
    ],
)
def test_parameters(raw: str, parameters: dict[str, str]) -> None:
    assert dict(parse_query_string(raw)) == parameters
    assert dict(parse_query_string(raw + "&" * (raw != "") + "pad=" + "x" * 2000))["pad"] == "x" * 2000


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("", set()),
        ("a=1&b=1", set()),
        ("a=1&a=1", {"a"}),
        ("a&A=2&%41=3", {"a"}),
        ("$a=1&$A=1", set()),
        ("%24a=1&$a=1", {"$a"}),
        ("a+b=1&a%20b=2", {"a b"}),
        ("=1&=2&&", set()),
        ("a=1&b=1&a=2&b=2&c=3", {"a", "b"}),
    ],
)
def test_repeated_names(raw: str, names: set[str]) -> None:
    assert repeated_names(raw) == names


@pytest.mark.parametrize(
    ("raw", "code"),
    [("a=%FF", "RequestUrlFailedToParse"), ("&".join(["a=1"] * (MAX_PARAMETERS + 1)), "InvalidUri")],
)
def test_rejections(raw: str, code: str) -> None:
    with pytest.raises(ServiceError, match=code):
        parse_query_string(raw)


@given(st.text(st.characters(max_codepoint=255)))
def test_rubbish_is_rejected_or_read(raw: str) -> None:
    try:
        parse_query_string(raw)
        percent_decode(raw)
    except ServiceError as error:
        assert error.status == 400


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, REQUEST_SECONDS_MAX), ("", 30), ("0", 1), ("7", 7), ("30", 30), ("9999999999", 30)]
)
def test_timeouts(text: str | None, seconds: int) -> None:
    assert read_timeout({} if text is None else {"timeout": text}) == seconds


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "9" * 11, "٣"])
def test_a_timeout_is_an_integer(text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read_timeout({"timeout": text})
    assert caught.value.code == "InvalidQueryParameterValue"
    assert list(caught.value.details) == [("QueryParameterName", "timeout"), ("QueryParameterValue", text)]


def test_a_rejection_repeats_the_beginning_of_a_long_value() -> None:
    with pytest.raises(ServiceError) as caught:
        read_timeout({"timeout": "a" * 64 + "b" * 64})
    assert caught.value.details[1] == ("QueryParameterValue", "a" * 64)
