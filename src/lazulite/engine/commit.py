"""A commit as a value: the rows to read, what is expected of them, what to decide, and how it travels.

Each engine picks its cheapest way from the value:

    RocksDB      reads the rows and decides in the step in which the commit joins its group; it needs nothing else
    PostgreSQL   decides on examples, if all rows have preconditions, and sends the preconditions along; otherwise it
                 reads the rows, and writes if they are unchanged (see `postgres.engine`)
    remote       sends the process that has the store conditional writes, if the commit comes to these; or asks it to
                 run the commit, if the commit has a procedure; otherwise it reads the rows, decides, and sends a
                 compare-and-swap of all of them

So a service states a commit once, and knows of no engine.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

Plain: TypeAlias = Any
"""A value that another process of this program can be sent: see `remote.channel`."""

Values: TypeAlias = Sequence[bytes | None]
"""The values of rows, in the order of their commit; None: absent."""
Changes: TypeAlias = Mapping[str, bytes | None]
"""Rows to write, with their new values; None deletes the row. Rows left out stay as they are."""


Before: TypeAlias = bytes | Literal[True] | None
"""What a row was before a write. None: absent; True: unknown."""


class CompanionWrite(NamedTuple):
    """A write to a row of another space, whatever that row is now, such as the entry of an index."""

    space: int
    key: tuple[str, str]
    """(partition, row)."""
    value: bytes | None
    """None deletes the row."""
    before: Before = True
    """What the row was, if that follows from the rows that were read: an engine need not read it. It is what readers
    see, and what is put back, if the commit is undone."""


class Decision(NamedTuple, Generic[T]):
    """What a commit writes, and its result."""

    changes: Changes
    """A row that the commit did not name costs another try, with this row named behind the others. So a decision must
    name the same rows whenever it is shown the same values."""
    result: T
    companions: Sequence[CompanionWrite] = ()
    """Writes that are atomic with the changes. Those to a dropped space are left out. On Citus they must be in the
    commit's partition, of any space. No commit reads such rows, and each is written by commits of one partition."""


class Needs(Generic[T]):
    """What a commit needs before it can decide. Nothing is written before.

    Attributes:
        steps: work on the values that it was shown, a short step of the event loop at a time. Then the commit is tried
            again. It keeps the outcome of the work, and uses it only if the values are still the same.
        instead: the commit to try in its place, which names more rows.
    """

    __slots__ = ("__weakref__", "instead", "steps")

    def __init__(self, steps: Generator[None, None, None] | None = None, instead: "Commit[T] | None" = None) -> None:
        self.steps = steps
        self.instead = instead


class Expect(Enum):
    """Whether a row must exist."""

    ABSENT = auto()
    PRESENT = auto()
    ANYTHING = auto()


class Precondition(NamedTuple):
    """A state of a row. A commit that states it decides alike on each value of the row that meets it."""

    expects: Expect
    timestamp: int | None = None
    """The commit timestamp of the row's last write, in ticks; None accepts every one."""
    prefix: bytes = b""
    """The prefix of the value of a present row."""
    example: bytes | None = None
    """A value that meets the precondition, on which an engine may let the commit decide without reading the row."""
    deletes: bool = False
    """Whether the commit deletes the row."""


ANYTHING = Precondition(Expect.ANYTHING)
ABSENT = Precondition(Expect.ABSENT)

Decide: TypeAlias = Callable[[Values, int], Decision[T] | Needs[T]]
"""Decides a commit, given the values of its rows and the commit timestamp in ticks. Pure and quick; an engine may call
it more than once. An exception rejects the commit and is raised to the caller as it is.

A commit that travels as a compare-and-swap is decided on the time of its own process instead of a timestamp."""

Preconditions: TypeAlias = Callable[[Values | None], Sequence[Precondition | None]]
"""Returns the precondition of each row; None for a row on whose value the decision depends. Given the rows' values
(None: they were not read), it may state that the rows are still those."""


Expected: TypeAlias = bytes | Literal[True] | None
"""What a conditional write expects of its row. None: it is absent; bytes: its value begins with these; True: nothing.
"""


