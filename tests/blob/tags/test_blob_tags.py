"""Tags of blobs: set, read, as conditions, found."""

from collections.abc import AsyncIterator
from xml.etree import ElementTree as ET

import pytest

from lazulite.blob.storage.uploads import UPLOADS_SPACE
from lazulite.blob.storage.verification import CONTAINERS_SPACE
from lazulite.engine.contract import KeyRange
from tests.blob.world import ACCOUNT, CONTAINER, Answer, World, opened

TAGS = "comp=tags"


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


def tags_of(answer: Answer) -> dict[str, str]:
    assert answer.status == 200, answer
    root = ET.fromstring(answer.body.decode("utf-8-sig"))
    return {tag.findtext("Key", ""): tag.findtext("Value", "") for tag in root.iter("Tag")}


async def test_tags_are_read_as_they_were_set(world: World) -> None:
    await put(world)
    before = await world.ask("HEAD")
    assert "x-ms-tag-count" not in before.headers
    assert (await world.ask("PUT", query=TAGS, body=document(a="1", b="two words"))).status == 204
    assert tags_of(await world.ask("GET", query=TAGS)) == {"a": "1", "b": "two words"}
    after = await world.ask("HEAD")
    assert after.headers["x-ms-tag-count"] == "2"
    assert (after.headers["etag"], after.headers["last-modified"]) == (
        before.headers["etag"],
        before.headers["last-modified"],
    )
    assert (await world.ask("PUT", query=TAGS, body=document())).status == 204
    assert tags_of(await world.ask("GET", query=TAGS)) == {}


async def test_tags_come_with_the_blob(world: World) -> None:
    assert (await put(world, tags="a=1&b=two+words")).status == 201
    assert tags_of(await world.ask("GET", query=TAGS)) == {"a": "1", "b": "two words"}
    assert (await put(world)).status == 201
    assert tags_of(await world.ask("GET", query=TAGS)) == {}
    await world.put_block("a", b"1")
    await world.put_list(("Latest", "a"), x_ms_tags="c=3")
    assert tags_of(await world.ask("GET", query=TAGS)) == {"c": "3"}
    assert (await put(world, tags="=1")).code == "EmptyTagName"


async def test_a_snapshot_keeps_its_tags(world: World) -> None:
    await put(world, tags="a=1")
    taken = await world.ask("PUT", query="comp=snapshot")
    await put(world)
    assert tags_of(await world.ask("GET", query=f"{TAGS}&snapshot={taken.headers['x-ms-snapshot']}")) == {"a": "1"}


async def test_tags_of_what_is_not_there(world: World) -> None:
    assert (await world.ask("GET", query=TAGS)).code == "BlobNotFound"
    assert (await world.ask("PUT", query=TAGS, body=document(a="1"))).code == "BlobNotFound"
    assert (await world.ask("PUT", query=TAGS, body=b"<Tags/>")).code == "InvalidXmlDocument"


@pytest.mark.parametrize(("condition", "met"), [("a='1'", True), ("a='2'", False), ("b<>'1' OR a>'0'", True)])
async def test_conditions_on_tags(world: World, condition: str, met: bool) -> None:
    await put(world, tags="a=1")
    headers = {"x_ms_if_tags": condition}
    requests = [
        ("GET", "", b""),
        ("HEAD", "", b""),
        ("PUT", "comp=metadata", b""),
        ("PUT", "comp=properties", b""),
        ("PUT", "comp=snapshot", b""),
        ("GET", TAGS, b""),
        ("PUT", TAGS, document(a="1")),
        ("PUT", "comp=blocklist", b"<BlockList/>"),
    ]
    for method, query, body in requests:
        answer = await world.ask(method, f"{CONTAINER}/blob", query, body, "2021-12-02", **headers)
        assert (answer.status < 300) is met, (method, query, answer)
        if not met:
            assert (answer.status, answer.code) == (412, "ConditionNotMet")
        elif query == "comp=blocklist":
            await put(world, tags="a=1")
    assert (await world.ask("GET", x_ms_if_tags="a=")).code == "InvalidHeaderValue"


async def test_conditions_on_the_version_of_tagged_blobs(world: World) -> None:
    await put(world)
    version, body = "2026-02-06", document(a="1")
    assert (await world.ask("GET", query=TAGS, version=version, x_ms_blob_if_match='"0x1"')).status == 412
    answer = await world.ask("PUT", query=TAGS, body=body, version=version, x_ms_blob_if_match='"0x1"')
    assert answer.code == "ConditionNotMet"
    assert (await world.ask("PUT", query=TAGS, body=body, version=version, x_ms_blob_if_match="*")).status == 204


async def test_old_versions_have_no_tags(world: World) -> None:
    await put(world)
    assert (await world.ask("GET", query=TAGS, version="2019-07-07")).status == 400


async def test_the_index_is_not_listed(world: World) -> None:
    await put(world, tags="a=1")
    answer = await world.ask("GET", CONTAINER, "restype=container&comp=list&include=tags")
    assert answer.body.count(b"<Name>") == 1
    assert b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>" in answer.body


async def test_every_row_is_known_to_the_check_of_stores(world: World) -> None:
    await put(world, tags="a=1")
    await world.put_block("a", bytes(20_000))
    await world.put_list(("Latest", "a"), x_ms_tags="a=2")
    await world.ask("PUT", query="comp=snapshot")
    await world.put_block("b", b"1")
    await world.rows()
    space = (await world.context.catalog.require(ACCOUNT, CONTAINER)).space
    catalog, kinds = CONTAINERS_SPACE.catalog, set[str]()
    assert catalog is not None
    async for part in world.engine.scan(space, [KeyRange(("", ""), None)]):
        for index, value in enumerate(part.values):
            catalog.verify(part.key(index), value, 0)
            kinds.add(part.key(index)[1][0])
    assert kinds == set("abstwx")
    with pytest.raises(ValueError, match="index"):
        catalog.verify(("\0a", "t1"), b"", 0)
    async for each in world.context.uploads.due(10**6):
        assert UPLOADS_SPACE.verify is not None
        UPLOADS_SPACE.verify(each.key, b"")
