"""The commands that change rules: what they leave behind."""

import socket
from functools import partial
from pathlib import Path

import httpx
import pytest
from benchmarks.requests import account_sas

from lazulite import create_app
from lazulite.app.faults import RuleCommands, hold_rows
from lazulite.control import client as control_client
from lazulite.control.channel import Channel
from lazulite.control.command import ControlError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.faults.commands import ADD_FAULTS, RulesArguments
from lazulite.faults.rules import MOMENTS_MAX, FaultRules, RulesError
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import ConfigError, Settings

STALE = '[[rule]]\nname = "old"\nstale = true'


async def test_the_rows_from_before_a_rule_are_released_with_it() -> None:
    engine = RocksEngine.open(None, system_clock)
    try:
        rules = FaultRules()
        commands = RuleCommands(rules, partial(hold_rows, Settings(), engine))
        async with commands.opened(Settings(), Channel("1")):
            await commands._add(STALE, "rules")
            assert rules.rows_before("old") is not None
            assert len(engine._cursors) == 1
            await commands._clear()
            assert not engine._cursors
            for number in range(MOMENTS_MAX):
                await commands._add(STALE.replace("old", f"old{number}"), "rules")
            with pytest.raises(RulesError, match="stale shows the rows of 8 moments at most"):
                await commands._add(STALE, "rules")
            assert len(engine._cursors) == MOMENTS_MAX
        assert not engine._cursors
    finally:
        await engine.close()


async def test_an_asgi_application_has_rules(tmp_path: Path) -> None:
    """All but those for connections, at the start and by commands."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "busy"\nfirst = 1\nerror = "ServerBusy"')
    settings = Settings(log_requests=False, faults=str(rules), control_socket=tmp_path / "control.sock")
    app = create_app(settings=settings)
    url = f"http://127.0.0.1/devstoreaccount1/Tables?{account_sas('9999-12-31T23:59:59Z')}"
    late = RulesArguments('[[rule]]\nname = "late"\nreset = "end"')
    async with app, httpx.AsyncClient(transport=httpx.ASGITransport(app=app, client=("127.0.0.1", 1))) as client:
        assert [(await client.get(url)).status_code for _ in "ab"] == [503, 200]
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(tmp_path / "control.sock"))
        with pytest.raises(ControlError, match="rule late: reset needs lazulite serve"):
            await control_client.ask(connection, ADD_FAULTS, late)
    with pytest.raises(ConfigError, match=r"--faults: rule .* needs lazulite serve"):
        await create_app(settings=Settings(faults="flaky-network")).__aenter__()


async def test_each_change_is_announced() -> None:
    announced = []

    async def announce() -> None:
        announced.append(len(rules))

    rules = FaultRules()
    commands = RuleCommands(rules, changed=announce)
    await commands._add('[[rule]]\nname = "a"\nerror = "ServerBusy"', "rules")
    await commands._clear()
    assert announced == [1, 0]
