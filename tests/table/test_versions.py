import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.table.versions import check_odata_version, odata_version, require_odata

OLD, ATOM, JSON = "2009-09-19", "2012-02-12", "2013-08-15"


def headers(one: str | None, most: str | None = None) -> dict[str, str]:
    found = {"dataserviceversion": one, "maxdataserviceversion": most}
    return {name: text for name, text in found.items() if text is not None}


@pytest.mark.parametrize(
    ("version", "one", "most", "number"),
    [
        (OLD, None, None, 1),
        ("2011-08-18", None, None, 2),
        (ATOM, None, None, 2),
        (JSON, None, None, 3),
        ("2026-10-06", None, None, 3),
        (JSON, "1.0", None, 1),
        (JSON, "2.0;", None, 2),
        (JSON, " 3.0 ; NetFx ", None, 3),
        (JSON, "3.0;NetFx" + "x" * 10_000, None, 3),
        (JSON, "1.0;NetFx", "3.0;NetFx", 3),
        (JSON, "3.0", "2.0;NetFx", 2),
        (JSON, None, "1.0", 1),
        (OLD, "1.0;NetFx", "2.0;NetFx", 1),
        (ATOM, "3.0", "2.0;NetFx", 2),
        (JSON, "4.0", None, 3),
        (JSON, "4.0", "4.01", 3),
        (JSON, "", "", 3),
        (JSON, "three", None, 3),
        (JSON, "1.0", "three", 1),
        (JSON, "0.9", None, 3),
        (JSON, "٣.0", None, 3),
    ],
)
def test_which_odata_version_governs(version: str, one: str | None, most: str | None, number: int) -> None:
    assert odata_version(version, headers(one, most)) == number


@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_the_headers_say_there_is_a_version(one: str, most: str) -> None:
    assert odata_version(OLD, headers(one, most)) == 1
    assert odata_version(JSON, headers(one, most)) in (1, 2, 3)


@pytest.mark.parametrize(
    ("version", "one", "most", "known"),
    [
        (OLD, None, None, True),
        (OLD, "1.0", None, True),
        (OLD, "2.0;NetFx", None, False),
        (OLD, None, "2.0", False),
        (OLD, "1.0;NetFx", "2.0;NetFx", True),
        (OLD, "3.0", "2.0", False),
        (ATOM, "2.0", "2.0", True),
        (ATOM, "3.0", None, False),
        (ATOM, "3.0", "3.0;NetFx", False),
        (ATOM, "3.0", "2.0;NetFx", True),
        (ATOM, "nonsense", None, True),
        (JSON, "3.0", "3.0", True),
    ],
)
def test_versions_that_the_service_did_not_know_yet(
    version: str, one: str | None, most: str | None, known: bool
) -> None:
    stated = headers(one, most)
    if known:
        check_odata_version(version, stated, {})
        return
    with pytest.raises(ServiceError, match="InvalidHeaderValue") as caught:
        check_odata_version(version, stated, {})
    assert caught.value.status == 400
    with pytest.raises(ServiceError, match="JsonFormatNotSupported"):
        check_odata_version(version, {**stated, "accept": "application/json"}, {})
    with pytest.raises(ServiceError, match="JsonFormatNotSupported"):
        check_odata_version(version, stated, {"$format": "json"})


def test_what_needs_a_version_of_odata() -> None:
    require_odata(2, odata_version(ATOM, {}))
    require_odata(2, odata_version(ATOM, headers("1.0;NetFx", "2.0;NetFx")))
    for version, stated in ((OLD, {}), (ATOM, headers("1.0")), (JSON, headers("3.0", "1.0"))):
        with pytest.raises(ServiceError, match="InvalidInput"):
            require_odata(2, odata_version(version, stated))
