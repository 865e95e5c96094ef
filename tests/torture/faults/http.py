"""HTTP as the clients of the fault campaign speak it: a connection that is made again when it was lost."""

import json
from collections.abc import Mapping
from urllib.parse import quote

from tests.sdk.ledger import Content, Key, Stored
from tests.server_process import Account
from tests.torture.http_client import (
    Answer,
    Connection,
    HangError,
    LostConnectionError,
    Operation,
    raw,
    transaction,
    write,
)
from tests.torture.observation import stored_entity

Effects = Mapping[Key, Content | None]
"""What an operation leaves under each key of one partition; None: nothing."""


class Http:
    """One client's connection."""

    def __init__(self, account: Account) -> None:
        self._host = account.host
        self._connection: Connection | None = None

    async def ask(self, request: bytes) -> Answer:
        """Send a request, and return the answer.

        Raises:
            ConnectionError: there is no connection, or it ended before the answer.
            TimeoutError: it hangs.
        """
        try:
            if self._connection is None:
                self._connection = await Connection.open(self._host)
            answer = await self._connection.ask(request)
        except BaseException as error:
            self.close()
            if isinstance(error, HangError):
                raise TimeoutError from error
            if isinstance(error, LostConnectionError):
                raise ConnectionError(str(error)) from error
            raise
        if "close" in answer.headers.get("connection", "").lower():
            self.close()
        return answer

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.writer.close()
            self._connection = None


async def send(http: Http, effects: Effects) -> Answer:
    """Do a write: upserts and deletions, in an entity group transaction if there are several."""
    operations = [
        Operation("delete", key, {}) if content is None else Operation("insert or replace", key, content)
        for key, content in effects.items()
    ]
    return await http.ask(write(operations[0]) if len(operations) == 1 else transaction(operations))


async def query(http: Http, table: str, filter_text: str) -> tuple[Answer, dict[Key, Stored]]:
    """Return the answer to a query, and the rows if there is one."""
    answer = await http.ask(raw("GET", f"{table}()", query=f"$filter={quote(filter_text)}"))
    found = json.loads(answer.body)["value"] if answer.status == 200 else []
    return answer, dict(stored_entity(table, each) for each in found)
