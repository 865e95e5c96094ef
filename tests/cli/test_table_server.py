"""What a process does beside answering: it finishes what others left, and tells people when it cannot go on."""

import asyncio

import pytest
from tests.fuzz.memory import MemoryEngine

from lazulite.cli import table_server as module
from lazulite.cli.stores import Store, meanwhile
from lazulite.cli.table_server import table_server
from lazulite.config import Settings
from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.accounts import AccountDirectory
from lazulite.protocol.clock import system_clock
from lazulite.protocol.spaces import TABLES

SETTINGS = Settings(location=None, host="127.0.0.1", port=0)
TURNS = 100


@pytest.mark.parametrize("shared", [False, True])
async def test_what_a_dead_process_left_is_finished_where_others_may_have_died(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKE_OVER_SECONDS", 0)
    engine = MemoryEngine(system_clock)
    drop, failures = engine.drop, iter([EngineUnavailableError("the database cannot serve now")])

    async def fail_once(space: int) -> None:
        for failure in failures:
            raise failure
        await drop(space)

    monkeypatch.setattr(engine, "drop", fail_once)
    async with table_server(SETTINGS, Store(engine, AccountDirectory({}), shared=shared), secure=None, logs=[]):
        await engine.commit(TABLES, "a", ["!1024"], lambda _, __: {"!1024": b""})
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert (await engine.get(TABLES, "a", "!1024") is None) is shared


async def test_people_are_told_when_something_beside_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    async def end() -> None:
        raise LookupError("secret")

    async with meanwhile(end()):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    said = "lazulite: what runs in the background has ended: LookupError; restart the service\n"
    assert capsys.readouterr().err == said


async def test_nothing_is_told_when_it_goes_on_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    async with meanwhile(asyncio.sleep(3600)):
        await asyncio.sleep(0)
    assert capsys.readouterr().err == ""
