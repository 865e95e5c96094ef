"""Clients that work at the same time, and the judgement of a store by what they know."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.torture.http_client import Connection, LostConnectionError

from .expected import Account
from .observed import judged, listed
from .wire import CONTAINER, Wire
from .writer import Writer

PROBLEMS_REPORTED_MAX = 20


class Clients:
    """Clients that work at the same time, and the judgement of a store by what they know."""

    def __init__(self, size: int, now: Callable[[], int] = lambda: 0) -> None:
        self._counts = Counter[str]()
        self._writers = [Writer(number, self._counts, now) for number in range(size)]
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
        accounts = self.accounts
        try:
            connection = await Connection.open(wire.host)
            try:
                if self._new:
                    await connection.ask(wire.create_container())
                    self._new = False
                there = await listed(connection, wire)
                problems = [await judged(connection, wire, each, there.pop(each.name, [])) for each in accounts]
            finally:
                await connection.close()
        except LostConnectionError as error:
            return [f"the blobs cannot be read: {error}"]
        problems = [problem for problem in problems if problem] + [f"{name} is there" for name in there]
        self._counts["verified"] += len(accounts)
        for account in accounts:
            account.changes.clear()
        return problems[:PROBLEMS_REPORTED_MAX]

    async def delete_all(self, wire: Wire) -> list[str]:
        """Delete every blob with its snapshots and uncommitted blocks; return what is wrong."""
        connection = await Connection.open(wire.host)
        try:
            for account in self.accounts:
                # A blob that is replaced ends the upload of blocks, even if no blob was there.
                steps = ("PUT", {"x-ms-blob-type": "BlockBlob"}), ("DELETE", {"x-ms-delete-snapshots": "include"})
                for method, headers in steps:
                    answer = await connection.ask(wire.request(method, f"{CONTAINER}/{account.name}", headers))
                    if answer.status not in (201, 202):
                        return [f"{method} of {account.name}: {answer.status} {answer.body!r}"]
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
