"""Clients of accounts that keep what is overwritten or deleted: as versions, or as deleted blobs and snapshots.

Such a client also undeletes blobs, promotes versions, and deletes what was kept: for a while, or forever.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.accounts.document import AccountStore, StoredAccount
from lazulite.auth.accounts.switches import Switches
from tests.torture.http_client import Connection

from .expected import Account, Content, Facts, Keeps, Past, stored
from .observed import asked, listed
from .wire import Wire
from .writer import Writer

KEEPING: Mapping[Keeps, str] = {Keeps.VERSIONS: "versions", Keeps.DELETED: "softdelete"}
"""The accounts: both have the retention of deleted blobs, and the first has versioning, too.

A server prints the connection string of the first account by name, which is the development account.
"""
NAMES = 3
KEPT_MAX = 4
"""Of a name: what is more is deleted forever first."""


def add_accounts(store: AccountStore) -> None:
    """Add the accounts, with the key of the development account, which remains."""
    keys = DEVELOPMENT_ACCOUNT.keys * 2
    accounts = {DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT.switches}
    accounts |= {name: Switches(versioning=keeps is Keeps.VERSIONS) for keeps, name in KEEPING.items()}
    store.edit(lambda _: {name: StoredAccount(keys, switches=each) for name, each in accounts.items()})


async def prepare(connection: Connection, wire: Wire, keeps: Keeps) -> None:
    """Let the service keep deleted blobs of an account. Raises `LostConnectionError`."""
    if keeps is not Keeps.NOTHING:
        answer = await asked(connection, wire.keep_deleted())
        assert answer.status == 202, answer


@dataclass
class _Kept:
    """A state that a client may address."""

    query: str
    past: Past


class KeepingWriter(Writer):
    """One client of an account that keeps what is deleted."""

    def __init__(self, number: int, counts: Counter[str], keeps: Keeps, now: Callable[[], int]) -> None:
        super().__init__(number, counts, now, keeps, NAMES)
        self._keeps = keeps

    def wire_of(self, wire: Wire) -> Wire:
        """See `Writer`."""
        return wire.of(KEEPING[self._keeps])

    def _moves(self) -> Sequence[Callable[[Account], Awaitable[None]]]:
        moves = [self._put] * 3 + [self._put_blocks] * 4 + [self._append] * 2 + [self._copy, self._put_pages]
        moves += [self._delete, self._delete, self._undelete, self._undelete, self._read, self._leave]
        moves += [self._delete_kept] * 2 + [self._copy_private]
        return [*moves, *[self._promote if self._keeps is Keeps.VERSIONS else self._snapshot] * 3]

    async def _change(
        self,
        account: Account,
        what: str,
        after: Facts,
        headers: Mapping[str, str],
        query: str = "",
        body: bytes = b"",
    ) -> None:
        if len(after.kept) > KEPT_MAX:
            await self._delete_kept(account, forever=True)
        else:
            await super()._change(account, what, after, headers, query, body)

    async def _snapshot(self, account: Account) -> None:
        known = account.known
        if known.content is not None:
            after = known._replace(kept=(*known.kept, Past(known.content)))
            await self._change(account, "snapshot", after, {}, "comp=snapshot")

    async def _undelete(self, account: Account) -> None:
        if account.known.content is not None or account.known.restorable:
            await self._restore(account)

    async def _restore(self, account: Account) -> None:
        await self._change(account, "undelete", account.known.undeleted(), {}, "comp=undelete")

    async def _promote(self, account: Account) -> None:
        """Copy a past version over the blob, or to where none is."""
        kept, known = await self._find(account), account.known.content
        content = None if kept is None else kept.past.content
        if kept is None or not isinstance(content, Content):
            return
        if known is not None and known.kind != content.kind:
            return
        assert self._wire is not None
        source = f"{self._wire.url(account.name)}&{kept.query}"
        after = account.known.replaced(content._replace(by_blocks=False), account.keeps)
        headers = {"x-ms-copy-source": source, "x-ms-requires-sync": "true"}
        await self._change(account, "promotion", after, headers)

    async def _delete_kept(self, account: Account, *, forever: bool | None = None) -> None:
        """Delete a snapshot or a version: it is kept, unless it is deleted again, forever."""
        kept = None if account.known.restorable else await self._find(account)
        if kept is None:
            if account.known.kept:  # All of them are deleted.
                await self._restore(account)
            return
        known, goes = account.known, self._random.random() < 0.5 if forever is None else forever
        left = list(known.kept)
        left[left.index(kept.past) : left.index(kept.past) + 1] = (
            [] if goes else [Past(kept.past.content, deleted=True)]
        )
        account.intend(known._replace(kept=tuple(left)))
        await self._ask("DELETE", account, {}, kept.query)
        if goes:
            await self._ask("DELETE", account, {}, f"{kept.query}&deletetype=permanent")
        account.acknowledge()
        self._counts["delete forever" if goes else "delete a kept one"] += 1

    async def _find(self, account: Account) -> _Kept | None:
        """Read any snapshot or past version that is not deleted."""
        assert self._wire is not None
        assert self._connection is not None
        queries = (await listed(self._connection, self._wire, account.name)).get(account.name, [])
        kept = [query for query in queries if query]
        if not kept:
            return None
        query = self._random.choice(kept)
        answer = await self._ask("GET", account, {}, query)
        for past in account.known.kept:
            if not past.deleted and stored(past.content) == (answer.headers["x-ms-blob-type"], answer.body):
                return _Kept(query, past)
        raise AssertionError(f"{account.name}: {query} has {len(answer.body)} bytes; known is {account.known}")
