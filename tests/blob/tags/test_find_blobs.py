"""Find Blobs by Tags against a simple model, for any history of tags; and the upkeep of the index."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.blob.storage import tag_index
from lazulite.engine.contract import EngineUnavailableError, KeyRange
from tests.blob.blobs.test_delete_blob import keep_versions
from tests.blob.world import ACCOUNT, CONTAINER, Answer, World, opened, token

NAMES = st.sampled_from(["a", "b", "c/d", "\ud7ff", "\U00010000", "\uf900"])
VALUES = st.sampled_from(["", "1", "10", "2", "two words"])
TAGS = st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2)
RANGES = [
    "x='1'",
    "x>'1'",
    "x>='1' AND x<'2'",
    "x<='10'",
    "x='1' AND y='2'",
    "x='1' AND y>'1'",
    "x>'' AND y='1'",
    "x=''",
]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


def document(**tags: str) -> bytes:
    pairs = "".join(f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in tags.items())
    return f"<Tags><TagSet>{pairs}</TagSet></Tags>".encode()


async def put(world: World, name: str = "blob", tags: str = "", container: str = CONTAINER) -> Answer:
    named = {"x_ms_tags": tags} if tags else {}
    return await world.ask("PUT", f"{container}/{name}", "", b"x", "2021-12-02", x_ms_blob_type="BlockBlob", **named)


async def find(world: World, where: str, query: str = "", container: str = CONTAINER) -> Answer:
    scope = "restype=container&" if container else ""
    return await world.ask("GET", container, f"{scope}comp=blobs&where={quote(where)}&{query}")


def found(answer: Answer) -> list[tuple[str, str]]:
    return [(container, name) for container, name, _ in found_versions(answer)]


def found_versions(answer: Answer) -> list[tuple[str, str, str]]:
    """Return the container, the name, and the id of the version of each; `current` for that of a blob itself."""
    assert answer.status == 200, answer
    root = ET.fromstring(answer.body.decode("utf-8-sig"))
    return [
        (
            blob.findtext("ContainerName", ""),
            blob.findtext("Name", ""),
            "current" if blob.findtext("IsCurrentVersion") else blob.findtext("VersionId", ""),
        )
        for blob in root.iter("Blob")
    ]


async def all_found(world: World, where: str, container: str, most: int) -> list[tuple[str, str]]:
    return [(container, name) for container, name, _ in await all_found_versions(world, where, container, most, "")]


async def all_found_versions(
    world: World, where: str, container: str, most: int, query: str = "&include=versions"
) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    marker = ""
    while True:
        answer = await find(world, where, f"maxresults={most}&marker={quote(marker)}{query}", container)
        rows += found_versions(answer)
        last, marker = marker, ET.fromstring(answer.body.decode("utf-8-sig")).findtext("NextMarker", "")
        assert not marker or marker != last, "the search does not go on"
        if not marker:
            return rows


def fits(where: str, tags: dict[str, str]) -> bool:
    tests = {"=": str.__eq__, ">": str.__gt__, ">=": str.__ge__, "<": str.__lt__, "<=": str.__le__}
    for part in where.split(" AND "):
        name, rest = part[0], part[1:]
        sign, value = rest.split("'")[:2]
        if name not in tags or not tests[sign](tags[name], value):
            return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAMES, TAGS | st.none()), max_size=12), st.sampled_from(RANGES), st.integers(1, 3))
def test_what_fits_is_found_once(steps: Sequence[tuple[str, dict[str, str] | None]], where: str, most: int) -> None:
    async def run() -> None:
        stored: dict[str, dict[str, str]] = {}
        async with opened() as world:
            for name, tags in steps:
                if tags is None:
                    await world.ask("DELETE", f"{CONTAINER}/{name}")
                    stored.pop(name, None)
                elif name in stored:
                    await world.ask("PUT", f"{CONTAINER}/{name}", "comp=tags", document(**tags))
                    stored[name] = tags
                else:
                    await put(world, name, "&".join(f"{tag}={quote(value)}" for tag, value in tags.items()))
                    stored[name] = tags
            expected = sorted((CONTAINER, name) for name, tags in stored.items() if fits(where, tags))
            for container in (CONTAINER, ""):
                assert sorted(await all_found(world, where, container, most)) == expected

    asyncio.run(run())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(NAMES, TAGS | st.none()), max_size=12), st.sampled_from(RANGES), st.integers(1, 3))
def test_past_versions_are_found_once(
    steps: Sequence[tuple[str, dict[str, str] | None]], where: str, most: int
) -> None:
    async def run() -> None:
        past, stored = dict[tuple[str, str], dict[str, str]](), dict[str, tuple[str, dict[str, str]]]()
        async with opened() as world:
            keep_versions(world)
            for name, tags in steps:
                if name in stored:
                    version, replaced = stored.pop(name)
                    past[name, version] = replaced
                if tags is None:
                    await world.ask("DELETE", f"{CONTAINER}/{name}")
                    continue
                given = "&".join(f"{tag}={quote(value)}" for tag, value in tags.items())
                stored[name] = (await put(world, name, given)).headers["x-ms-version-id"], tags
            await tag_a_version(world, past)
            world.days += 1
            current = [(CONTAINER, name, "current") for name, (_, tags) in stored.items() if fits(where, tags)]
            versions = [(CONTAINER, *key) for key, tags in past.items() if fits(where, tags)]
            for container in (CONTAINER, ""):
                assert sorted(await all_found_versions(world, where, container, most)) == sorted(current + versions)
                assert sorted(await all_found(world, where, container, most)) == sorted(each[:2] for each in current)

    async def tag_a_version(world: World, past: dict[tuple[str, str], dict[str, str]]) -> None:
        for name, version in list(past)[:1]:
            past[name, version] = {"x": "2", "y": "1"}
            query = f"comp=tags&versionid={version}"
            answer = await world.ask("PUT", f"{CONTAINER}/{name}", query, document(x="2", y="1"))
            assert answer.status == 204, answer

    asyncio.run(run())


async def index_rows(world: World) -> list[str]:
    space = (await world.context.catalog.require(ACCOUNT, CONTAINER)).space
    rows: list[str] = []
    async for part in world.engine.scan(space, [KeyRange(("", ""), (tag_index.FIRST_NAME, ""))]):
        rows += ["/".join(part.key(index)) for index in range(len(part.values))]
    return rows


async def test_a_rejected_write_indexes_nothing(world: World) -> None:
    assert (await world.ask("PUT", query="comp=tags", body=document(x="1"))).code == "BlobNotFound"
    assert (await world.ask("PUT", query="comp=tags&versionid=2020-01-01T00:00:00.0000000Z", body=document(x="1"))).code
    for type_ in ("BlockBlob", "AppendBlob"):
        answer = await world.ask("PUT", x_ms_blob_type=type_, x_ms_tags="x=1", if_match='"0x1"')
        assert answer.status == 412
    assert (await world.put_list(x_ms_tags="x=1", if_match='"0x1"')).status == 412
    assert await index_rows(world) == []


async def test_old_rows_that_fit_no_blob_are_removed(world: World) -> None:
    await put(world, "a", "x=1")
    await put(world, "b", "x=1")
    await put(world, "a", "x=2")
    await find(world, "x='1'")
    assert len(await index_rows(world)) == 3, "another request may be about to write the blob"
    world.days += 1
    assert found(await find(world, "x='1'")) == [(CONTAINER, "b")]
    assert await index_rows(world) == ["\0x/t1\0b", "\0x/t2\0a"]


async def test_a_commit_does_not_rely_on_old_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_index, "ROW_SECONDS", -1)
    assert (await put(world, "a", "x=1")).code == "ServerBusy"
    await put(world, "a")
    assert (await world.ask("PUT", f"{CONTAINER}/a", "comp=tags", document(x="1"))).code == "ServerBusy"


@pytest.mark.parametrize("operation", ["put_blob", "put_list", "set_tags", "copy"])
async def test_no_blob_has_a_tag_that_is_not_in_the_index(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    await put(world, "blob")
    await world.put_block("a", b"1")

    def fail(_: object) -> None:
        raise EngineUnavailableError("no")

    monkeypatch.setattr(tag_index, "put_rows", fail)
    if operation == "put_blob":
        answer = await put(world, "blob", "x=1")
    elif operation == "put_list":
        answer = await world.put_list(("Latest", "a"), x_ms_tags="x=1")
    elif operation == "set_tags":
        answer = await world.ask("PUT", query="comp=tags", body=document(x="1"))
    else:
        source = f"http://127.0.0.1/{ACCOUNT}/{CONTAINER}/blob?{token()}"
        answer = await world.ask("PUT", x_ms_copy_source=source, x_ms_tags="x=1", host="127.0.0.1")
    assert answer.code == "ServerBusy"
    assert (await world.ask("HEAD")).headers.get("x-ms-tag-count") is None
