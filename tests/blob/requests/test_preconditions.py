"""The preconditions of requests: which headers count, and that no operation is without a row."""

from uuid import UUID

import pytest

from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.conditions import NO_CONDITIONS
from lazulite.blob.model.lease import Lease
from lazulite.blob.requests.preconditions import (
    NO_PRECONDITIONS,
    OF_SOURCES,
    PRECONDITIONS,
    LeaseUse,
    read_conditions,
    read_preconditions,
)
from lazulite.blob.routes import ROUTES
from lazulite.protocol.errors import ServiceError

NEWEST = "2026-10-06"
DATE = "Wed, 01 Jan 2031 00:00:01 GMT"
ID = UUID(int=1)
BLOB = Blob(type=BlobType.BLOCK, modified=0, created=0)


def code_of(operation: str, headers: dict[str, str], version: str = NEWEST) -> str:
    with pytest.raises(ServiceError) as raised:
        read_preconditions(PRECONDITIONS[operation], headers, version)
    return raised.value.code


def test_each_operation_has_a_row_and_each_row_an_operation() -> None:
    assert ROUTES.operations == PRECONDITIONS.keys()


def test_what_a_request_lacks_costs_nothing() -> None:
    found = read_preconditions(PRECONDITIONS["GetBlob"], {}, NEWEST)
    assert (found.conditions, found.lease) == NO_PRECONDITIONS[1:]


@pytest.mark.parametrize("operation", PRECONDITIONS)
def test_only_headers_of_the_row_are_read(operation: str) -> None:
    row = PRECONDITIONS[operation]
    texts = {"match": '"a"', "none_match": '"a"', "tags": "a='1'"}
    for each in {header for other in PRECONDITIONS.values() for header in other.headers}:
        found = read_preconditions(row, {each.name: texts.get(each.field, DATE)}, NEWEST)
        assert bool([value for value in found.conditions if value]) == (each in row.headers), each.name
    given = read_preconditions(row, {"x-ms-lease-id": str(ID)}, NEWEST).lease
    assert given == (None if row.lease is LeaseUse.IGNORED else ID)


@pytest.mark.parametrize(
    ("operation", "name", "since"),
    [
        ("GetBlob", "x-ms-if-tags", "2019-12-12"),
        ("SetBlobTier", "x-ms-if-tags", "2019-12-12"),
        ("GetBlobTags", "x-ms-blob-if-match", "2026-02-06"),
        ("SetBlobTags", "x-ms-blob-if-modified-since", "2026-02-06"),
        ("DeleteBlob", "x-ms-access-tier-if-modified-since", "2026-04-06"),
        ("DeleteBlob", "x-ms-access-tier-if-unmodified-since", "2026-04-06"),
    ],
)
def test_a_header_counts_since_a_version(operation: str, name: str, since: str) -> None:
    headers = {name: "=" if name.endswith("tags") else "" if name.endswith("match") else "never"}
    assert code_of(operation, headers, since) == "InvalidHeaderValue"
    before = read_preconditions(PRECONDITIONS[operation], headers, f"{since[:-1]}0")
    assert before.conditions is NO_CONDITIONS


def test_dates_that_are_none_are_ignored_in_two_headers() -> None:
    for name in ("if-modified-since", "if-unmodified-since"):
        assert read_preconditions(PRECONDITIONS["DeleteBlob"], {name: "null"}, NEWEST).conditions.are_for_a_write
        assert code_of("SetBlobTags", {f"x-ms-blob-{name}": "null"}) == "InvalidHeaderValue"
    with pytest.raises(ServiceError, match="InvalidHeaderValue"):
        read_conditions(OF_SOURCES, {"x-ms-source-if-modified-since": "null"}, NEWEST)


def test_conditions_on_a_source_have_names_of_their_own() -> None:
    headers = {"x-ms-source-if-match": '"a"', "if-match": '"b"'}
    assert read_conditions(OF_SOURCES, headers, NEWEST).match == ("a",)
    assert read_preconditions(PRECONDITIONS["CopyBlob"], headers, NEWEST).conditions.match == ("b",)


def test_reads_combine_headers_since_a_version() -> None:
    headers = {"if-match": '"a"', "if-none-match": '"b"'}
    assert read_preconditions(PRECONDITIONS["GetBlob"], headers, "2013-08-15").conditions.match == ("a",)
    for operation, version in (("GetBlob", "2012-02-12"), ("PutBlob", NEWEST)):
        assert code_of(operation, headers, version) == "MultipleConditionHeadersNotSupported"


def test_no_read_meets_a_star() -> None:
    assert code_of("GetBlob", {"if-none-match": "*"}) == "UnsatisfiableCondition"
    assert code_of("GetBlobTags", {"x-ms-blob-if-none-match": "*"}) == "UnsatisfiableCondition"


def test_a_lease_lifts_the_condition_that_nothing_exists() -> None:
    held = Lease(ID, -1, None)
    headers = {"if-none-match": "*", "x-ms-lease-id": str(ID)}
    for operation in ("PutBlob", "PutBlobFromURL", "PutBlockList"):
        found = read_preconditions(PRECONDITIONS[operation], headers, NEWEST)
        assert found.allow_write(Blob(type=BlobType.BLOCK, modified=0, created=0, lease=held), 0) == held
        with pytest.raises(ServiceError, match="LeaseNotPresentWithBlobOperation"):
            found.allow_write(BLOB, 0)
        with pytest.raises(ServiceError, match="BlobAlreadyExists"):
            read_preconditions(PRECONDITIONS[operation], {"if-none-match": "*"}, NEWEST).allow_write(BLOB, 0)
    copy = read_preconditions(PRECONDITIONS["CopyBlob"], headers, NEWEST)
    with pytest.raises(ServiceError, match="BlobAlreadyExists"):
        copy.allow_write(Blob(type=BlobType.BLOCK, modified=0, created=0, lease=held), 0)
