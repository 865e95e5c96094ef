"""PointReads that go together, without a database."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from lazulite.engine.postgres import point_reads as module
from lazulite.engine.postgres.point_reads import PointReads
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.sql_statements import GET, GET_ONE


class Asked:
    """A pool's place: notes statements, and answers with the row keys that were asked for once `gate` is set."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.counts: list[int] = []
        self.gate = asyncio.Event()

    async def fetch(
        self, statement: str, _spaces: object, _keys: object, row_keys: object, *, reads: bool, **_: bytes
    ) -> Sequence[tuple[object, ...]]:
        assert reads
        asked = row_keys if isinstance(row_keys, tuple) else (row_keys,)
        self.statements.append(statement)
        self.counts.append(len(asked))
        await self.gate.wait()
        return [(row_key,) for row_key in asked]


async def _ask(reads: PointReads, *numbers: int) -> list[asyncio.Future[bytes | None]]:
    asked = (reads.get(1, b"p", b"%d" % number) for number in numbers)
    tasks: list[asyncio.Future[bytes | None]] = list(map(asyncio.ensure_future, asked))
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def test_reads_that_come_while_others_are_on_their_way_wait_and_share_a_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LINGER_SECONDS", 3600.0)
    asked = Asked()
    reads = PointReads(cast("Pool", asked), coalesce=True)
    tasks = await _ask(reads, *range(4))
    for number in range(4, 10):
        tasks += await _ask(reads, number)
    asked.gate.set()
    assert await asyncio.gather(*tasks) == [b"%d" % number for number in range(10)]
    assert asked.counts == [4, 6]
    assert asked.statements == [GET, GET]


async def test_reads_that_may_not_coalesce_are_sent_alone_and_at_once() -> None:
    asked = Asked()
    reads = PointReads(cast("Pool", asked), coalesce=False)
    tasks = await _ask(reads, 0)
    tasks += await _ask(reads, 1, 2)
    assert asked.statements == [GET_ONE] * 3
    asked.gate.set()
    assert await asyncio.gather(*tasks) == [b"0", b"1", b"2"]
