"""Is a store what this version of Lazulite writes? Every row of it, read once, in the order of keys.

The checks, beside those of each space:

- keys decode, and are encoded in the one way that `engine.key_encoding` has;
- every space below `FIRST_FREE_SPACE` is in the registry;
- each row of a catalog names a space of its own that was given out, or marks a space whose drop is unfinished;
- every other row is in a space that a catalog names, or in a dropped one (such rows are gone already);
- each content to which a row refers is there, and whole. Contents to which no row refers do no harm.

The *checksum* is a SHA-256 of the rows that are content: equal for equal contents, whatever files they are in. Accounts
are not in it, as those of a location are in a file beside.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lazulite.engine.content.contract import Claim, ContentId
from lazulite.engine.content.inspection import ContentSet
from lazulite.engine.contract import LISTED, EngineError, Key
from lazulite.engine.key_encoding import decode_key, encode_key
from lazulite.records.catalog import is_marker, marked_space
from lazulite.records.spaces import COUNTERS, FIRST_FREE_SPACE, CatalogFormat, IndexFormat, Spaces, next_free

PROBLEMS_MAX = 20
"""So many problems are described; the others are counted."""

_MALFORMED = (ValueError, LookupError, TypeError, AssertionError, AttributeError)
"""The exceptions of reading bytes that no version of Lazulite wrote."""


@dataclass(slots=True)
class VerificationReport:
    """What a store holds, and what is wrong with it."""

    counts: dict[str, int] = field(default_factory=dict)
    """By noun: how many tables, how many entities."""
    rows: int = 0
    """Read so far, of all kinds."""
    contents: int = 0
    """To which rows refer."""
    size_bytes: int = 0
    """The size of the keys and values that count for the checksum."""
    content_bytes: int = 0
    checksum: str = ""
    """Hexadecimal; known at the end."""
    unfinished: str = ""
    """What the store still is, see `Space.unfinished_state`; "" if it is a whole store."""
    unreachable: list[str] = field(default_factory=list)
    """The first names that no request reaches."""
    unreachable_count: int = 0
    problems: list[str] = field(default_factory=list)
    """The first of them, a line each."""
    problem_count: int = 0

    def note(self, problem: str) -> None:
        """Take note of a problem."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)

    def note_unreachable(self, name: str) -> None:
        """Take note of a name that no request reaches, which is no problem."""
        self.unreachable_count += 1
        if len(self.unreachable) < PROBLEMS_MAX:
            self.unreachable.append(name)


class Reference(NamedTuple):
    """The first row that was found to refer to a content."""

    content: ContentId
    space: int
    key: Key
    place: str
    """The row in messages."""
    claim: Claim

    def problem(self, error: Exception) -> str:
        """Say that the content cannot be read."""
        return f"{self.place}: content {self.content.number} of space {self.content.space}: {error}"


def verify(
    rows: Iterable[tuple[bytes, bytes]],
    timestamp_max: int,
    spaces: Spaces,
    read_content: Callable[[ContentId, Claim], int],
) -> Iterator[VerificationReport]:
    """Yield the findings after every row, always the same object, and once more when all rows have been seen.

    Args:
        rows: keys and values of a whole store, in order.
        timestamp_max: the greatest timestamp that the store ever gave, in ticks.
        spaces: the registry of all services.
        read_content: reads a whole content and returns its bytes, once for each; raises `EngineError` or `OSError`.
    """
    verification = Verification(timestamp_max, spaces)
    findings = verification.findings
    for raw, value in rows:
        for reference in verification.verify_row(raw, value):
            try:
                findings.content_bytes += read_content(reference.content, reference.claim)
            except (EngineError, OSError) as error:
                findings.note(reference.problem(error))
        yield findings
    verification.finish()
    yield findings


class _Owned(NamedTuple):
    """A space that a catalog names."""

    name: str
    catalog: CatalogFormat
    indexes: Sequence[IndexFormat] = ()


@dataclass(slots=True)
class _KeySet:
    """A set of keys that can be compared with another one, in little memory."""

    count: int = 0
    digest: int = 0

    def add(self, key: Key) -> None:
        """Add a key."""
        self.count += 1
        self.digest ^= int.from_bytes(hashlib.sha256(encode_key(0, *key)).digest(), "big")


class _OwnedIndex(NamedTuple):
    """An index of a space that a catalog names."""

    name: str
    format: IndexFormat
    expected: _KeySet
    found: _KeySet


