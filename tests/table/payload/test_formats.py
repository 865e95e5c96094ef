import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.table.payload.formats import (
    ATOM,
    ATOM_READER,
    JSON,
    JSON_READER,
    Format,
    Preference,
    format_for_error,
    negotiate,
    read_preference,
    reader_of,
)
from lazulite.table.payload.json_writer import MetadataLevel
from lazulite.table.versions import PREFER_SINCE


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
    assert negotiate("2019-02-02", {"accept": accept}, option) is JSON[level]


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
        negotiate("2019-02-02", {"accept": accept}, option)
    assert (caught.value.status, caught.value.code) == (415, code)
    assert format_for_error("2019-02-02", {"accept": accept}, option) is JSON[MetadataLevel.MINIMAL]


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8;odata=nometadata"])
def test_bodies_accepted(content_type: str) -> None:
    assert reader_of("2019-02-02", {"content-type": content_type}) is JSON_READER


@pytest.mark.parametrize(
    ("content_type", "code"),
    [
        ("application/atom+xml;type=entry", "AtomFormatNotSupported"),
        ("text/plain", "MediaTypeNotSupported"),
        ("", "MediaTypeNotSupported"),
        ("application/json;odata=verbose", "JsonVerboseFormatNotSupported"),
    ],
)
def test_bodies_rejected(content_type: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        reader_of("2019-02-02", {"content-type": content_type})
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


def test_a_preference_of_another_kind_is_rejected() -> None:
    with pytest.raises(ServiceError, match="InvalidHeaderValue"):
        read_preference({"prefer": "return=minimal"}, PREFER_SINCE)


@pytest.mark.parametrize("value", ["return-no-content", "return=minimal"])
def test_before_there_were_preferences_they_are_ignored(value: str) -> None:
    assert read_preference({"prefer": value}, "2012-02-12") is None


@pytest.mark.parametrize(
    ("version", "headers", "rejected"),
    [
        ("2019-02-02", {}, False),
        ("2013-08-15", {"dataserviceversion": "3.0"}, False),
        ("2012-02-12", {"dataserviceversion": "3.0"}, True),
        ("2019-02-02", {"dataserviceversion": "2.0;"}, True),
        ("2019-02-02", {"dataserviceversion": "1.0", "maxdataserviceversion": "3.0;NetFx"}, False),
        ("2019-02-02", {"dataserviceversion": "3.0", "maxdataserviceversion": "2.0;NetFx"}, True),
    ],
)
def test_versions_that_have_json(version: str, headers: dict[str, str], rejected: bool) -> None:
    json = {**headers, "accept": "application/json", "content-type": "application/json"}
    if rejected:
        with pytest.raises(ServiceError, match="JsonFormatNotSupported"):
            negotiate(version, json, "")
        with pytest.raises(ServiceError, match="JsonFormatNotSupported"):
            reader_of(version, json)
    else:
        assert negotiate(version, json, "") is JSON[MetadataLevel.MINIMAL]
        assert reader_of(version, json) is JSON_READER


def test_only_the_beginning_of_a_long_header_is_read() -> None:
    accept = "application/json;odata=nometadata," + "a," * 1_000_000
    assert negotiate("2019-02-02", {"accept": accept}, "") is JSON[MetadataLevel.NONE]
    with pytest.raises(ServiceError, match="MediaTypeNotSupported"):
        negotiate("2019-02-02", {"accept": "a," * 1_000_000 + "application/json"}, "")
    reader_of("2019-02-02", {"content-type": "application/json;" + "x" * 1_000_000})


OLD = "2011-08-18"
BETWEEN = "2013-08-15"
LEVELS = {level.value: each for level, each in JSON.items()}


@pytest.mark.parametrize(
    ("version", "accept", "option", "body_type", "expected"),
    [
        (OLD, "", "", "", ATOM),
        (OLD, "*/*", "", "", ATOM),
        (OLD, "application/atom+xml,application/xml", "", "", ATOM),
        (OLD, "application/xml", "", "", ATOM),
        (OLD, "application/json;q=0.9,application/atom+xml;q=0.1", "", "", ATOM),
        (OLD, "text/html, */*;q=0.1", "", "", ATOM),
        (OLD, "", "", "application/json", ATOM),
        # `$format` counts only where OData 3.0 is spoken.
        (OLD, "", "json", "", ATOM),
        (OLD, "application/atom+xml", "atom", "", ATOM),
        (BETWEEN, "", "", "", ATOM),
        (BETWEEN, "*/*", "", "application/atom+xml;type=entry", ATOM),
        (BETWEEN, "*/*", "", "application/json;odata=nometadata", LEVELS["minimalmetadata"]),
        (BETWEEN, "", "", "APPLICATION/JSON; charset=utf-8", LEVELS["minimalmetadata"]),
        (BETWEEN, "application/json", "", "", LEVELS["minimalmetadata"]),
        (BETWEEN, "application/json;odata=nometadata", "atom", "", ATOM),
        (BETWEEN, "application/atom+xml", "application/json;odata=fullmetadata", "", LEVELS["fullmetadata"]),
        (BETWEEN, "application/atom+xml;q=0.5, application/json;odata=nometadata", "", "", LEVELS["nometadata"]),
        ("2015-07-08", "application/atom+xml", "", "application/json", ATOM),
        ("2015-12-11", "*/*", "", "application/atom+xml", LEVELS["minimalmetadata"]),
    ],
)
def test_negotiation_by_version(version: str, accept: str, option: str, body_type: str, expected: Format) -> None:
    headers = {"accept": accept, "content-type": body_type}
    assert negotiate(version, headers, option) is expected
    assert format_for_error(version, headers, option) is expected


@pytest.mark.parametrize(
    ("version", "headers", "option", "code", "error_format"),
    [
        (OLD, {"accept": "application/json"}, "", "JsonFormatNotSupported", ATOM),
        (OLD, {"accept": "text/html"}, "", "MediaTypeNotSupported", ATOM),
        (BETWEEN, {"accept": "application/json", "dataserviceversion": "2.0"}, "", "JsonFormatNotSupported", ATOM),
        (BETWEEN, {"accept": "text/html"}, "", "MediaTypeNotSupported", LEVELS["minimalmetadata"]),
        (
            BETWEEN,
            {"accept": "application/json;odata=verbose"},
            "",
            "JsonVerboseFormatNotSupported",
            LEVELS["minimalmetadata"],
        ),
        ("2015-12-11", {"accept": "application/atom+xml"}, "", "AtomFormatNotSupported", LEVELS["minimalmetadata"]),
        ("2015-12-11", {}, "atom", "AtomFormatNotSupported", LEVELS["minimalmetadata"]),
        ("2015-12-11", {"dataserviceversion": "2.0"}, "", "JsonFormatNotSupported", LEVELS["minimalmetadata"]),
    ],
)
def test_rejections_by_version(
    version: str, headers: dict[str, str], option: str, code: str, error_format: Format
) -> None:
    with pytest.raises(ServiceError) as caught:
        negotiate(version, headers, option)
    assert (caught.value.status, caught.value.code) == (415, code)
    assert format_for_error(version, headers, option) is error_format


@pytest.mark.parametrize("version", ["2009-09-19", OLD, BETWEEN, "2015-07-08"])
def test_atom_is_read_before_it_was_dropped(version: str) -> None:
    assert reader_of(version, {"content-type": "application/atom+xml"}) is ATOM_READER
    assert reader_of(version, {"content-type": "application/atom+xml;type=entry;charset=utf-8"}) is ATOM_READER
    with pytest.raises(ServiceError, match="MediaTypeNotSupported"):
        reader_of(version, {"content-type": "application/xml"})
