"""What a path names, and the names that blobs can have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob import resource as resource_module
from lazulite.blob.resource import Kind, Resource, is_addressable, normal_path, resource_of
from lazulite.protocol.errors import ServiceError


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
