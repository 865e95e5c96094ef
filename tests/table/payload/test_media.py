import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import PREFER_SINCE
from lazulite.table.payload.media import (
    MetadataLevel,
    Preference,
    check_body_type,
    level_for_error,
    negotiate,
    read_preference,
    require_json_version,
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
    ],
)
def test_preferences(value: str | None, preference: Preference | None) -> None:
    assert read_preference({} if value is None else {"prefer": value}, PREFER_SINCE) is preference


def test_a_preference_of_another_kind_is_refused() -> None:
    with pytest.raises(ServiceError, match="InvalidHeaderValue"):
        read_preference({"prefer": "return=minimal"}, PREFER_SINCE)


@pytest.mark.parametrize("value", ["return-no-content", "return=minimal"])
def test_before_there_were_preferences_they_are_ignored(value: str) -> None:
    assert read_preference({"prefer": value}, "2012-02-12") is None


@pytest.mark.parametrize(
    ("version", "headers", "refused"),
    [
        ("2019-02-02", {}, False),
        ("2013-08-15", {"dataserviceversion": "3.0"}, False),
        ("2012-02-12", {"dataserviceversion": "3.0"}, True),
        ("2019-02-02", {"dataserviceversion": "2.0;"}, True),
        ("2019-02-02", {"dataserviceversion": "1.0", "maxdataserviceversion": "3.0;NetFx"}, False),
        ("2019-02-02", {"dataserviceversion": "3.0", "maxdataserviceversion": "2.0;NetFx"}, True),
    ],
)
def test_versions_that_have_json(version: str, headers: dict[str, str], refused: bool) -> None:
    if refused:
        with pytest.raises(ServiceError, match="JsonFormatNotSupported"):
            require_json_version(version, headers)
    else:
        require_json_version(version, headers)


def test_only_the_beginning_of_a_long_header_is_read() -> None:
    assert negotiate("application/json;odata=nometadata," + "a," * 1_000_000, "") is MetadataLevel.NONE
    with pytest.raises(ServiceError, match="MediaTypeNotSupported"):
        negotiate("a," * 1_000_000 + "application/json", "")
    check_body_type("application/json;" + "x" * 1_000_000)
