"""One client that writes blobs of every kind, names of its own, and compares what it reads with what it knows."""

import asyncio
import base64
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random

from tests.torture.http_client import Answer, Connection, LostConnectionError

from .expected import Account, Content, Facts, Keeps, Pages, PageWrite, Piece, bytes_of
from .observed import UNAVAILABLE, judged, listed, restored
from .wire import CONTAINER, PRIVATE, SECRET_NAME, Wire

NAMES = 5
"""Of each client."""
LENGTHS = (0, 100, 20_000, 300_000, 1_500_000)
"""Of pieces: in a row, in one window, in several."""
BLOCKS_MAX = 5
PIECES_MAX = 12
SIZES = (512, 100 * 512, 2000 * 512, 9000 * 512)
"""Of page blobs: the last one has two segments."""
PAGE = 512
_PAUSE_SECONDS = 0.02
_LINGER_SECONDS = 0.5
"""Longer than the pause between two sweeps of a server that is `busy`."""
SECRET: Piece = 999, 50_000
"""What the private blob of each account has."""
DENIED = {401, 403, 404, 409}


class UnavailableError(LostConnectionError):
    """The server answered that it cannot do it now."""


class Writer:
    """One client, with names of its own.

    Args:
        number: of the client.
        counts: counts what was done.
        now: the present moment.
        keeps: what the account keeps.
        names: how many blobs there are.
    """

    def __init__(
        self,
        number: int,
        counts: Counter[str],
        now: Callable[[], int],
        keeps: Keeps = Keeps.NOTHING,
        names: int = NAMES,
    ) -> None:
        self.accounts = [Account(f"client{number}/blob{each}", now, keeps) for each in range(names)]
        self._counts = counts
        self._written = number * 10_000_000
        self._random = Random(number)
        self._wire: Wire | None = None
        self._connection: Connection | None = None
        self.noted: Callable[[Account], Awaitable[None]] | None = None
        """Called with the name after each change that was acknowledged."""
        self.others: Sequence[str] = ()
        """Other accounts, whose private blobs it copies."""

    async def run(self, wires: Sequence[Wire], gone: Callable[[], bool]) -> None:
        """Work on any of the servers until they are gone. What may be done later is not touched meanwhile.

        Raises:
            AssertionError: a promise was broken.
        """
        wires = [self.wire_of(wire) for wire in wires]
        moves = self._moves()
        while True:
            idle = [account for account in self.accounts if not account.pending]
            if not idle:
                return
            account = self._random.choice(idle)
            try:
                if self._connection is None:
                    self._wire = self._random.choice(wires)
                    self._connection = await Connection.open(self._wire.host)
                if account.after is not None:
                    await self._look(account)
                await self._random.choice(moves)(account)
            except UnavailableError:
                pass
            except AssertionError:
                await self._hang_up()
                raise
            except LostConnectionError:
                account.pending = account.after is not None
                await self._hang_up()
            else:
                continue
            if gone():
                await self._hang_up()
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    def wire_of(self, wire: Wire) -> Wire:
        """Return the way to the client's account."""
        return wire

    def _moves(self) -> Sequence[Callable[[Account], Awaitable[None]]]:
        """Return what the client may do next, one as likely as the other."""
        moves = [self._put] * 3 + [self._put_blocks] * 4 + [self._append] * 3 + [self._copy] * 2 + [self._put_pages] * 5
        moves += [self._copy_private] * 2 if self.others else []
        return [*moves, self._delete, self._snapshot, self._read, self._read, self._leave, self._linger]

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _piece(self) -> Piece:
        self._written += 1
        return self._written, self._random.randrange(1, self._random.choice(LENGTHS[1:]))

    async def _put(self, account: Account) -> None:
        pieces = (self._piece(),) if self._random.random() < 0.9 else ()
        kind = self._random.choice(["AppendBlob", "BlockBlob", "PageBlob"])
        if kind == "PageBlob":
            pages = Pages(self._random.choice(SIZES))
            headers = {"x-ms-blob-type": kind, "x-ms-blob-content-length": str(pages.size)}
            await self._change(account, "put pages", self._replaced(account, pages), headers)
            return
        content = Content((), appends=True) if kind == "AppendBlob" else Content(pieces)
        after = self._replaced(account, content)
        await self._change(account, "put", after, {"x-ms-blob-type": kind}, body=content.read())

    async def _put_pages(self, account: Account) -> None:
        """Write, clear or resize."""
        known, random = account.known.content, self._random
        if not isinstance(known, Pages) or len(known.writes) >= PIECES_MAX:
            return
        size, kind = known.size_now, random.choice(["update", "update", "update", "clear", "resize"])
        if kind == "resize":
            write, body = PageWrite(random.choice(SIZES), (0, 0), resizes=True), b""
            headers, query = {"x-ms-blob-content-length": str(write.at)}, "comp=properties"
        else:
            at = random.randrange(size // PAGE) * PAGE
            number, length = self._piece()
            length = min(-(-length // PAGE) * PAGE, size - at)
            write = PageWrite(at, (number if kind == "update" else 0, length))
            body = bytes_of(number, length) if kind == "update" else b""
            headers, query = {"x-ms-page-write": kind, "x-ms-range": f"bytes={at}-{at + length - 1}"}, "comp=page"
        after = account.known._replace(content=known._replace(writes=(*known.writes, write)))
        await self._change(account, f"page {kind}", after, headers, query, body)

    async def _put_blocks(self, account: Account) -> None:
        """Put blocks, and commit them with some blocks of the blob."""
        known = account.known.content
        kept = known.pieces if isinstance(known, Content) and known.by_blocks else ()
        if known is not None and known.kind != "BlockBlob":
            return
        new = tuple(self._piece() for _ in range(self._random.randint(1, BLOCKS_MAX)))
        for number, length in new:
            await self._ask("PUT", account, {}, f"comp=block&blockid={_id(number)}", bytes_of(number, length))
        chosen = [piece for piece in kept if self._random.random() < 0.7] + list(new)
        self._random.shuffle(chosen)
        pieces = tuple(chosen[-PIECES_MAX:])
        body = "".join(f"<Latest>{_id(number)}</Latest>" for number, _ in pieces)
        after = self._replaced(account, Content(pieces, by_blocks=True))
        await self._change(account, "list", after, {}, "comp=blocklist", f"<BlockList>{body}</BlockList>".encode())

    async def _append(self, account: Account) -> None:
        known = account.known.content
        if not isinstance(known, Content) or not known.appends:
            return
        piece = self._piece()
        after = account.known._replace(content=known._replace(pieces=(*known.pieces, piece)))
        headers = {"x-ms-blob-condition-appendpos": str(sum(length for _, length in known.pieces))}
        await self._change(account, "append", after, headers, "comp=appendblock", bytes_of(*piece))

    async def _copy(self, account: Account) -> None:
        """Copy another blob, over one of the same type if there is one."""
        source, known = self._random.choice(self.accounts), account.known.content
        content = source.known.content
        if source is account or source.after is not None or not isinstance(content, Content):
            return
        if known is not None and known.kind != content.kind:
            return
        assert self._wire is not None
        headers = {"x-ms-copy-source": self._wire.url(source.name), "x-ms-requires-sync": "true"}
        await self._change(account, "copy", self._replaced(account, content._replace(by_blocks=False)), headers)

    async def _copy_private(self, account: Account) -> None:
        """Copy the private blob of another account by its SAS; without one, which must be rejected."""
        known, content = account.known.content, Content((SECRET,))
        assert self._wire is not None
        assert self._connection is not None
        source = self._wire.of(self._random.choice(self.others))
        if self._random.random() < 0.5:
            if known is None or known.kind == content.kind:
                headers = {"x-ms-copy-source": source.url(SECRET_NAME, PRIVATE)}
                await self._change(account, "copy from another account", self._replaced(account, content), headers)
            return
        url = source.url(SECRET_NAME, PRIVATE).partition("?")[0]
        answer = await self._connection.ask(self._wire.copy(account.name, url))
        if answer.status >= UNAVAILABLE:
            raise UnavailableError(str(answer.status))
        code = answer.headers.get("x-ms-error-code")
        rejected = answer.status in DENIED and code == "CannotVerifyCopySource"
        assert rejected, f"{account.name}: a copy of {url} without credentials got {answer.status} {code}"
        self._counts["copies without credentials"] += 1

    async def _linger(self, account: Account) -> None:
        """Put a blob with a pause inside of its body, which the server has begun to store then."""
        known, piece = account.known.content, (self._piece()[0], 2 * LENGTHS[-2])
        if known is None or known.kind == "BlockBlob":
            after = self._replaced(account, Content((piece,)))
            await self._change(
                account, "put with a pause", after, {"x-ms-blob-type": "BlockBlob"}, body=bytes_of(*piece)
            )

    async def _delete(self, account: Account) -> None:
        if account.known.content is not None:
            headers = {"x-ms-delete-snapshots": "include"}
            await self._change(account, "delete", self._replaced(account, None), headers)

    async def _snapshot(self, account: Account) -> None:
        if account.known.content is not None:
            account.snapshot = True
            await self._change(account, "snapshot", account.known, {}, "comp=snapshot")

    async def _read(self, account: Account) -> None:
        """Read any range."""
        content = account.known.content
        expected = b"" if content is None else content.read()
        if not expected:
            return
        start = self._random.randrange(len(expected))
        stop = self._random.randrange(start, len(expected)) + 1
        answer = await self._ask("GET", account, {"x-ms-range": f"bytes={start}-{stop - 1}"})
        assert answer.body == expected[start:stop], f"{account.name}: bytes {start} to {stop} of {content}"
        self._counts["read"] += 1

    async def _leave(self, account: Account) -> None:
        """Leave half-way in a request, which must change nothing then, or in its response."""
        assert self._wire is not None
        assert self._connection is not None
        number, length = self._piece()
        method, headers, query, body = "PUT", {"x-ms-blob-type": "BlockBlob"}, "", bytes_of(number, length)
        known = account.known.content
        if self._random.random() < 0.3:
            method, headers, body = "GET", {}, b""
        elif known is None or known.kind == "BlockBlob":
            query = self._random.choice(["", f"comp=block&blockid={_id(number)}"])
        request = self._wire.request(method, f"{CONTAINER}/{account.name}", headers, query, body)
        sent = len(request) if method == "GET" else self._random.randrange(len(request))
        await self._connection.leave(request[:sent])
        self._connection = None
        self._counts["left half-way"] += 1

    async def _change(
        self,
        account: Account,
        what: str,
        after: Facts,
        headers: Mapping[str, str],
        query: str = "",
        body: bytes = b"",
    ) -> None:
        account.intend(after)
        pause_seconds = _LINGER_SECONDS if what == "put with a pause" else 0
        answer = await self._ask("DELETE" if what == "delete" else "PUT", account, headers, query, body, pause_seconds)
        account.acknowledge(answer.headers.get("x-ms-snapshot", ""))
        self._counts[what] += 1
        if self.noted is not None:
            await self.noted(account)

    def _replaced(self, account: Account, content: Content | Pages | None) -> Facts:
        return account.known.replaced(content, account.keeps)

    async def _ask(
        self,
        method: str,
        account: Account,
        headers: Mapping[str, str],
        query: str = "",
        body: bytes = b"",
        pause_seconds: float = 0,
    ) -> Answer:
        """Send a request that must succeed.

        Raises:
            LostConnectionError: there is no response.
            UnavailableError: it is a 5xx. The request was done, or never will be.
        """
        assert self._wire is not None
        assert self._connection is not None
        digest = {"Content-MD5": base64.b64encode(hashlib.md5(body).digest()).decode()} if body else {}
        request = self._wire.request(method, f"{CONTAINER}/{account.name}", {**headers, **digest}, query, body)
        if pause_seconds:
            half = len(request) - len(body) // 2
            await self._connection.send(request[:half])
            await asyncio.sleep(pause_seconds)
            request = request[half:]
        answer = await self._connection.ask(request)
        if answer.status >= UNAVAILABLE:
            self._counts[f"answered with {answer.status}"] += 1
            raise UnavailableError(str(answer.status))
        assert answer.status < 400, f"{account.name}: {method} {query}: {answer.status} {answer.body!r}"
        return answer

    async def _look(self, account: Account) -> None:
        """Find out what became of a request without a response."""
        assert self._wire is not None
        assert self._connection is not None
        problem = await restored(self._connection, self._wire, account)
        queries = (await listed(self._connection, self._wire, account.name)).get(account.name, [])
        problem = problem or await judged(self._connection, self._wire, account, queries)
        assert not problem, problem
        self._counts["looked at"] += 1


def _id(number: int) -> str:
    return base64.b64encode(f"{number:012}".encode()).decode()
