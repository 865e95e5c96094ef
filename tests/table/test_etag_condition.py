import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.table.etag_condition import ANY, check_condition, read_condition, reject_conditions, require_condition
from lazulite.table.model.edm import parse_datetime
from lazulite.table.model.row import etag_of

TICKS = parse_datetime("2017-08-30T13:20:33.413914Z")


@pytest.mark.parametrize("tag", [None, ANY, etag_of(TICKS), 'W/"foo"'])
def test_well_formed_conditions(tag: str | None) -> None:
    headers = {} if tag is None else {"if-match": tag}
    assert read_condition(headers, "PUT") == tag


@pytest.mark.parametrize("tag", ["foo", '"x"', 'W/"a", W/"b"', "W/foo", 'w/"x"', ""])
def test_malformed_conditions(tag: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read_condition({"if-match": tag}, "PUT")
    assert (caught.value.code, caught.value.message) == (
        "InvalidInput",
        f"The etag value '{tag}' specified in one of the request headers is not valid. "
        "Please make sure only one etag value is specified and is valid.",
    )


@pytest.mark.parametrize(
    ("headers", "verb", "text"),
    [
        ({"if-none-match": "*"}, "PUT", "If-None-Match HTTP header cannot be specified for PUT operations."),
        ({"if-none-match": "*"}, "MERGE", "If-None-Match HTTP header cannot be specified for PUT operations."),
        ({"if-none-match": "*"}, "DELETE", "If-None-Match HTTP header cannot be specified for DELETE operations."),
        ({"if-none-match": "*", "if-match": "*"}, "PUT", "Both If-Match and If-None-Match HTTP headers cannot be"),
    ],
)
def test_if_none_match(headers: dict[str, str], verb: str, text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read_condition(headers, verb)
    assert caught.value.message.startswith(text)


def test_targets_without_etags() -> None:
    reject_conditions({})
    with pytest.raises(ServiceError, match="target type does not have etag"):
        reject_conditions({"if-match": "*"})


def test_a_delete_needs_a_condition() -> None:
    assert require_condition("*", "t") == "*"
    with pytest.raises(ServiceError, match="If-Match HTTP header must be specified"):
        require_condition(None, "t")


@pytest.mark.parametrize(
    "tag",
    [
        None,
        ANY,
        etag_of(TICKS),
        "W/\"datetime'2017-08-30T13:20:33.413914Z'\"",
        "W/\"datetime'2017-08-30T13%3a20%3a33.4139140Z'\"",
    ],
)
def test_conditions_that_hold(tag: str | None) -> None:
    check_condition(tag, TICKS)


@pytest.mark.parametrize("tag", [etag_of(TICKS + 1), 'W/"foo"', "W/\"datetime'nonsense'\""])
def test_conditions_that_do_not_hold(tag: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_condition(tag, TICKS)
    assert (caught.value.status, caught.value.code) == (412, "UpdateConditionNotSatisfied")
