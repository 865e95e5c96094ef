"""Reference §10.8: the `timeout` parameter."""

import pytest

from .client import Client


@pytest.mark.parametrize("value", ["1", "30", "31", "90", "100000"])
def test_timeout_seconds_are_accepted(client: Client, value: str) -> None:
    client.send("GET", "/Tables", f"$top=1&timeout={value}").expect(200)


@pytest.mark.parametrize("value", ["abc", "1s", "1.5x", "ten"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/Tables"), ("GET", "/nosuchtable"), ("POST", "/nosuchtable")])
def test_anything_but_a_number(client: Client, method: str, path: str, value: str) -> None:
    body = '{"PartitionKey":"p","RowKey":"r"}' if method == "POST" else None
    answer = client.send(method, path, f"timeout={value}", body=body)
    message = "Value for one of the query parameters specified in the request URI is invalid."
    assert answer.rejection == (400, "InvalidQueryParameterValue", message)


@pytest.mark.unverified
@pytest.mark.parametrize("value", ["0", "-1", ""])
def test_odd_numbers_are_answered(client: Client, value: str) -> None:
    answer = client.send("GET", "/Tables", f"$top=1&timeout={value}")
    assert answer.status in {200, 400, 500}
