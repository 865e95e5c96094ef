"""List Blobs and List Containers as requests: parameters, system containers, rejections."""

from collections.abc import AsyncIterator
from xml.etree import ElementTree as ET

import pytest

from tests.blob.world import CONTAINER, Answer, World, opened

LIST = "restype=container&comp=list"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


async def put(world: World, *names: str) -> None:
    for name in names:
        assert (await world.ask("PUT", f"{CONTAINER}/{name}", body=b"x", x_ms_blob_type="BlockBlob")).status == 201


def names_of(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    root = ET.fromstring(answer.body.decode("utf-8-sig"))
    return [
        entry.findtext("Name", "") for list_ in root.findall("Blobs") + root.findall("Containers") for entry in list_
    ]


def marker_of(answer: Answer) -> str:
    return ET.fromstring(answer.body.decode("utf-8-sig")).findtext("NextMarker", "")


async def blobs(world: World, query: str = "", version: str = "2026-10-06") -> Answer:
    return await world.ask("GET", CONTAINER, f"{LIST}&{query}", version=version)


async def test_pages_follow_each_other(world: World) -> None:
    await put(world, "a/1", "a/2", "b", "c/1")
    page = await blobs(world, "delimiter=/&maxresults=2")
    assert names_of(page) == ["a/", "b"]
    assert b"<MaxResults>2</MaxResults><Delimiter>/</Delimiter>" in page.body
    page = await blobs(world, f"delimiter=/&maxresults=2&marker={marker_of(page)}")
    assert names_of(page) == ["c/"]
    assert marker_of(page) == ""
    assert names_of(await blobs(world, "prefix=a/&delimiter=/")) == ["a/1", "a/2"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("maxresults=0", "OutOfRangeQueryParameterValue"),
        ("maxresults=x", "InvalidQueryParameterValue"),
        ("include=cheese", "InvalidQueryParameterValue"),
        ("marker=cheese", "InvalidQueryParameterValue"),
        ("delimiter=/&include=snapshots", "InvalidQueryParameterValue"),
    ],
)
async def test_wrong_parameters(world: World, query: str, code: str) -> None:
    answer = await blobs(world, query)
    assert (answer.status, answer.code) == (400, code)


async def test_more_than_a_page_holds_is_clamped(world: World) -> None:
    await put(world, "a")
    assert names_of(await blobs(world, "maxresults=999999")) == ["a"]


async def test_included_words_may_come_several_times(world: World) -> None:
    await put(world, "a")
    await world.put_block("x", b"1", blob="b")
    await world.ask("PUT", f"{CONTAINER}/a", "comp=snapshot")
    assert names_of(await blobs(world)) == ["a"]
    assert names_of(await blobs(world, "include=snapshots&include=uncommittedblobs")) == ["a", "a", "b"]


async def test_bounds_of_names(world: World) -> None:
    await put(world, "a", "b", "c")
    query = "startFrom=b&endBefore=c"
    assert names_of(await blobs(world, query)) == ["b"]
    assert names_of(await blobs(world, query, "2015-02-21")) == ["b"]


async def test_containers(world: World) -> None:
    for name in ("$root", "$web", "$logs", "other"):
        headers = {"x_ms_meta_colour": "red", "x_ms_blob_public_access": "blob"}
        created = await world.ask("PUT", name, "restype=container", b"", "2021-12-02", **headers)
        assert created.status == 201
    page = await world.ask("GET", "", "comp=list&maxresults=2")
    assert names_of(page) == ["$web", CONTAINER]
    assert names_of(await world.ask("GET", "", f"comp=list&marker={marker_of(page)}")) == ["other"]
    page = await world.ask("GET", "", "comp=list&include=metadata,system")
    assert names_of(page) == ["$logs", "$root", "$web", CONTAINER, "other"]
    assert b"<colour>red</colour>" in page.body
    assert b"<PublicAccess>blob</PublicAccess>" in page.body
    assert b'<Etag>"0x' in page.body
    assert names_of(await world.ask("GET", "", "comp=list&prefix=o")) == ["other"]
    assert b"<Metadata>" not in (await world.ask("GET", "", "comp=list")).body


async def test_a_missing_container(world: World) -> None:
    assert (await world.ask("GET", "nowhere", LIST)).code == "ContainerNotFound"


async def test_a_full_page_of_containers_leaves_no_scan_open(world: World) -> None:
    for name in ("one", "two"):
        await world.ask("PUT", name, "restype=container")
    assert marker_of(await world.ask("GET", "", "comp=list&maxresults=1"))
    assert not world.engine._cursors
