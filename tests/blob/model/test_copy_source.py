"""URLs of sources: own ones are found in whatever way they are addressed, and nothing else is taken for one."""

from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.copy_source import URL_MAX, ForeignSource, LocalSource, read_copy_source
from lazulite.blob.resource import Kind, Resource
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

ADDRESSING = Addressing(["blob.localhost"])
REQUEST = Request("PUT", "/acc/con/copy", "", {"host": "127.0.0.1:10000"})
SNAPSHOT = "2019-06-17T23:55:48.8621956Z"


def read(url: str) -> LocalSource | ForeignSource:
    return read_copy_source(url, REQUEST, ADDRESSING)


def own(url: str) -> LocalSource:
    source = read(url)
    assert isinstance(source, LocalSource)
    return source


@pytest.mark.parametrize(
    ("url", "account", "blob"),
    [
        ("http://127.0.0.1:10000/acc/con/b", "acc", "b"),
        ("HTTP://127.0.0.1:10000/other/con/d/%C3%A9%20b", "other", "d/é b"),
        ("https://acc.blob.localhost/con/b?sig=x", "acc", "b"),
        ("https://ACC.blob.LOCALHOST:444/con/b", "acc", "b"),
        ("/acc/con/b", "acc", "b"),
        ("http://127.0.0.1:10000/other/con%5Cd%5C..%5Cb.", "other", "b"),
        ("http://127.0.0.1:10000/other/x/%2E%2E/con/b", "other", "b"),
        ("https://acc.blob.localhost/../con%5Cd/./b", "acc", "d/b"),
        ("/acc/con/d/.%2E/b", "acc", "b"),
        ("http://127.0.0.1:10000/acc/con?lazulite-name=b", "acc", "b"),
    ],
)
def test_own_sources(url: str, account: str, blob: str) -> None:
    source = own(url)
    assert source.address.account == account
    assert source.resource == Resource(Kind.BLOB, "con", blob)


def test_a_source_has_its_query_string() -> None:
    source = own(f"http://127.0.0.1:10000/acc/con/b?snapshot={quote(SNAPSHOT)}&sig=a%2Bb")
    assert (source.snapshot, source.version) == (SNAPSHOT, "")
    assert (source.request.method, source.request.path) == ("GET", "/acc/con/b")
    assert source.request.query.endswith("&sig=a%2Bb")
    assert own(f"http://127.0.0.1:10000/acc/con/b?versionid={SNAPSHOT}").version == SNAPSHOT


def test_a_blob_of_the_root_container() -> None:
    assert own("http://127.0.0.1:10000/acc/b.txt").resource == Resource(Kind.BLOB, "$root", "b.txt")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1/acc/con/b", "127.0.0.1"),
        ("http://127.0.0.1:10001/acc/con/b", "127.0.0.1:10001"),
        ("https://ACC.blob.core.windows.net/con/b?sig=x", "acc.blob.core.windows.net"),
        ("http://[::1]:10000/acc/con/b", "[::1]:10000"),
        ("http://169.254.169.254", "169.254.169.254"),
        ("http://127.0.0.1:10000.example.org/acc/con/b", ""),
        ("http://acc.blob.localhost.example.org/con/b", "acc.blob.localhost.example.org"),
    ],
)
def test_all_other_hosts_are_foreign(url: str, host: str) -> None:
    if not host:
        with pytest.raises(ServiceError):
            read(url)
        return
    source = read(url)
    assert isinstance(source, ForeignSource)
    assert (source.url, source.host) == (url, host)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "con/b",
        "//127.0.0.1:10000/acc/con/b",
        "file:///etc/passwd",
        "ftp://127.0.0.1:10000/acc/con/b",
        "http:///acc/con/b",
        "http://user@127.0.0.1:10000/acc/con/b",
        "http://127.0.0.1:10000@example.org/b",
        "http://127.0.0.1:10000\\@example.org/b",
        "http://127.0.0.1:10000/acc/con/b#part",
        "http://127.0.0.1:10000/acc/con/b?x#part",
        "http://127.0.0.1:10000/acc/con/a b",
        "http://127.0.0.1:10000/acc/con/é",
        "http://127.0.0.1:10000/acc/con/b\n",
        "http://127.0.0.1:10000/acc",
        "http://127.0.0.1:10000/",
        "http://127.0.0.1:123456/acc/con/b",
        "http://[0]/acc/con/b",
        "http://[127.0.0.1]/acc/con/b",
        "http://127.0.0.1:10000/acc/con/" + "b" * URL_MAX,
    ],
)
def test_other_texts_are_rejected(url: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read(url)
    assert rejected.value.code == "InvalidHeaderValue"
    assert rejected.value.details == (("HeaderName", "x-ms-copy-source"), ("HeaderValue", url[:256]))


def test_names_that_no_blob_can_have_are_rejected() -> None:
    for path, code in [("A/b", "InvalidResourceName"), ("con/%00", "InvalidResourceName"), ("ab/b", "OutOfRangeInput")]:
        with pytest.raises(ServiceError) as rejected:
            read(f"http://127.0.0.1:10000/acc/{path}")
        assert rejected.value.code == code


AUTHORITIES = st.text("abc019.:@[]/\\?#%-_", max_size=20)


@given(AUTHORITIES.map(lambda text: f"http://{text}/acc/con/b") | st.text())
def test_the_host_is_the_one_that_other_parsers_find(url: str) -> None:
    try:
        source = read(url)
    except ServiceError:
        return
    if isinstance(source, ForeignSource):
        assert urlsplit(source.url).netloc.lower() == source.host
    elif not url.startswith("/"):
        assert urlsplit(url).netloc == source.request.headers["host"]
