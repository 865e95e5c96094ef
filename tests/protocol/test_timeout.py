import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.timeout import REQUEST_SECONDS_MAX, read_timeout


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, REQUEST_SECONDS_MAX), ("", 30), ("0", 1), ("7", 7), ("30", 30), ("9999999999", 30)]
)
def test_timeouts(text: str | None, seconds: int) -> None:
    assert read_timeout({} if text is None else {"timeout": text}) == seconds


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "9" * 11, "٣"])
def test_rejections(text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read_timeout({"timeout": text})
    assert caught.value.code == "InvalidQueryParameterValue"
    assert list(caught.value.details) == [("QueryParameterName", "timeout"), ("QueryParameterValue", text)]


def test_a_rejection_repeats_the_beginning_of_a_long_value() -> None:
    with pytest.raises(ServiceError) as caught:
        read_timeout({"timeout": "a" * 64 + "b" * 64})
    assert caught.value.details[1] == ("QueryParameterValue", "a" * 64)
