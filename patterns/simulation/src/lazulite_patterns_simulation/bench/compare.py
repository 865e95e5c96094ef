"""The library against the plain SDK: points, bulk loads, indexed inserts."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

from azure.data.tables import TableClient

from lazulite_patterns import Column, Index, column, entity, partition, row
from lazulite_patterns.bulk import load
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation.bench.turns import Turns, by_turns

_BATCH = 100
_SHORT = 10
"""Rounds of short turns for each round of long ones."""


@entity(type="BenchPerson")
class Person:
    """What is read and written."""

    team: Column[str] = partition()
    id: Column[int] = row(width=6)
    name: Column[str]
    email: Column[str]
    age: Column[int] = column(form="int32")


class Line(NamedTuple):
    """A line of the result: what, what it takes by the plain SDK and by the library, and what is promised."""

    what: str
    other: Turns
    library: Turns
    promise: str


@contextmanager
def table(connection_string: str) -> Iterator[TableClient]:
    """Yield a client of a new table, which is deleted afterwards."""
    with TableClient.from_connection_string(connection_string, f"Bench{uuid4().hex}") as client:
        client.create_table()
        try:
            yield client
        finally:
            client.delete_table()


@entity(type="BenchPerson", indexes=[Index("name", "name", within_partition=True)])
class Named(Person):
    """Has an index within the partition."""


@entity(type="BenchPerson", indexes=[Index("email", "email")])
class IndexedByEmail(Person):
    """Has an index across partitions."""


@entity(type="BenchPerson", indexes=[Index("age", "age")])
class IndexedByAge(IndexedByEmail):
    """Has two indexes across partitions."""


def person(team: str, number: int, kind: type[Person] = Person) -> Person:
    """Return one of them."""
    return kind(team, number, "Ann Jones", f"ann.jones.{number}@contoso.com", number % 90)


def bag(team: str, number: int) -> dict[str, object]:
    """Return the same as the SDK takes it."""
    return {
        "PartitionKey": team,
        "RowKey": f"{number:06}",
        "Name": "Ann Jones",
        "Email": f"ann.jones.{number}@contoso.com",
        "Age": number % 90,
    }


def points(connection_string: str, rounds: int, count: int = 10) -> list[Line]:
    """Return the lines of point reads and inserts. Turns are short, and there are many of them."""
    with table(connection_string) as client:
        people = Table(client, Person)
        load(people, [person("read", number) for number in range(count)])

        def insert(turn: int) -> None:
            for number in range(count):
                people.insert(person(f"own{turn}", number))

        keys = [EntityKey("read", f"{number:06}") for number in range(count)]
        taken = by_turns(
            {
                "sdk read": lambda _: [client.get_entity(*key) for key in keys],
                "read": lambda _: [people.get(key) for key in keys],
                "sdk insert": lambda each: [client.create_entity(bag(f"sdk{each}", number)) for number in range(count)],
                "insert": insert,
            },
            rounds * _SHORT,
        )
    each = {name: turn.for_each(count) for name, turn in taken.items()}
    return [
        Line("point read", each["sdk read"], each["read"], "at most 1.15"),
        Line("insert", each["sdk insert"], each["insert"], "at most 1.15"),
    ]


def loads(connection_string: str, rounds: int, count: int = 2000) -> list[Line]:
    """Return the lines of bulk loads, for each row. Rows come partition by partition."""
    with table(connection_string) as client:
        people = Table(client, Person)

        def loop(turn: int) -> None:
            for number in range(count // 10):
                client.create_entity(bag(f"loop{turn}", number))

        def naive(turn: int) -> None:
            for start in range(0, count, _BATCH):
                rows = (bag(f"naive{turn}!{start}", number) for number in range(_BATCH))
                client.submit_transaction([("upsert", each) for each in rows])

        def own(turn: int) -> None:
            starts = range(0, count, _BATCH)
            load(people, (person(f"own{turn}!{start}", number) for start in starts for number in range(_BATCH)))

        taken = by_turns({"loop": loop, "naive": naive, "load": own}, rounds)
    library = taken["load"].for_each(count)
    return [
        Line("load: a loop", taken["loop"].for_each(count // 10), library, "at most 0.20"),
        Line("load: plain batches", taken["naive"].for_each(count), library, "at most 0.67"),
    ]


class _Counting:
    """Failpoints: counts requests."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()

    def before(self, effect: Effect[object]) -> None:
        self.requests[type(effect).__name__] += 1

    def after(self, effect: Effect[object]) -> None: ...


def indexed(connection_string: str, rounds: int, count: int = 4) -> list[Line]:
    """Return the lines of inserts with indexes, against as many plain requests as they take, of as many rows."""
    lines = []
    kinds: dict[str, type[Person]] = {
        "one within the partition": Named,
        "one across partitions": IndexedByEmail,
        "two across partitions": IndexedByAge,
    }
    for what, kind in kinds.items():
        with table(connection_string) as client:
            counting = _Counting()
            people = Table(client, kind, runtime=Runtime(failpoints=counting))
            people.insert(person("count", 0, kind))
            requests, batches = counting.requests.total(), counting.requests["Batch"]

            def plain(
                turn: int, client: TableClient = client, singles: int = requests - batches, batches: int = batches
            ) -> None:
                for number in range(count):
                    for trip in range(singles):
                        client.upsert_entity(bag(f"plain{turn}!{trip}", number))
                    for trip in range(batches):  # An entity and its entry.
                        rows = [bag(f"batch{turn}!{trip}", each) for each in (number, count + number)]
                        client.submit_transaction([("create", each) for each in rows])

            def own(turn: int, people: Table[Person] = people, kind: type[Person] = kind) -> None:
                for number in range(count):
                    people.insert(person(f"own{turn}", 1 + turn * count + number, kind))

            taken = by_turns({"plain": plain, "own": own}, rounds * _SHORT)
        each = {name: turn.for_each(count) for name, turn in taken.items()}
        lines.append(Line(f"insert, {what}: {requests} requests", each["plain"], each["own"], "at most 1.15"))
    return lines
