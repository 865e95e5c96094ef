"""The servers of a process share one set of budgets."""

import socket
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from lazulite.app.commands import SET_TARGETS, SetTargetsArguments
from lazulite.app.servers import open_servers
from lazulite.app.stores import Store
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control import client as control_client
from lazulite.control.command import Command, NoArguments
from lazulite.faults.commands import ADD_FAULTS, CLEAR_FAULTS, RulesArguments
from lazulite.protocol.clock import system_clock
from lazulite.server.limits import Limits
from lazulite.settings.addresses import QUEUE, TABLE
from lazulite.settings.config import Settings
from tests.fuzz.memory import MemoryEngine

A = TypeVar("A")


async def test_all_servers_have_the_same_budgets() -> None:
    settings = replace(Settings(location=None), services=(TABLE, QUEUE), limits=Limits(connections=5))
    store = Store(MemoryEngine(system_clock), AccountDirectory({}))
    async with open_servers(settings, store) as group:
        servers = list(group._servers.values())
        assert len(servers) == 2
        assert len({id(server._state.budgets) for server in servers}) == 1
        assert {server._state.limits.connections for server in servers} == {5}


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (
            (ADD_FAULTS, RulesArguments('[[rule]]\nname = "r"\nreset = "end"')),
            (CLEAR_FAULTS, NoArguments()),
        ),
        ((SET_TARGETS, SetTargetsArguments("current")), (SET_TARGETS, SetTargetsArguments("off"))),
    ],
    ids=["faults", "targets"],
)
async def test_templates_rest_while_something_looks_at_each_request(
    begin: tuple[Command[Any], Any], end: tuple[Command[Any], Any]
) -> None:
    store = Store(MemoryEngine(system_clock), AccountDirectory({}))
    async with open_servers(Settings(services=(TABLE,)), store) as group:
        (server,) = group._servers.values()
        state, kept, outcomes = server._state, server._state.templates, group.template_outcomes
        assert kept is not None

        async def ask(command: Command[A], arguments: A) -> None:
            ours, theirs = socket.socketpair()
            store.channel.attach(theirs)
            await control_client.ask(ours, command, arguments)

        await ask(*begin)
        assert state.templates is None
        assert group.template_outcomes == outcomes
        await ask(*end)
        assert state.templates is kept
        await store.channel.close()
