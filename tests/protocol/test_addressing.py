import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.addressing import HOST_SUFFIX, Address, Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

SUFFIXES = (HOST_SUFFIX, "table.example.org", "localhost", "example.org")


def locate(path: str, host: str, scheme: str = "http", suffixes: tuple[str, ...] = SUFFIXES) -> Address:
    return Addressing(suffixes).locate(Request("GET", path, headers={"host": host}, scheme=scheme))


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/acct/Tables", Address("acct", False, "Tables", "http://h/acct/", "/acct/")),
        ("/acct", Address("acct", False, "", "http://h/acct/", "/acct/")),
        ("/acct/", Address("acct", False, "", "http://h/acct/", "/acct/")),
        ("/acct-secondary/t%27()", Address("acct", True, "t%27()", "http://h/acct-secondary/", "/acct-secondary/")),
        (
            "/acct-secondary/acct/Tables",
            Address("acct", True, "Tables", "http://h/acct-secondary/", "/acct-secondary/"),
        ),
        ("/acct-secondary/acct", Address("acct", True, "acct", "http://h/acct-secondary/", "/acct-secondary/")),
        ("/acct/acct/Tables", Address("acct", False, "acct/Tables", "http://h/acct/", "/acct/")),
        ("/", Address("", False, "", "http://h//", "//")),
    ],
)
def test_path_style(path: str, address: Address) -> None:
    assert locate(path, "h") == address


@pytest.mark.parametrize(
    ("host", "account", "secondary"),
    [
        ("acct.table.localhost", "acct", False),
        ("acct.table.localhost:10002", "acct", False),
        ("ACCT.Table.LocalHost:10002", "acct", False),
        ("acct.table.localhost.", "acct", False),
        ("acct-secondary.table.localhost", "acct", True),
        ("acct-secondary.table.example.org:443", "acct", True),
        ("acct.localhost", "acct", False),
        ("a.b.table.example.org", "a.b", False),
    ],
)
def test_host_style(host: str, account: str, secondary: bool) -> None:
    address = locate("/Tables('x')", host, "https")
    assert address == Address(account, secondary, "Tables('x')", f"https://{host}/", "/")


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:10002",
        "[::1]:10002",
        "[::ffff:127.0.0.1]",
        "localhost",
        "localhost:10002",
        "tables",
        "tables:10002",
        "table.localhost.example",
        "acct.table.core.windows.net",
        ".table.example.com",
        "acct.table.localhostess",
    ],
)
def test_other_hosts_mean_path_style(host: str) -> None:
    assert locate("/acct/Tables", host) == Address("acct", False, "Tables", f"http://{host}/acct/", "/acct/")


def test_the_suffix_alone_names_no_account() -> None:
    assert locate("/acct/Tables", "table.localhost", suffixes=("table.localhost",)).account == "acct"


def test_path_style_can_be_all_there_is() -> None:
    assert locate("/acct/Tables", "other.table.localhost", suffixes=()).account == "acct"


def test_in_host_style_nothing_is_taken_off_the_path() -> None:
    assert locate("/acct/Tables", "acct-secondary.table.localhost").resource == "acct/Tables"
    assert locate("/", "acct.table.localhost").resource == ""


@given(st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)))
def test_any_host_and_path_are_taken_apart_or_rejected(host: str, path: str) -> None:
    try:
        address = locate(f"/{path}", host)
    except ServiceError as error:
        assert error.code == "RequestUrlFailedToParse"
    else:
        assert address.base == f"http://{host}{address.root}"
        assert address.root.startswith("/")
        assert address.root.endswith("/")


@pytest.mark.parametrize(("length", "cached"), [(26, 1), (256, 1), (257, 0), (5000, 0)])
def test_a_long_host_is_read_but_not_cached(length: int, cached: int) -> None:
    account = "a" * (length - len(".table.localhost"))
    host = f"{account}.table.localhost"
    locating, naming = Addressing(), Addressing()
    assert locating.locate(Request("GET", "/", headers={"host": host})).account == account
    assert naming.names_account(host)
    assert [each._cached.cache_info().currsize for each in (locating, naming)] == [cached, cached]


@pytest.mark.parametrize(("length", "cached"), [(10, 1), (256, 1), (257, 0), (5000, 0)])
def test_a_long_account_segment_is_read_but_not_cached(length: int, cached: int) -> None:
    addressing, account = Addressing(), "a" * (length - len("h:1"))
    assert addressing.locate(Request("GET", f"/{account}/t", headers={"host": "h:1"})).account == account
    assert addressing._cached_root.cache_info().currsize == cached
