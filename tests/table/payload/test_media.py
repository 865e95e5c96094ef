import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.table.payload.media import (
    MetadataLevel,
    Preference,
    check_body_type,
    level_for_error,
    negotiate,
    read_preference,
)


@pytest.mark.parametrize(
    ("accept", "option", "level"),
    [
        ("application/json;odata=fullmetadata", "", MetadataLevel.FULL),
        ("application/json; odata=minimalmetadata", "", MetadataLevel.MINIMAL),
        ("APPLICATION/JSON;ODATA=NoMetadata", "", MetadataLevel.NONE),
        ("application/json", "", MetadataLevel.MINIMAL),
        ("*/*", "", MetadataLevel.MINIMAL),
        ("", "", MetadataLevel.MINIMAL),
        ("application/atom+xml, application/json;odata=nometadata", "", MetadataLevel.NONE),
        ("application/json;odata=nometadata;q=0.5, application/json;odata=fullmetadata", "", MetadataLevel.FULL),
        ("application/json;q=x, */*;q=0.1", "", MetadataLevel.MINIMAL),
        ("application/atom+xml", "json", MetadataLevel.MINIMAL),
        ("application/atom+xml", "application/json;odata=fullmetadata", MetadataLevel.FULL),
    ],
)
def test_negotiation(accept: str, option: str, level: MetadataLevel) -> None:
    assert negotiate(accept, option) is level


@pytest.mark.parametrize(
    ("accept", "option", "code"),
    [
        ("application/atom+xml", "", "AtomFormatNotSupported"),
        ("application/xml", "", "AtomFormatNotSupported"),
        ("application/json;odata=verbose", "", "JsonVerboseFormatNotSupported"),
        ("text/html", "", "MediaTypeNotSupported"),
        ("application/json", "atom", "AtomFormatNotSupported"),
        ("application/json;odata=most", "", "MediaTypeNotSupported"),
    ],
)
def test_what_cannot_be_had(accept: str, option: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        negotiate(accept, option)
    assert (caught.value.status, caught.value.code) == (415, code)
    assert level_for_error(accept, option) is MetadataLevel.MINIMAL


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8;odata=nometadata"])
def test_bodies_accepted(content_type: str) -> None:
    check_body_type(content_type)


@pytest.mark.parametrize(
    ("content_type", "code"),
    [
        ("application/atom+xml;type=entry", "AtomFormatNotSupported"),
        ("text/plain", "MediaTypeNotSupported"),
        ("", "MediaTypeNotSupported"),
        ("application/json;odata=verbose", "JsonVerboseFormatNotSupported"),
    ],
)
def test_bodies_refused(content_type: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_body_type(content_type)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("value", "preference"),
    [
        (None, None),
        ("return-content", Preference.CONTENT),
        ("Return-No-Content", Preference.NO_CONTENT),
        ("return=minimal", None),
    ],
)
def test_preferences(value: str | None, preference: Preference | None) -> None:
    assert read_preference({} if value is None else {"prefer": value}) is preference
