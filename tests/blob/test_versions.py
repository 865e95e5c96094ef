"""Headers that a version knows."""

from datetime import date, timedelta

import pytest

from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.requests.headers import version_of
from lazulite.blob.routes import ROUTES
from lazulite.blob.versions import (
    BLOB_ELEMENTS,
    LATER_HEADERS,
    RESPONSE_HEADERS,
    SNAPSHOT_ELEMENTS,
    has_ended,
    known,
    known_headers,
)


def day_before(version: str) -> str:
    return (date.fromisoformat(version) - timedelta(days=1)).isoformat()


@pytest.mark.parametrize(("header", "since"), RESPONSE_HEADERS.items())
def test_a_header_is_in_its_versions(header: str, since: str) -> None:
    sent = [("Date", "x"), (header, "y")]
    assert known_headers(sent, "Other", since) == known_headers(sent, "Other", "9999-12-31") == sent
    assert known_headers(sent, "Other", day_before(since)) == sent[:1]


@pytest.mark.parametrize(("operation", "header"), LATER_HEADERS)
def test_an_operation_can_have_a_header_later(operation: str, header: str) -> None:
    since, sent = LATER_HEADERS[operation, header], [(header, "y")]
    assert operation in ROUTES.operations
    assert since > RESPONSE_HEADERS.get(header, "")
    assert known_headers(sent, operation, since) == sent
    assert known_headers(sent, operation, day_before(since)) == []
    assert known_headers(sent, "Other", day_before(since)) == sent


def test_old_etags_have_no_quotation_marks() -> None:
    sent = version_of(Blob(type=BlobType.BLOCK, modified=1, created=1))
    assert known_headers(sent, "GetBlob", "2011-08-18") == sent
    assert known_headers(sent, "GetBlob", "2011-08-17") == [("ETag", sent[0][1].strip('"')), sent[1]]


def test_names_keep_their_order() -> None:
    assert known(["Tags", "Name", "Deleted"], BLOB_ELEMENTS, "2017-07-29") == ("Name", "Deleted")
    assert all(since > BLOB_ELEMENTS[name] for name, since in SNAPSHOT_ELEMENTS.items())


def test_elements_end() -> None:
    assert [has_ended("Url", version) for version in ("2013-08-14", "2013-08-15")] == [False, True]