class ConditionalWrite(NamedTuple):
    """The write of one row, decided but for the timestamp, on the condition that the row is as it was expected."""

    expected: Expected
    parts: Sequence[bytes] | None
    """What `CommitProcedure.complete` takes; None deletes the row."""


class CommitProcedure(NamedTuple, Generic[T]):
    """How the commits of one kind travel to the process that has the store, which makes and runs them."""

    name: str
    encode: Callable[[Any], Plain]
    """Takes the `argument` of a commit to plain values."""
    make: Callable[[Plain], "Commit[T]"]
    """Takes what `encode` returned to the same commit."""
    encode_result: Callable[[T], Plain] = lambda result: result
    decode_result: Callable[[Plain], T] = lambda result: result
    conditional: Callable[[Any, Values | None], Sequence[ConditionalWrite] | None] | None = None
    """Takes the `argument` of a commit, and the values of its rows (None: they were not read), to the writes that the
    commit comes to, one for each row. Returns None if that depends on the values, or takes more than a short step. The
    result of such a commit is the timestamp."""
    complete: Callable[[int, Sequence[bytes]], bytes] = lambda _, parts: b"".join(parts)
    """Returns the value of a row, given the commit timestamp in ticks and the parts of a `ConditionalWrite`."""


@dataclass(slots=True, eq=False)
class Commit(Generic[T]):
    """A change of rows of one partition, made as a whole or not at all."""

    rows: Sequence[str]
    """The rows to read."""
    decide: Decide[T]
    preconditions: Preconditions | None = None
    """None: the decision depends on the values of all rows."""
    kept: str | None = None
    """The row that most commits of the partition name. An engine may keep its value from one commit to the next."""
    procedure: CommitProcedure[T] | None = None
    argument: object = None
    """What `procedure` sends."""
    fence: int = 0
    """The version of what its process knows of the space: see `RocksEngine.fence`."""

    def naming(self, changes: Changes) -> Needs[T]:
        """Return what is needed to write rows that the commit does not name."""
        return Needs(instead=replace(self, rows=list(dict.fromkeys([*self.rows, *changes]))))


Change: TypeAlias = Callable[[Values, int], Changes]
"""Returns the changes of rows, given their values and the commit timestamp."""


def changing(rows: Sequence[str], change: Change) -> Commit[int]:
    """Return a commit of the changes that a function returns. Its result is the timestamp."""
    return Commit(rows, lambda values, timestamp: Decision(change(values, timestamp), timestamp))


def change_row(row: str, change: Callable[[bytes | None], Decision[T]]) -> Commit[T]:
    """Return a commit whose decision depends on the value of one row."""
    return Commit([row], lambda values, _: change(values[0]))


def put_rows(changes: Changes) -> Commit[int]:
    """Return a commit that writes rows, whatever they are. Its result is the timestamp."""
    return Commit(
        list(changes),
        lambda _, timestamp: Decision(changes, timestamp),
        lambda _: [Precondition(Expect.ANYTHING, deletes=value is None) for value in changes.values()],
        procedure=PUT,
        argument=changes,
    )


def compare_and_swap(expected: Changes, changes: Changes, companions: Sequence[CompanionWrite] = ()) -> Commit[bool]:
    """Return a commit that writes rows if others have the expected values. Its result is whether they have."""
    rows = list(dict.fromkeys([*expected, *changes]))
    before = list(expected.values())

    def decide(values: Values, _: int) -> Decision[bool]:
        same = list(values[: len(before)]) == before
        return Decision(changes, True, companions) if same else Decision({}, False)

    return Commit(rows, decide, procedure=SWAP, argument=(expected, changes, companions))


PUT = CommitProcedure("put", dict, put_rows)
SWAP = CommitProcedure(
    "swap",
    lambda argument: (dict(argument[0]), dict(argument[1]), list(map(tuple, argument[2]))),
    lambda sent: compare_and_swap(sent[0], sent[1], tuple([CompanionWrite(*each) for each in sent[2]])),
)
COMMIT_PROCEDURES: tuple[CommitProcedure[Any], ...] = (PUT, SWAP)
"""Those that are no service's."""
