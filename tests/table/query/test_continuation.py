import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.table.query.continuation import (
    decode_token,
    encode_token,
    entity_continuation_headers,
    read_entity_continuation,
)


@pytest.mark.parametrize(("key", "token"), [("Smith", "1!8!U21pdGg-"), ("Ben1898", "1!12!QmVuMTg5OA--")])
def test_recorded_tokens(key: str, token: str) -> None:
    assert encode_token(key) == token
    assert decode_token(token) == key


@given(st.text())
def test_tokens_round_trip_and_are_safe_in_headers_and_urls(key: str) -> None:
    token = encode_token(key)
    assert token.isascii()
    assert not set(token) & set("+/=% \r\n")
    assert decode_token(token) == key


@pytest.mark.parametrize("key", ["", "raw", "1x", "1!", "O'Neil"])
def test_raw_keys_are_accepted(key: str) -> None:
    assert decode_token(key) == key


@pytest.mark.parametrize("token", ["1!8!U21pdGg", "1!4!****", "1!4!/+/+", "1!1!-", "1!4!_wAA"])
def test_tokens_never_given_out(token: str) -> None:
    with pytest.raises(ServiceError) as caught:
        decode_token(token)
    assert caught.value.code == "InvalidQueryParameterValue"


def test_the_headers_lead_back() -> None:
    headers = dict(entity_continuation_headers(("p", "r")))
    parameters = {name.removeprefix("x-ms-continuation-").lower(): value for name, value in headers.items()}
    assert read_entity_continuation(parameters) == ("p", "r")
    assert read_entity_continuation({}) is None
    assert read_entity_continuation({"nextpartitionkey": "p"}) == ("p", "")
