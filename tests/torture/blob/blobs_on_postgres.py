"""The campaign `blobs` on PostgreSQL: several processes, while processes and the database fail.

The processes sweep all the time, and what is undecided for seconds is swept. After each round a new process is asked
for each blob. At the end all blobs are deleted: then no content may be left. Copies that a dead process had begun are
an exception: their lists are kept for a day (`blob.model.ledger`).
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from lazulite.app.database import DatabaseAccounts
from lazulite.blob.model.ledger import read_ledger
from lazulite.blob.model.references import contents_of_row
from lazulite.blob.model.rows import LEDGER, list_rows
from lazulite.engine.content.contract import ContentId
from lazulite.engine.postgres.settings import PostgresSettings
from tests.postgres.server import PostgresServer
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import LostConnectionError
from tests.torture.on_database import OnDatabase
from tests.torture.variants import HASTY_SECONDS

from .campaign import FLAGS
from .clients import Clients
from .keeping import add_accounts
from .wire import Wire

CLIENTS = 5
PROCESSES: Mapping[int, str] = {
    0: "hasty_sweeps+paused_uploads",
    2: "hasty_sweeps+paused_uploads",
    -3: "hasty_sweeps+paused_uploads+scripts",
}
"""As those of `tests.torture.on_database`."""
SWEPT_WITHIN_SECONDS = 3 * HASTY_SECONDS
_CONTENTS = "SELECT space, content, partition, state FROM lazulite.contents"
_ROWS = "SELECT row_key, value FROM lazulite.rows WHERE space = $1 AND partition_key = $2"


class BlobsOnDatabase:
    """A campaign at work.

    Args:
        database: the server.
        servers: the processes.
        counts: counts what was done.
    """

    def __init__(self, database: PostgresServer, servers: OnDatabase, counts: Counter[str]) -> None:
        self._database = database
        self._servers = servers
        self._counts = counts
        self._clients = Clients(CLIENTS, keeping=True)

    async def work(self, budget: Budget) -> Report:
        """Work until the budget is spent or something is wrong."""
        problems: list[str] = []
        try:
            await self._servers.again()
            while not problems:
                problems += await self._clients.verify(self._wires()[0])
                if problems or (self._counts["rounds"] and not budget.more(self._counts["rounds"])):
                    break
                problems += await self._round()
                await self._servers.again()
            problems = problems or await self._emptied()
        except (AssertionError, LostConnectionError) as error:
            problems.append(f"{type(error).__name__}: {error}")
        finally:
            await self._servers.close()
        return Report({**dict(sorted(self._counts.items())), **self._clients.counts()}, tuple(problems))

    def _wires(self) -> Sequence[Wire]:
        return [Wire(account) for account in self._servers.accounts()]

    async def _round(self) -> list[str]:
        """Let the clients work while things fail; return what is wrong."""
        over = asyncio.Event()
        load = asyncio.create_task(self._load(over))
        try:
            await self._servers.disturb()
        finally:
            over.set()
            await self._servers.end()
        self._counts["rounds"] += 1
        return await load

    async def _load(self, over: asyncio.Event) -> list[str]:
        """Let the clients work until it is over. They look for the processes again now and then."""
        problems: list[str] = []
        while not over.is_set() and not problems:
            wires = self._wires()
            problems = await self._clients.load(wires, partial(self._changed, wires, over))
            await asyncio.sleep(0.05)
        return problems

    def _changed(self, wires: Sequence[Wire], over: asyncio.Event) -> bool:
        return over.is_set() or {wire.host for wire in wires} != {wire.host for wire in self._wires()}

    async def _emptied(self) -> list[str]:
        """Delete all; return what is left of the contents when its time is over."""
        self._counts["contents deleted"] = len(await asyncio.to_thread(self._left))
        problems = await self._clients.delete_all(self._wires()[0])
        deadline = time.monotonic() + SWEPT_WITHIN_SECONDS
        while not problems and (left := await asyncio.to_thread(self._left)):
            if time.monotonic() > deadline:
                return [f"no blob is there, and contents are: {left}"]
            await asyncio.sleep(0.5)
        return problems

    def _left(self) -> list[str]:
        """Return the contents, which all windows have, without those of copies that were begun."""
        contents = self._database.execute(_CONTENTS)
        partitions = {(space, partition) for space, _, partition, _ in contents}
        begun = {each for space, partition in partitions for each in self._begun(space, partition)}
        return [
            f"{number} of {partition}, {state}"
            for space, number, partition, state in contents
            if ContentId(space, number) not in begun
        ]

    def _begun(self, space: int, partition: bytes) -> Iterator[ContentId]:
        """Yield the contents of lists that are being written."""
        rows = {key.decode(): value for key, value in self._database.execute(_ROWS, space, partition)}
        lists = tuple(list_rows(int(each[1:])) for each in read_ledger(rows.get(LEDGER)).pending)
        for row, value in rows.items():
            if row.startswith(lists):
                yield from contents_of_row(space, row, value)


def run(
    budget: Budget, seed: int, directory: Path, processes: Mapping[int, str] = PROCESSES, mutation: str = ""
) -> Report:
    """Run the campaign; see `Campaign.run`. `processes` and `mutation` are those of `OnDatabase`."""
    counts = Counter[str]()
    with PostgresServer.make() as database:
        add_accounts(DatabaseAccounts(PostgresSettings(dsn=database.dsn())))
        servers = OnDatabase(database, directory, Random(seed), counts, processes, mutation, FLAGS)
        return asyncio.run(BlobsOnDatabase(database, servers, counts).work(budget))


BLOBS_ON_POSTGRES = Campaign(
    "a blob is the old or the new one whichever process serves it and whatever fails, and each content has a row",
    "rounds",
    2,
    run,
)
