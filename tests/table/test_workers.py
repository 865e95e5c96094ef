"""Two services on one store, over a channel each: whatever either does, neither believes what is no more."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.app.registry import CODEC, SPACES
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.records.catalog import StoredAccessPolicy
from lazulite.service.definition import ServiceDependencies
from lazulite.service.properties import Logging, PropertiesUpdate
from lazulite.table.service import TableService
from tests.engine.remote.over_channel import join

Step = tuple[str, int, int]
steps = st.tuples(
    st.sampled_from(["create", "delete", "policies", "properties", "look"]), st.integers(0, 1), st.integers(0, 2)
)


class World:
    """The two, and what both must say: of each table its policies, and whether reads are logged."""

    def __init__(self) -> None:
        self.engine = RocksEngine.open(None, system_clock)
        self.server = EngineServer(self.engine, CODEC, SPACES.watched, print)
        self.remotes: list[RemoteEngine] = []
        self.services: list[TableService] = []
        self.tables: dict[str, tuple[StoredAccessPolicy, ...]] = {}
        self.logging = False

    async def begin(self) -> None:
        for _ in range(2):
            remote = RemoteEngine(CODEC, system_clock)
            service = TableService(ServiceDependencies(engine=remote, accounts=AccountDirectory({})))
            remote.invalidations = {space: [cache] for space, cache in service.invalidations.items()}
            await join(remote.channel, self.server.open_channel(lambda: None))
            await service.start()
            self.remotes.append(remote)
            self.services.append(service)

    async def do(self, what: str, which: int, number: int) -> None:
        context, name = self.services[which]._context, f"table{number}"
        try:
            if what == "create":
                await context.catalog.create("a", name)
                assert self.tables.setdefault(name, ()) == ()
            elif what == "delete":
                await context.catalog.delete("a", name)
                del self.tables[name]
            elif what == "policies":
                policies = (StoredAccessPolicy(f"policy{len(self.tables.get(name, ())) + which}"),)
                await context.catalog.set_policies("a", name, policies)
                self.tables[name] = policies
            elif what == "properties":
                self.logging = not self.logging
                await context.properties.update("a", PropertiesUpdate(logging=Logging(read=self.logging)))
        except ServiceError as error:
            assert (error.code == "TableAlreadyExists") == (name in self.tables), error

    async def look(self) -> None:
        for service in self.services:
            context = service._context
            for number in range(3):
                name = f"table{number}"
                table = await context.catalog.get("a", name)
                assert (None if table is None else table.policies) == self.tables.get(name)
            assert (await context.properties.get("a")).logging.read is self.logging

    async def end(self) -> None:
        for remote in self.remotes:
            await remote.close()
        await self.server.close()
        await self.engine.close()


async def play(turns: list[Step]) -> None:
    world = World()
    await world.begin()
    try:
        await world.look()
        for step in turns:
            await world.do(*step)
            await world.look()
    finally:
        await world.end()


@settings(max_examples=25, deadline=None)
@given(turns=st.lists(steps, max_size=12))
def test_what_one_has_changed_the_other_one_knows(turns: list[Step]) -> None:
    asyncio.run(play(turns))


async def test_many_changes_at_once_leave_both_of_one_mind() -> None:
    world = World()
    await world.begin()
    catalogs = [service._context.catalog for service in world.services]

    async def churn(catalog: int) -> None:
        for _ in range(20):
            for change in (catalogs[catalog].create, catalogs[catalog].delete):
                try:
                    await change("a", "people")
                except ServiceError as error:
                    assert error.code in {"TableAlreadyExists", "ResourceNotFound"}
            await catalogs[catalog].get("a", "people")

    await asyncio.gather(churn(0), churn(1), churn(0), churn(1))
    one, other = [await catalog.get("a", "people") for catalog in catalogs]
    assert one == other
    await world.end()
