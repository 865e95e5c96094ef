"""Blob Batch: parts succeed or fail alone, each by its own credentials."""

import re
from collections.abc import AsyncIterator, Sequence

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.sas import AccountSas, sign_account_sas
from tests.blob.world import ACCOUNT, VERSION, Answer, World, opened

_STATUS = re.compile(rb"Content-ID: (\d+)\r\n\r\nHTTP/1\.1 (\d+)")
NAMES = [f"b{number}" for number in range(4)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        for name in NAMES:
            await world.ask("PUT", f"docs/{name}", "", b"x", VERSION, x_ms_blob_type="BlockBlob")
        yield world


def token(permission: str) -> str:
    sas = AccountSas(services="b", resource_types="o", permission=permission, expiry="2999-01-01T00:00:00Z")
    return sign_account_sas(DEVELOPMENT_ACCOUNT, sas)


def part(path: str, permission: str = "dw", method: str = "DELETE", query: str = "", headers: str = "") -> str:
    url = f"/{ACCOUNT}/{path}?{query}{token(permission)}"
    return f"{method} {url} HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n"


async def send(world: World, parts: Sequence[str], path: str = "", query: str = "comp=batch") -> Answer:
    head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {}\r\n\r\n"
    body = "".join(f"--b\r\n{head.format(number)}{text}\r\n" for number, text in enumerate(parts)) + "--b--\r\n"
    return await world.ask("POST", path, query, body.encode(), VERSION, content_type="multipart/mixed; boundary=b")


async def names(world: World) -> list[str]:
    return [name for name in NAMES if (await world.ask("HEAD", f"docs/{name}")).status == 200]


async def test_parts_fail_alone(world: World) -> None:
    answer = await send(world, [part("docs/b0"), part("docs/absent"), part("docs/b1", "r"), part("docs/b2")])
    assert answer.status == 202
    assert _STATUS.findall(answer.body) == [(b"0", b"202"), (b"1", b"404"), (b"2", b"403"), (b"3", b"202")]
    assert await names(world) == ["b1", "b3"]


async def test_tiers_are_set(world: World) -> None:
    parts = [part(f"docs/{name}", "w", "PUT", "comp=tier&", "x-ms-access-tier: Cool\r\n") for name in NAMES]
    answer = await send(world, parts)
    assert {status for _, status in _STATUS.findall(answer.body)} == {b"200"}
    assert (await world.ask("HEAD", "docs/b3")).headers["x-ms-access-tier"] == "Cool"


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part("docs/b0"), part("docs/b1", "w", "PUT", "comp=tier&", "x-ms-access-tier: Cool\r\n")],
        [part("docs/b0", method="GET")],
        [part("docs/b0")] * 257,
    ],
)
async def test_a_batch_that_cannot_be_runs_no_part(world: World, parts: Sequence[str]) -> None:
    assert (await send(world, parts)).status == 400
    assert await names(world) == NAMES


async def test_an_account_that_is_taken_for_a_container(world: World) -> None:
    answer = await send(world, [part("docs/b0")], query="restype=container&comp=batch")
    assert (answer.status, await names(world)) == (202, NAMES[1:])


async def test_the_batch_of_a_container_stays_in_it(world: World) -> None:
    scope = ("docs", "restype=container&comp=batch")
    for path in ("docs2/b1", "docs/../docs2/b1", "docs%5C..%5Cdocs2%5Cb1", "docs", "docs/.."):
        answer = await send(world, [part("docs/b0"), part(path)], *scope)
        assert (answer.status, answer.code) == (400, "InvalidInput"), path
    assert await names(world) == NAMES
    answer = await send(world, [part("docs/b1", headers="Host: other.blob.localhost\r\n")], *scope)
    assert _STATUS.findall(answer.body) == [(b"0", b"202")], "a part goes to the host of the whole"
    await world.ask("PUT", "docs/b1", "", b"x", VERSION, x_ms_blob_type="BlockBlob")
    assert (await send(world, [part("docs/b0")], *scope)).status == 202
    assert await names(world) == NAMES[1:]
