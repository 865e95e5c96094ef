"""The string-to-sign of queues and blobs."""

import pytest

from lazulite.auth.canonicalize import string_to_sign
from lazulite.protocol.message import Request


def lines(request: Request, scheme: str = "SharedKey", comp: str | None = None) -> list[str]:
    return string_to_sign(scheme, request, "acct", request.path, comp).split("\n")


def test_the_lines_of_shared_key() -> None:
    names = "content-encoding content-language content-length content-md5 content-type if-modified-since if-match"
    headers = {name: name for name in f"{names} if-none-match if-unmodified-since range".split()}
    headers |= {"date": "d", "x-ms-version": "2020-12-06", "other": "x"}
    request = Request("PUT", "/acct/c/a%20b", "Timeout=1&comp=x%2Cy&comp=b&empty=", headers)
    assert lines(request) == [
        "PUT",
        *names.split()[:5],
        "d",
        *names.split()[5:],
        "if-none-match",
        "if-unmodified-since",
        "range",
        "x-ms-version:2020-12-06",
        "/acct/acct/c/a%20b",
        "comp:b,x,y",
        "empty:",
        "timeout:1",
    ]
    expected = ["PUT", "content-md5", "content-type", "d", "x-ms-version:2020-12-06", "/acct/acct/c/a%20b?comp=x"]
    assert lines(request, "SharedKeyLite", "x") == expected


def test_a_date_of_the_service_replaces_the_other() -> None:
    request = Request("GET", "/acct/c", headers={"date": "d", "x-ms-date": "e"})
    assert "d" not in lines(request)
    assert "x-ms-date:e" in lines(request)


@pytest.mark.parametrize(("version", "length"), [("2015-02-20", "0"), ("2015-02-21", "")])
def test_a_length_of_nothing(version: str, length: str) -> None:
    request = Request("PUT", "/acct/c", headers={"content-length": "0", "x-ms-version": version})
    assert lines(request)[3] == length


@pytest.mark.parametrize(("version", "found"), [("2016-05-30", False), ("2016-05-31", True)])
def test_empty_headers(version: str, found: bool) -> None:
    request = Request("PUT", "/acct/c", headers={"x-ms-a": "", "x-ms-b": " a  b ", "x-ms-version": version})
    assert ("x-ms-a:" in lines(request)) is found
    assert "x-ms-b:a  b" in lines(request)


def test_names_are_in_the_order_of_the_service() -> None:
    names = ["ab", "a_b", "a1", "a-c", "a", "a.b", "a~b", "b", "x-ms"]
    headers = {"x-ms-version": "2020-12-06"} | {f"x-ms-meta-{name}": "" for name in names}
    request = Request("PUT", "/acct/c", headers=headers)
    found = [line[10:-1] for line in lines(request) if line.startswith("x-ms-meta-")]
    assert found == ["a", "a.b", "a_b", "a~b", "a1", "ab", "a-c", "b", "x-ms"]