class Verification:
    """Verify one row after the other: those of the services' own spaces, then those of the spaces that these name.

    Args:
        timestamp_max: the greatest timestamp that the store ever gave, in ticks.
        spaces: the registry of all services.
    """

    def __init__(self, timestamp_max: int, spaces: Spaces) -> None:
        self.findings = VerificationReport({noun: 0 for nouns in spaces.nouns for noun in (nouns.spaces, nouns.rows)})
        self._timestamp_max = timestamp_max
        self._spaces = spaces
        self._seen = ContentSet()
        self._digest = hashlib.sha256()
        self._owned: dict[int, _Owned] = {}
        self._indexes: dict[int, _OwnedIndex] = {}
        self._unreachable = ""
        """The last one that was found."""
        self._dropped: set[int] = set()
        self._next_space = FIRST_FREE_SPACE

    @property
    def owned(self) -> list[int]:
        """The spaces that the catalogs name, in order."""
        return sorted(self._owned)

    def verify_row(self, raw: bytes, value: bytes) -> Sequence[Reference]:
        """Verify the next row; return the contents that no row before it refers to."""
        self.findings.rows += 1
        try:
            return self._verify_row(raw, value)
        except _MALFORMED as error:
            self.findings.note(f"row {raw.hex()}: {type(error).__name__}: {error}")
            return ()

    def finish(self, *, is_still: bool = True) -> None:
        """Note what only all rows show; `is_still` tells whether they were of one moment."""
        self.findings.checksum = self._digest.hexdigest()
        for index in self._indexes.values():
            if is_still and index.format.is_whole and index.expected != index.found:
                self.findings.note(
                    f"index {index.name} has {index.found.count:,} entries, not the {index.expected.count:,} of its "
                    "rows; build it again: lazulite index rebuild"
                )
        for number, owned in self._owned.items():
            if number & ~LISTED >= self._next_space:
                self.findings.note(f"{owned.catalog.nouns.space} {owned.name} has space {number}, which is not its own")

    def _verify_row(self, raw: bytes, value: bytes) -> Sequence[Reference]:
        space = int.from_bytes(raw[:8], "big")
        key = decode_key(raw)
        if encode_key(space, *key) != raw:
            raise ValueError("the key is encoded in no way that Lazulite has")
        if space >= FIRST_FREE_SPACE:
            return self._owned_row(space, key, raw, value)
        if self._own_row(space, key, value):
            self._digest_row(raw, value)
        return ()

    def _digest_row(self, raw: bytes, value: bytes) -> None:
        self.findings.size_bytes += len(raw) + len(value)
        for part in (raw, value):
            self._digest.update(len(part).to_bytes(4, "big"))
            self._digest.update(part)

    def _owned_row(self, number: int, key: Key, raw: bytes, value: bytes) -> Sequence[Reference]:
        """Verify a row of a space that a catalog names."""
        if number in self._dropped:
            return ()
        index = self._indexes.get(number)
        if index is not None:
            index.format.verify(key, value)
            index.found.add(key)
            self._digest_row(raw, value)
            return ()
        owned = self._owned.get(number)
        if owned is None:
            raise ValueError(f"no catalog names space {number}")
        nouns = owned.catalog.nouns
        try:
            owned.catalog.verify(key, value, self._timestamp_max)
        except ValueError as error:
            raise ValueError(f"{nouns.space} {owned.name}, {key}: {error}") from None
        for each in owned.indexes:
            entry = each.entry(key, value)
            if entry is not None:
                self._indexes[each.space].expected.add(entry)
        self.findings.counts[nouns.rows] += owned.catalog.counted(key)
        unreachable = owned.catalog.unreachable(owned.name, key)
        if unreachable and unreachable != self._unreachable:
            self._unreachable = unreachable
            self.findings.note_unreachable(f"{nouns.space} {owned.name}: {unreachable!r}")
        self._digest_row(raw, value)
        contents_of = owned.catalog.contents
        if contents_of is None:
            return ()
        new = [found for found in contents_of(number, key, value).items() if self._seen.add(found[0])]
        self.findings.contents += len(new)
        place = f"{nouns.space} {owned.name}, {key}"
        return [Reference(content, number, key, place, Claim(key[0], length)) for content, length in new]

    def refers(self, reference: Reference, value: bytes) -> bool:
        """Tell whether a row, of which this is the value now, still refers to a content."""
        owned = self._owned[reference.space]
        assert owned.catalog.contents is not None
        return reference.content in owned.catalog.contents(reference.space, reference.key, value)

    def _own_row(self, number: int, key: Key, value: bytes) -> bool:
        """Verify a row of the services' own spaces; tell whether it is content."""
        space = self._spaces.get(number)
        if space is None:
            raise ValueError(f"space {number} has an unknown row under {key}")
        self.findings.unfinished = self.findings.unfinished or space.unfinished_state
        if space.verify is not None:
            space.verify(key, value)
        if number == COUNTERS:
            self._next_space = next_free(value)
        if space.catalog is not None:
            if is_marker(key[1]):
                self._dropped.add(marked_space(key[1]))
                return False
            self._name(space.catalog, key, value)
        return space.in_checksum

    def _name(self, catalog: CatalogFormat, key: Key, value: bytes) -> None:
        number, name = catalog.read(key[1], value)
        indexes = catalog.indexes(value)
        numbers = [number, *(index.space for index in indexes)]
        for at, each in enumerate(numbers):
            if each < FIRST_FREE_SPACE or each in self._owned or each in self._indexes or each in numbers[:at]:
                raise ValueError(f"{catalog.nouns.space} {name} has space {each}, which is not its own")
        self._owned[number] = _Owned(name, catalog, indexes)
        for index in indexes:
            self._indexes[index.space] = _OwnedIndex(f"{index.name} of {name}", index, _KeySet(), _KeySet())
        self.findings.counts[catalog.nouns.spaces] += 1
