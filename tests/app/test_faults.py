"""The commands that change rules: what they leave behind."""

import socket
from functools import partial
from typing import Any

import pytest

from lazulite import create_app
from lazulite.app.faults import RuleCommands, hold_rows, reject_rules
from lazulite.control import client as control_client
from lazulite.control.channel import Channel
from lazulite.control.command import Command, ControlError, NoArguments
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.faults.commands import ADD_FAULTS, LIST_FAULTS, RulesArguments
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


async def test_a_server_without_rules_says_why() -> None:
    channel = Channel("1")
    reject_rules(channel, "because")
    asked: list[tuple[Command[Any], object]] = [(LIST_FAULTS, NoArguments()), (ADD_FAULTS, RulesArguments(STALE))]
    for command, arguments in asked:
        ours, theirs = socket.socketpair()
        channel.attach(theirs)
        with pytest.raises(ControlError, match="no rules of faults: because"):
            await control_client.ask(ours, command, arguments)
    await channel.close()


def test_an_asgi_application_has_no_rules() -> None:
    with pytest.raises(ConfigError, match="faults: an ASGI application leaves connections"):
        create_app(settings=Settings(faults="flaky-network"))


async def test_each_change_is_announced() -> None:
    announced = []

    async def announce() -> None:
        announced.append(len(rules))

    rules = FaultRules()
    commands = RuleCommands(rules, changed=announce)
    await commands._add('[[rule]]\nname = "a"\nerror = "ServerBusy"', "rules")
    await commands._clear()
    assert announced == [1, 0]
