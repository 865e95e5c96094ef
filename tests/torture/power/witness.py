"""Readers that note what they were shown, and whether that may be forgotten.

A reader is shown states of keys: an ETag, or that there is nothing. Each must be one that was acknowledged to its
writer, or the one that is there after the cut: a state that is neither was shown and then lost. The end of the last
operation is the only one that its writer may not know.
"""

import http.client
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas

from tests.sdk.ledger import Content, Journal, Key, Store
from tests.server_process import Account

from .hindsight import Answered

NOTHING = ""
"""The state of a key that is not there."""

Shown = tuple[Key, str]
_FAR = datetime.now(UTC) + timedelta(days=1)
_LOST = (http.client.HTTPException, OSError)


class Chronicle(Journal):
    """A journal that also keeps every state of its keys, and when its client received it, from one cut to the next.

    A moment is the count of calls to the disk so far.
    """

    def __init__(
        self, owns: Callable[[Key], bool], counts: Counter[str], now: Callable[[], int], newest: Mapping[Key, str]
    ) -> None:
        """`counts` counts each acknowledgement; `now` says which moment it is; `newest` is known already."""
        super().__init__(owns, dict(newest))
        self._now = now
        self._counts = counts
        self._states: dict[Key, set[str]] = {}
        self.answered: list[Answered] = []
        """When each write of this count of moments was about to be sent, and had been acknowledged."""
        self._begin()

    def _begin(self) -> None:
        """Begin the history: with what is known, and no event."""
        self._known, self._newest_known = dict(self.acknowledged), dict(self._newest)
        self._events: list[tuple[int, Callable[[Chronicle], None]]] = []

    def intend(self, effects: Mapping[Key, Content | None]) -> None:
        self._events.append((self._now(), lambda earlier: earlier.intend(effects)))
        super().intend(effects)
        for key in effects:
            self._states.setdefault(key, {self._state(key)})

    def acknowledge(self, etags: Mapping[Key, str] | None = None) -> None:
        moment = self._now()
        self.answered.append((self._events[-1][0], moment))
        self._events.append((moment, lambda earlier: earlier.acknowledge(etags)))
        changed = list(self._in_flight or ())
        super().acknowledge(etags)
        for key in changed:
            self._states[key].add(self._state(key))
        self._counts["acknowledgements"] += 1

    def reject(self) -> None:
        self._events.append((self._now(), Chronicle.reject))
        super().reject()

    def settle(self, store: Store) -> None:
        super().settle(store)
        self._states.clear()
        self.answered.clear()
        self._begin()

    def count_anew(self) -> None:
        """Begin another count of moments: all that has happened so far was before its first."""
        self._events = [(0, event) for _, event in self._events]
        self.answered.clear()

    def as_of(self, moment: int) -> "Chronicle":
        """Return the chronicle that this one was at a moment."""
        earlier = Chronicle(self.owns, Counter(), self._now, self._newest_known)
        earlier.acknowledged = dict(self._known)
        earlier._begin()
        events = [(at, event) for at, event in self._events if at <= moment]
        for _, event in events:
            event(earlier)
        earlier._events, earlier._counts = events, self._counts
        return earlier

    def knows(self, key: Key, state: str) -> bool:
        """Say whether a key was in a state, as far as the writer knows."""
        return state in self._states.get(key, {self._state(key)})

    def _state(self, key: Key) -> str:
        return state_of(self.acknowledged, key)


def state_of(store: Store, key: Key) -> str:
    """The state of a key in a store: its ETag, its name if it is a table, or nothing."""
    stored = store.get(key)
    if stored is None:
        return NOTHING
    return stored.etag or key[0]


def lost(shown: Iterable[Shown], chronicles: Iterable[Chronicle], store: Store) -> list[str]:
    """Return what was shown and is no part of any history, a sentence each."""
    owners = list(chronicles)
    return [
        f"{key}: a reader was shown {state or 'nothing'}, which was lost; found {state_of(store, key) or 'nothing'}"
        for key, state in sorted(shown)
        for owner in owners
        if owner.owns(key) and not owner.knows(key, state) and state_of(store, key) != state
    ]


class Reader:
    """One client that reads rows, one partition or two, and tables, until the server is gone."""

    def __init__(
        self, account: Account, tables: Mapping[str, Iterable[Key]], seed: str, now: Callable[[], int]
    ) -> None:
        """`tables` has all keys that there ever are, by table; `now` says which moment it is, see `Chronicle`."""
        self.shown: dict[Shown, int] = {}
        """What was shown, and when first."""
        self.answers = 0
        self._keys = {table: list(keys) for table, keys in tables.items()}
        self._partitions = {table: sorted({key[1] for key in keys}) for table, keys in self._keys.items()}
        self._divided = [table for table, partitions in self._partitions.items() if len(partitions) > 1]
        self._random = random.Random(seed)
        self._now = now
        self._path = f"/{account.name}"
        self._query = generate_account_sas(
            account.credential, ResourceTypes(object=True), AccountSasPermissions(read=True), _FAR
        )
        self._connection = http.client.HTTPConnection(account.host, timeout=60)

    def run(self) -> None:
        """Read until the connection is lost."""
        try:
            while True:
                self._random.choice((self._get_any, self._scan_one, self._scan_two))()
                self.answers += 1
        except _LOST:
            return
        finally:
            self._connection.close()

    def _get_any(self) -> None:
        self._get(self._random.choice(self._keys[self._random.choice(list(self._keys))]))

    def _scan_one(self) -> None:
        table = self._random.choice(list(self._keys))
        self._scan(table, {self._random.choice(self._partitions[table])})

    def _scan_two(self) -> None:
        table = self._random.choice(self._divided)
        self._scan(table, set(self._random.sample(self._partitions[table], 2)))

    def _ask(self, path: str, **options: str) -> tuple[int, bytes, str]:
        query = urlencode({f"${name}": text for name, text in options.items()}, quote_via=quote)
        headers = {"Accept": "application/json;odata=minimalmetadata", "x-ms-version": "2019-02-02"}
        self._connection.request("GET", f"{self._path}/{path}?{self._query}&{query}", headers=headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("ETag", "")

    def _get(self, key: Key) -> None:
        table, partition, row = key
        status, body, etag = self._ask(f"{table}(PartitionKey='{partition}',RowKey='{row}')")
        if status == http.client.OK:
            self._note((key, etag), ((table,), table))
        else:
            self._missing(status, body, key)

    def _scan(self, table: str, partitions: Iterable[str]) -> None:
        """Look at some partitions, which fit into a page: what is not in it is not there."""
        text = " or ".join(f"PartitionKey eq '{partition}'" for partition in sorted(partitions))
        status, body, _ = self._ask(f"{table}()", filter=text, select="PartitionKey,RowKey")
        if status != http.client.OK:
            self._missing(status, body, (table,))
            return
        found = {(row["PartitionKey"], row["RowKey"]): row["odata.etag"] for row in json.loads(body)["value"]}
        keys = [key for key in self._keys[table] if key[1] in partitions]
        self._note(*((key, found.get((key[1], key[2]), NOTHING)) for key in keys), ((table,), table))

    def _missing(self, status: int, body: bytes, key: Key) -> None:
        assert status == http.client.NOT_FOUND, f"a reader got {status}: {body!r}"
        self._note((key[:1] if b"TableNotFound" in body else key, NOTHING))

    def _note(self, *shown: Shown) -> None:
        moment = self._now()
        for each in shown:
            self.shown.setdefault(each, moment)
