"""The expected state, in a file: responses to each client and its operation in flight; it outlives the clients.

Each round (from one look at the whole store to the next) has a file of its own that begins with the state at that look;
the files of the last few rounds are kept. A line is written, unbuffered, before an operation is sent and after its
answer has come, so that a file never claims what was not acknowledged, and misses at most the last answer read.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from random import Random

from tests.sdk.ledger import Content, Journal, Key, Stored

ROUNDS_KEPT = 3


def text_of(number: int, length: int) -> str:
    """Return the text of a write: unique, so that no other can be taken for it, and incompressible."""
    return Random(number).randbytes(length // 2 + 1).hex()[:length]


class Log:
    """The file of the round that is going on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._round = 0
        self._file: FileIO | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._path(self._round)

    def begin(self, journals: Iterable["LoggedJournal"]) -> None:
        """Begin a round with what is known."""
        self.close()
        self._round += 1
        self._file = FileIO(self.path, "w")
        for journal in journals:
            known = {_name(key): [stored.etag, _packed(stored.content)] for key, stored in journal.acknowledged.items()}
            self.write(journal.number, "known", known)
        self._path(self._round - ROUNDS_KEPT).unlink(missing_ok=True)

    def write(self, number: int, event: str, facts: Mapping[str, object]) -> None:
        """Note an event of a client."""
        if self._file is not None:
            self._file.write(json.dumps([number, event, facts], separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _path(self, number: int) -> Path:
        return self._directory / f"expected-{number:05}.jsonl"


class LoggedJournal(Journal):
    """A journal that is also in the log; `changes` are those acknowledged since the list was last cleared."""

    def __init__(self, number: int, owns: Callable[[Key], bool], newest: dict[Key, str], log: Log | None) -> None:
        super().__init__(owns, newest)
        self.changes: list[dict[Key, Stored | None]] = []
        self.number = number
        self._log = log

    def intend(self, effects: Mapping[Key, Content | None]) -> None:
        """See `Journal.intend`."""
        self._write("intend", {_name(key): content and _packed(content) for key, content in effects.items()})
        super().intend(effects)

    def acknowledge(self, etags: Mapping[Key, str] | None = None) -> None:
        """See `Journal.acknowledge`."""
        self._write("acknowledge", {_name(key): etag for key, etag in (etags or {}).items()})
        touched = list(self._in_flight or {})
        super().acknowledge(etags)
        self.changes.append({key: self.acknowledged.get(key) for key in touched})

    def reject(self) -> None:
        """See `Journal.reject`."""
        self._write("reject", {})
        super().reject()

    def _write(self, event: str, facts: Mapping[str, object]) -> None:
        if self._log is not None:
            self._log.write(self.number, event, facts)


def replay(path: Path, journals: Sequence[Journal]) -> None:
    """Teach fresh journals, by their numbers, what a file says; of its last line there may be half."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        number, event, facts = json.loads(line)
        journal = journals[number]
        if event == "known":
            known = {_key(name): Stored(etag, _unpacked(content)) for name, (etag, content) in facts.items()}
            journal.settle(known)
        elif event == "intend":
            journal.intend(
                {_key(name): None if content is None else _unpacked(content) for name, content in facts.items()}
            )
        elif event == "acknowledge":
            journal.acknowledge({_key(name): etag for name, etag in facts.items()})
        else:
            journal.reject()


def _name(key: Key) -> str:
    return "/".join(key)


def _key(name: str) -> Key:
    return tuple(name.split("/"))


def _packed(content: Content) -> Content:
    """A text can be derived from its write's number and its length."""
    return {**content, "Text": len(str(content["Text"]))} if "Text" in content else content


def _unpacked(content: Content) -> Content:
    if "Text" not in content:
        return content
    return {**content, "Text": text_of(int(content["N"]), int(content["Text"]))}
