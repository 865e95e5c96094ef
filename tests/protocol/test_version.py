from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol import version
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import DEFAULT_VERSION, NEWEST, asks_for_json, is_version, resolve_version
from lazulite.table import versions as table_versions

JSON = {"accept": "application/json;odata=nometadata"}


@pytest.mark.parametrize("module", [version, table_versions])
def test_the_table_is_in_order_of_time(module: ModuleType) -> None:
    since = [value for name, value in vars(module).items() if name.endswith(("_SINCE", "_BEFORE"))]
    assert len(since) > 5
    assert since == sorted(since)
    assert all(map(is_version, [*since, NEWEST, DEFAULT_VERSION]))


@pytest.mark.parametrize(
    ("headers", "parameters", "version"),
    [
        ({"x-ms-version": "2019-02-02"}, {}, "2019-02-02"),
        ({"x-ms-version": "2019-02-02"}, {"sv": "2015-04-05"}, "2019-02-02"),
        ({}, {"sv": "2015-04-05"}, "2015-04-05"),
        ({"x-ms-version": "2019-02-02"}, {"api-version": "2099-12-31", "sv": "2015-04-05"}, "2099-12-31"),
        ({"x-ms-version": ""}, {"api-version": "", "sv": "2015-04-05"}, "2015-04-05"),
        (JSON, {"sv": "2012-02-12"}, "2012-02-12"),
        ({}, {}, NEWEST),
        ({"host": "h"}, {}, DEFAULT_VERSION),
        ({"accept": "*/*"}, {"$top": "1"}, DEFAULT_VERSION),
        (
            {"accept": "application/atom+xml,application/xml", "content-type": "application/atom+xml"},
            {},
            DEFAULT_VERSION,
        ),
        (JSON, {}, NEWEST),
        ({"accept": "*/*", "content-type": "Application/JSON"}, {}, NEWEST),
        ({"accept": "application/atom+xml"}, {"$format": "json"}, NEWEST),
        ({"accept": "text/html, application/json;q=0.1"}, {}, NEWEST),
        ({"host": "h"}, {"comp": "acl"}, NEWEST),
    ],
)
def test_which_version_governs(headers: dict[str, str], parameters: dict[str, str], version: str) -> None:
    assert resolve_version(headers, parameters).require() == version


@pytest.mark.parametrize(
    "version",
    [
        "x",
        "2019-2-2",
        "2019-02-02 ",
        "2019-02-02\n",
        "٢٠١٩-٠٢-٠٢",
        "2019-02-30",
        "2019-13-01",
        "0000-01-01",
        "20190202",
    ],
)
def test_malformed_versions(version: str) -> None:
    resolved = resolve_version({"x-ms-version": version}, {})
    assert (resolved.stated, resolved.governing) == (version, "")
    with pytest.raises(ServiceError, match="InvalidHeaderValue") as caught:
        resolved.require()
    assert caught.value.details == (("HeaderName", "x-ms-version"), ("HeaderValue", version))


@given(st.dates())
def test_every_date_is_a_version(day: object) -> None:
    assert resolve_version({"x-ms-version": str(day)}, JSON) == (str(day), str(day))


def test_json_is_looked_for_at_the_beginning_of_a_header() -> None:
    assert asks_for_json({"accept": "application/json" + "x" * 2000}, {})
    assert not asks_for_json({"accept": "x" * 2000 + "application/json"}, {})


@pytest.mark.parametrize(
    ("headers", "parameters", "older"),
    [
        ({}, {}, False),
        ({"x-ms-version": "2012-02-12"}, {}, True),
        ({"x-ms-version": "2013-08-15"}, {}, False),
        ({"x-ms-version": "2019-02-02"}, {"api-version": "2011-08-18"}, True),
        ({"x-ms-version": "1"}, {}, False),
    ],
)
def test_only_what_is_named_is_older(headers: dict[str, str], parameters: dict[str, str], older: bool) -> None:
    assert resolve_version(headers, parameters).is_stated_before("2013-08-15") is older
