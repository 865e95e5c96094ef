"""What a path names, and the names that blobs can have."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob import resource as resource_module
from lazulite.blob.resource import USUAL_PATH, Kind, Resource, is_addressable, normal_path, resource_of
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import percent_decode


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("", ""),
        (".", ""),
        ("..", ""),
        ("../..", ""),
        ("./a", "a"),
        ("../a", "a"),
        ("a/..", ""),
        ("a/.", "a/"),
        ("a/b/..", "a/"),
        ("a/../..", ""),
        ("a//..", "a/"),
        ("a//../b", "a/b"),
        ("a/./../b", "b"),
        ("a\\..\\b", "b"),
        ("a/...", "a/"),
        ("a/..b", "a/..b"),
        ("a./b", "a./b"),
        ("...", ""),
        ("a/b\\", "a/b/"),
    ],
)
def test_normal_paths(path: str, normal: str) -> None:
    assert normal_path(path) == normal
    assert normal_path(normal) == normal


@given(st.text(st.sampled_from("a./\\\\")))
def test_a_normal_path_names_itself(path: str) -> None:
    normal = normal_path(path)
    assert normal_path(normal) == normal
    assert "\\" not in normal
    assert not {".", ".."} & set(normal.split("/"))
    assert not normal.endswith(".")


PIECES = st.sampled_from([
    "a", ".", "/", "%2F", "%2e", "%5C", "%20", "%25", "%00", "%7F", "%C2%80", "%C2%A0", "%C3%A9", "%E6%97%A5",
    "%ED%A0%80", "%EE%80%80", "%F0%9F%98%80", "%E0%A4%B9", "%E0%80%A0", "%C0%80", "%C3", "%A9", "%", "%2", "%zz",
    "\\", "+", "'", "~",
])  # fmt: skip


def _check_usual(text: str) -> None:
    found = USUAL_PATH.fullmatch(f"/acct/docs/{text}")
    if found is not None:
        resource = resource_of(f"docs/{text}", {})
        assert (resource.kind, resource.container) == (Kind.BLOB, "docs")
        assert percent_decode(found[2]) == resource.blob
        resource.check("GET", {})


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join))
def test_a_usual_path_names_what_is_found_in_it(text: str) -> None:
    _check_usual(text)


def test_each_encoded_character_of_a_usual_path_names_itself() -> None:
    for number in (*range(0x100), *range(0x7F0, 0x810), *range(0xCFF0, 0xD000), *range(0xE000, 0xE010)):
        _check_usual(f"a{quote(chr(number), safe='')}b")
    for number in range(0x100):
        _check_usual(f"a%{number:02X}b")


def test_encoded_names_are_usual() -> None:
    for text in ("%20", "a%2525", "%C2%A0", "%C3%A9/%E6%97%A5.txt", "%E0%A4%B9", "it's(1)"):
        assert USUAL_PATH.fullmatch(f"/acct/docs/{text}"), text


def test_names_that_paths_have() -> None:
    for name in ("a/b", "/a", "a/", "a./b", ".a", "\U0001f600"):
        assert is_addressable("docs", name), name
    for name in ("a\\b", "a/./b", "a/x/../b", "..", "b.", "a\x01", "\ue000", "a" * 1025, "/" * 254):
        assert not is_addressable("docs", name), name
    assert not is_addressable("$root", "a/b")
    assert is_addressable("$root", "a")


@pytest.mark.parametrize(
    ("path", "parameters", "resource"),
    [
        ("", {}, Resource(Kind.SERVICE)),
        ("c/..", {}, Resource(Kind.SERVICE)),
        ("c", {"restype": "container"}, Resource(Kind.CONTAINER, "c")),
        ("c/x/..", {"restype": "container"}, Resource(Kind.CONTAINER, "c")),
        ("c", {}, Resource(Kind.BLOB, "$root", "c")),
        ("c/", {}, Resource(Kind.BLOB, "$root", "c")),
        ("c%5Ca%2Fb", {}, Resource(Kind.BLOB, "c", "a/b")),
        ("c/%255C", {}, Resource(Kind.BLOB, "c", "%5C")),
        ("c", {"lazulite-name": "a\\b"}, Resource(Kind.BLOB, "c", "a\\b")),
        ("c/b", {"lazulite-name": "a"}, Resource(Kind.BLOB, "c", "b")),
        ("c", {"restype": "container", "lazulite-name": "a"}, Resource(Kind.CONTAINER, "c")),
    ],
)
def test_resources(path: str, parameters: dict[str, str], resource: Resource) -> None:
    assert resource_of(path, parameters) == resource


def test_long_paths_are_not_cached() -> None:
    resource_module._cached.cache_clear()
    for number in range(3):
        assert resource_of(f"c/{number}" + "x" * 512, {}).container == "c"
        assert resource_of("c", {"lazulite-name": "x" * 512}).container == "c"
    assert resource_module._cached.cache_info().currsize == 0


def test_a_blob_without_a_container_is_rejected() -> None:
    for path in ("/b", "c/../../%2Fb", "%5Cb"):
        with pytest.raises(ServiceError, match="InvalidUri"):
            resource_of(path, {})
