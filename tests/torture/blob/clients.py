"""Clients that work at the same time, and the judgement of a store by what they know."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from tests.torture.http_client import Connection, LostConnectionError

from .expected import Account, Keeps, bytes_of
from .keeping import KEEPING, KeepingWriter, prepare
from .observed import judged, listed, restored
from .wire import CONTAINER, PRIVATE, Wire
from .writer import SECRET, Writer

PROBLEMS_REPORTED_MAX = 20


class Clients:
    """Clients that work at the same time, and the judgement of a store by what they know.

    Args:
        size: the number of clients of the development account.
        now: the present moment.
        keeping: whether the accounts that keep what is deleted are there, and have a client each.
    """

    def __init__(self, size: int, now: Callable[[], int] = lambda: 0, *, keeping: bool = False) -> None:
        self._counts = Counter[str]()
        self._by_account = {Keeps.NOTHING: [Writer(number, self._counts, now) for number in range(size)]}
        for number, keeps in enumerate(KEEPING if keeping else (), size):
            self._by_account[keeps] = [KeepingWriter(number, self._counts, keeps, now)]
        names = [DEVELOPMENT_ACCOUNT.name, *KEEPING.values()]
        for keeps, writers in self._by_account.items() if keeping else ():
            for writer in writers:
                writer.others = [name for name in names if name != KEEPING.get(keeps, names[0])]
        self._writers = [writer for writers in self._by_account.values() for writer in writers]
        self._new = True

    def counts(self) -> dict[str, int]:
        """Return what the clients did, as far as it was answered."""
        return dict(sorted(self._counts.items()))

    def tell(self, noted: Callable[[Account], Awaitable[None]] | None) -> None:
        """Call a function after each change from now on that was acknowledged."""
        for client in self._writers:
            client.noted = noted

    @property
    def accounts(self) -> Sequence[Account]:
        """The names of all clients."""
        return [account for client in self._writers for account in client.accounts]

    async def verify(self, wire: Wire) -> list[str]:
        """Compare all that is there with what all clients know. What was sent before is settled then."""
        problems: list[str] = []
        for account in self.accounts:
            account.changes.clear()
        try:
            connection = await Connection.open(wire.host)
            try:
                for keeps, writers in self._by_account.items():
                    own = writers[0].wire_of(wire)
                    if self._new:
                        await prepare(connection, own, keeps)
                        for request in (own.create_container(), *own.create_private(bytes_of(*SECRET))):
                            await connection.ask(request)
                    accounts = [account for writer in writers for account in writer.accounts]
                    problems += await _compared(connection, own, accounts)
                self._new = False
            finally:
                await connection.close()
        except LostConnectionError as error:
            return [f"the blobs cannot be read: {error}"]
        self._counts["verified"] += len(self.accounts)
        return problems[:PROBLEMS_REPORTED_MAX]

    def expire(self) -> None:
        """Note that the clock of the next server is past the days of all that is deleted."""
        for account in self.accounts:
            account.expire()

    async def delete_all(self, wire: Wire) -> list[str]:
        """Delete every blob with its snapshots and uncommitted blocks; return what is wrong.

        Where blobs are kept, the container is deleted.
        """
        connection = await Connection.open(wire.host)
        try:
            for keeps, writers in self._by_account.items():
                own = writers[0].wire_of(wire)
                requests = [own.delete_container(), own.delete_container(PRIVATE)]
                if keeps is Keeps.NOTHING:
                    requests = [own.delete_container(PRIVATE)]
                    requests += [each for writer in writers for each in _deletions(own, writer.accounts)]
                for request in requests:
                    answer = await connection.ask(request)
                    if answer.status not in (201, 202):
                        return [f"{request[:100]!r}: {answer.status} {answer.body!r}"]
        finally:
            await connection.close()
        return []

    async def load(self, wires: Sequence[Wire], gone: Callable[[], bool]) -> list[str]:
        """Let all clients work until the servers are gone; return what was wrong."""
        results = await asyncio.gather(*(each.run(wires, gone) for each in self._writers), return_exceptions=True)
        for result in results:
            if result is not None and not isinstance(result, AssertionError):
                raise result
        return [str(result) for result in results if result is not None]


async def _compared(connection: Connection, wire: Wire, accounts: Sequence[Account]) -> list[str]:
    """Read all that an account has; return what is wrong with it."""
    problems = [await restored(connection, wire, each) for each in accounts]
    there = await listed(connection, wire)
    problems += [await judged(connection, wire, each, there.pop(each.name, [])) for each in accounts]
    return [problem for problem in problems if problem] + [f"{name} is there" for name in there]


def _deletions(wire: Wire, accounts: Sequence[Account]) -> Iterator[bytes]:
    """Yield the requests that delete blobs. One that is replaced ends its upload of blocks, even if none was there."""
    for account in accounts:
        path = f"{CONTAINER}/{account.name}"
        yield wire.request("PUT", path, {"x-ms-blob-type": "BlockBlob"})
        yield wire.request("DELETE", path, {"x-ms-delete-snapshots": "include"})
