"""What a store has of the names of clients: lists, and reads of all that is listed."""

import re
from collections.abc import Sequence

from tests.torture.http_client import Connection, LostConnectionError

from .expected import Account
from .wire import CONTAINER, Wire

UNAVAILABLE = 500
_ENTRY = re.compile(rb"<Blob><Name>([^<]*)</Name>(?:<Snapshot>([^<]*)</Snapshot>)?")


async def listed(connection: Connection, wire: Wire, prefix: str = "") -> dict[str, list[str]]:
    """Return the times of snapshots by name, "" for the blob itself.

    Raises:
        LostConnectionError: there is no response, or it is not a success.
    """
    query = f"restype=container&comp=list&include=snapshots&prefix={prefix}"
    answer = await connection.ask(wire.request("GET", CONTAINER, {}, query))
    if answer.status != 200:
        raise LostConnectionError(str(answer.status))
    found: dict[str, list[str]] = {}
    for name, time in _ENTRY.findall(answer.body):
        found.setdefault(name.decode(), []).append(time.decode())
    return found


async def judged(connection: Connection, wire: Wire, account: Account, times: Sequence[str]) -> str:
    """Read a blob and its snapshots; return what is wrong with them.

    Raises:
        LostConnectionError: there is no response, or it is a 5xx.
    """
    found: dict[str, bytes] = {}
    for time in times:
        query = f"snapshot={time}" if time else ""
        answer = await connection.ask(wire.request("GET", f"{CONTAINER}/{account.name}", {}, query))
        if answer.status >= UNAVAILABLE:
            raise LostConnectionError(f"{answer.status} {answer.body!r}")
        if answer.status != 200:
            return f"{account.name} of {time or 'now'} was listed, and a read gets {answer.status}"
        found[time] = answer.body
    return account.judge(found.pop("", None), found)
