"""Answers of the database that are kept back."""

import asyncio
from typing import Any

import pytest

from lazulite.engine.postgres.engine import PostgresEngine
from tests.postgres.server import SECONDS_MAX


class Gates:
    """Holds back answers to statements until they are let through."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fetch = engine._pool.fetch
        self._open: dict[str, asyncio.Event] = {}
        self.answered: list[str] = []
        monkeypatch.setattr(engine._pool, "fetch", self._through)

    def hold(self, *statements: str) -> None:
        self._open |= {statement: asyncio.Event() for statement in statements}

    def let(self, statement: str) -> None:
        self._open[statement].set()

    async def come(self, statement: str) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while statement not in self.answered:  # noqa: ASYNC110 - there is no event to wait for.
                await asyncio.sleep(0)

    async def _through(self, statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
        found = await self._fetch(statement, *arguments, reads=reads, **more)
        self.answered.append(statement)
        if statement in self._open:
            await self._open[statement].wait()
        return found
