"""The servers of a process share one set of budgets."""

from dataclasses import replace

from lazulite.app.servers import open_servers
from lazulite.app.stores import Store
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.protocol.clock import system_clock
from lazulite.server.limits import Limits
from lazulite.settings.addresses import QUEUE, TABLE
from lazulite.settings.config import Settings
from tests.fuzz.memory import MemoryEngine


async def test_all_servers_have_the_same_budgets() -> None:
    settings = replace(Settings(location=None), services=(TABLE, QUEUE), limits=Limits(connections=5))
    store = Store(MemoryEngine(system_clock), AccountDirectory({}))
    async with open_servers(settings, store) as group:
        servers = list(group._servers.values())
        assert len(servers) == 2
        assert len({id(server._state.budgets) for server in servers}) == 1
        assert {server._state.limits.connections for server in servers} == {5}
