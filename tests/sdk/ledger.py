"""A client's knowledge of a store: the effects acknowledged to it, and the operation in flight.

A journal is written before an operation is sent (`intend`) and after its answer has come (`acknowledge` or `reject`).
After a crash, `problems` holds an observed store against it. These must hold:

- what was acknowledged is there, in its content and its very ETag; what was deleted is not;
- what was in flight is wholly there or wholly absent, however many rows it touched;
- the ETags of a partition's writes are strictly increasing, across crashes too.

Keys name tables, `(table,)`, and entities, `(table, partition, row)`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from .etags import instant

Key = tuple[str, ...]
Content = Mapping[str, int | str]


class Stored(NamedTuple):
    """A row or a table as it stands; a table has neither ETag nor content."""

    etag: str
    content: Content


Store = Mapping[Key, Stored]
TABLE = Stored("", {})


class Journal:
    """The knowledge of one client that alone writes the keys for which `owns` is true, one operation at a time.

    Journals that share `newest`, the newest instant known of each partition, also check one another's ETags: a write
    sent after a response to any client must get a newer one.
    """

    def __init__(self, owns: Callable[[Key], bool], newest: dict[Key, str] | None = None) -> None:
        self.owns = owns
        self.acknowledged: dict[Key, Stored] = {}
        self._in_flight: dict[Key, Content | None] | None = None
        self._newest: dict[Key, str] = {} if newest is None else newest
        self._floor: dict[Key, str] = {}

    def intend(self, effects: Mapping[Key, Content | None]) -> None:
        """Note what an operation that is about to be sent would leave under each key it touches; None: nothing."""
        assert self._in_flight is None, "one operation at a time"
        assert all(self.owns(key) for key in effects)
        self._in_flight = dict(effects)
        self._floor = {key[:2]: self._newest[key[:2]] for key in effects if key[:2] in self._newest}

    def acknowledge(self, etags: Mapping[Key, str] | None = None) -> None:
        """Note that the operation succeeded, and the ETags that its answer gave."""
        assert self._in_flight is not None
        given = etags or {}
        for key, content in self._in_flight.items():
            if content is None:
                self.acknowledged.pop(key, None)
            elif len(key) == 1:
                self.acknowledged[key] = TABLE
            else:
                etag = given[key]
                assert self._is_newer(key, etag), f"{key}: {etag} is not newer than {self._floor[key[:2]]}"
                self.acknowledged[key] = Stored(etag, content)
        self._in_flight = None
        self._note_newest((key, stored.etag) for key, stored in self.acknowledged.items() if key in given)

    def reject(self) -> None:
        """Note that the operation was rejected: it must have had no effect."""
        self._in_flight = None

    def problems(self, store: Store) -> list[str]:
        """Return what contradicts this journal, a sentence each; nothing if all is well."""
        in_flight = self._in_flight or {}
        mine = {key for key in store if self.owns(key)} | self.acknowledged.keys()
        found = [
            f"{key}: acknowledged {self.acknowledged.get(key)}, found {store.get(key)}"
            for key in sorted(mine - in_flight.keys())
            if store.get(key) != self.acknowledged.get(key)
        ]
        absent = all(store.get(key) == self.acknowledged.get(key) for key in in_flight)
        present = all(self._is_present(key, content, store.get(key)) for key, content in in_flight.items())
        if not absent and not present:
            found.append(
                "neither wholly there nor wholly absent: "
                + "; ".join(
                    f"{key}: before {self.acknowledged.get(key)}, after {content}, found {store.get(key)}"
                    for key, content in in_flight.items()
                )
            )
        return found

    def took_effect(self, store: Store) -> bool | None:
        """Say whether a store without problems has the operation in flight; None: nothing was, or it is unknown."""
        if not self._in_flight:
            return None
        return any(store.get(key) != self.acknowledged.get(key) for key in self._in_flight)

    def settle(self, store: Store) -> None:
        """Take what a store without problems says about the operation in flight for its outcome."""
        self.acknowledged = {key: stored for key, stored in store.items() if self.owns(key)}
        self._in_flight = None
        self._note_newest((key, stored.etag) for key, stored in store.items() if len(key) > 1)

    def _is_present(self, key: Key, content: Content | None, stored: Stored | None) -> bool:
        if content is None or stored is None:
            return stored is None and content is None
        return stored.content == content and (len(key) == 1 or self._is_newer(key, stored.etag))

    def _is_newer(self, key: Key, etag: str) -> bool:
        return instant(etag) > self._floor.get(key[:2], "")

    def _note_newest(self, etags: Iterable[tuple[Key, str]]) -> None:
        for key, etag in etags:
            self._newest[key[:2]] = max(self._newest.get(key[:2], ""), instant(etag))


def strays(journals: Iterable[Journal], store: Store) -> list[str]:
    """Return a problem for each key in the store that no client can have written."""
    owners = list(journals)
    return [f"{key}: no client wrote it" for key in sorted(store) if not any(journal.owns(key) for journal in owners)]
