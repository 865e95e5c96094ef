"""What a store has of the names of clients: lists, and reads of all that is listed."""

import re
from collections.abc import Sequence

from tests.torture.http_client import Answer, Connection, LostConnectionError

from .expected import Account, Keeps, Stored
from .wire import CONTAINER, Wire

UNAVAILABLE = 500
_ENTRY = re.compile(
    rb"<Blob><Name>([^<]*)</Name>(?:<Snapshot>([^<]*)</Snapshot>)?(?:<VersionId>([^<]*)</VersionId>)?"
    rb"(<IsCurrentVersion>true</IsCurrentVersion>)?"
)


async def listed(connection: Connection, wire: Wire, prefix: str = "") -> dict[str, list[str]]:
    """Return, by name, the queries that address the blob itself, its snapshots and its past versions.

    Raises:
        LostConnectionError: there is no response, or it is not a success.
    """
    query = f"restype=container&comp=list&include=snapshots,versions&prefix={prefix}"
    answer = await connection.ask(wire.request("GET", CONTAINER, {}, query))
    if answer.status != 200:
        raise LostConnectionError(str(answer.status))
    found: dict[str, list[str]] = {}
    for name, snapshot, version, current in _ENTRY.findall(answer.body):
        past = f"versionid={version.decode()}" if version and not current else ""
        found.setdefault(name.decode(), []).append(f"snapshot={snapshot.decode()}" if snapshot else past)
    return found


async def judged(connection: Connection, wire: Wire, account: Account, queries: Sequence[str]) -> str:
    """Read a blob and its snapshots and versions; return what is wrong with them.

    Raises:
        LostConnectionError: there is no response, or it is a 5xx.
    """
    found: dict[str, Stored] = {}
    for query in queries:
        answer = await asked(connection, wire.request("GET", f"{CONTAINER}/{account.name}", {}, query))
        if answer.status != 200:
            return f"{account.name} of {query or 'now'} was listed, and a read gets {answer.status}"
        found[query.partition("=")[2]] = Stored(answer.headers["x-ms-blob-type"], answer.body)
    return account.judge(found.pop("", None), found)


async def restored(connection: Connection, wire: Wire, account: Account) -> str:
    """Undelete a blob of an account that keeps what is deleted; return what is wrong.

    Raises:
        LostConnectionError: there is no response, or it is a 5xx.
    """
    if account.keeps is Keeps.NOTHING:
        return ""
    answer = await asked(connection, wire.request("PUT", f"{CONTAINER}/{account.name}", {}, "comp=undelete"))
    missing = answer.headers.get("x-ms-error-code") == "BlobNotFound"
    return "" if answer.status == 200 or missing else f"{account.name} cannot be undeleted: {answer}"


async def asked(connection: Connection, request: bytes) -> Answer:
    """Send a request, and return the response.

    Raises:
        LostConnectionError: there is no response, or it is a 5xx.
    """
    answer = await connection.ask(request)
    if answer.status >= UNAVAILABLE:
        raise LostConnectionError(f"{answer.status} {answer.body!r}")
    return answer
