import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.table.method_override import effective_method


def test_the_method_is_the_requests_unless_tunnelled() -> None:
    assert effective_method(Request("PATCH", "/")) == "PATCH"
    assert effective_method(Request("POST", "/", headers={"x-http-method": "merge"})) == "MERGE"


@pytest.mark.parametrize(("method", "value"), [("MERGE", "MERGE"), ("MERGE", " merge "), ("PUT", "PUT")])
def test_a_part_of_a_batch_may_repeat_its_method(method: str, value: str) -> None:
    request = Request(method, "/", headers={"x-http-method": value})
    assert effective_method(request, in_batch=True) == method
    with pytest.raises(ServiceError, match="XMethodNotUsingPost"):
        effective_method(request)


@pytest.mark.parametrize(
    ("method", "value", "code"),
    [
        ("MERGE", "PUT", "XMethodNotUsingPost"),
        ("MERGE", "MERGE, MERGE", "XMethodNotUsingPost"),
        ("POST", "POST", "XMethodIncorrectValue"),
    ],
)
def test_a_part_of_a_batch_names_no_other_method(method: str, value: str, code: str) -> None:
    with pytest.raises(ServiceError, match=code):
        effective_method(Request(method, "/", headers={"x-http-method": value}), in_batch=True)


@pytest.mark.parametrize(
    ("method", "value", "code"),
    [
        ("GET", "MERGE", "XMethodNotUsingPost"),
        ("POST", "MERGE, PUT", "XMethodIncorrectCount"),
        ("POST", "BREW", "XMethodIncorrectValue"),
    ],
)
def test_tunnels_rejected(method: str, value: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        effective_method(Request(method, "/", headers={"x-http-method": value}))
    assert caught.value.code == code
