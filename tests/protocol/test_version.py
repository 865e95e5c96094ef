import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import NEWEST, version_of


@pytest.mark.parametrize(
    ("headers", "parameters", "version"),
    [
        ({}, {}, NEWEST),
        ({"x-ms-version": "2019-02-02"}, {}, "2019-02-02"),
        ({"x-ms-version": "2019-02-02"}, {"sv": "2015-04-05"}, "2019-02-02"),
        ({}, {"sv": "2015-04-05"}, "2015-04-05"),
        ({"x-ms-version": "2019-02-02"}, {"api-version": "2099-12-31", "sv": "2015-04-05"}, "2099-12-31"),
    ],
)
def test_which_version_governs(headers: dict[str, str], parameters: dict[str, str], version: str) -> None:
    assert version_of(headers, parameters) == version


@pytest.mark.parametrize("version", ["x", "2019-2-2", "2019-02-02 ", "2019-02-02\n", "٢٠١٩-٠٢-٠٢"])
def test_malformed_versions(version: str) -> None:
    with pytest.raises(ServiceError, match="InvalidHeaderValue"):
        version_of({"x-ms-version": version}, {})
