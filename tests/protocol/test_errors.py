import pytest

from lazulite.protocol.errors import CATALOGUE, REASONS, ServiceError, register_codes


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_status_with_a_reason_and_a_message(code: str) -> None:
    error = ServiceError(code)
    assert error.status in REASONS
    assert error.message
    assert code in str(error)


def test_a_code_outside_the_catalogue_is_a_defect() -> None:
    with pytest.raises(KeyError):
        ServiceError("Nonsense")


def test_a_registered_code_has_its_status_and_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "QueueNotFound", (404, "The specified queue does not exist."))
    register_codes({"QueueNotFound": (404, "The specified queue does not exist.")})
    error = ServiceError("QueueNotFound")
    assert (error.status, error.message) == (404, "The specified queue does not exist.")


def test_a_code_cannot_be_registered_with_another_meaning() -> None:
    before = dict(CATALOGUE)
    for meaning in [(400, CATALOGUE["ServerBusy"][1]), (503, "Other.")]:
        with pytest.raises(ValueError, match="ServerBusy"):
            register_codes({"NeverRegistered": (404, "None."), "ServerBusy": meaning})
    assert before == CATALOGUE


def test_message_and_status_can_be_replaced() -> None:
    error = ServiceError("InvalidUri", "text", status=414, details=[("A", "b")])
    assert (error.status, error.message, error.details) == (414, "text", (("A", "b"),))


def test_a_service_rewords_only_the_message_of_the_catalogue() -> None:
    own, explicit, other = ServiceError("InvalidMd5"), ServiceError("InvalidMd5", "text"), ServiceError("InvalidUri")
    for error in (own, explicit, other):
        error.reword({"InvalidMd5": "its own"})
    assert (own.message, explicit.message, other.message) == ("its own", "text", CATALOGUE["InvalidUri"][1])
