import pytest

from lazulite.protocol.errors import CATALOGUE, REASONS, ServiceError


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_status_with_a_reason_and_a_message(code: str) -> None:
    error = ServiceError(code)
    assert error.status in REASONS
    assert error.message
    assert code in str(error)


def test_a_code_outside_the_catalogue_is_a_defect() -> None:
    with pytest.raises(KeyError):
        ServiceError("Nonsense")


def test_message_and_status_can_be_replaced() -> None:
    error = ServiceError("InvalidUri", "text", status=414, details=[("A", "b")])
    assert (error.status, error.message, error.details) == (414, "text", (("A", "b"),))
