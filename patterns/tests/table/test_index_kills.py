"""Writers that crash at any effect, on the service: the invariant is polled, and repairs leave no finding."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from uuid import uuid4

import pytest
from azure.data.tables import TableClient

from lazulite_patterns import Busy, Column, Index, Listing, NotUnique, column, entity, partition, row
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.indexes import check as kinds
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Policy, Unavailable
from lazulite_patterns.table.table import Table

from ..declared import indexed

WRITERS = 8
ROUNDS = 12
QUICK = Policy(first_wait_seconds=0.001, wait_max_seconds=0.01)


def later() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=700)


@entity
class Person:
    department: Column[str] = partition()
    id: Column[int] = row(width=4)
    mail: Column[str | None] = column(default=None)
    city: Column[str] = column(default="Rome")
    team: Column[str] = column(default="red")
    salary: Column[int] = column(default=0)


DECLARED = [
    Index("city", "city", copy=["salary"]),
    Index("team", "team"),
    Index("pay", "salary", within_partition=True),
    Listing("teams", "team", place="table"),
    Listing("cities", "city"),
]
SUPERFLUOUS = {kinds.NO_FIT, kinds.NO_FIT_LISTED, kinds.OLD_MARK}
"""What may be left behind by a crash: a reader drops it, or reads the entity."""
UNIQUE = Index("mail", "mail", unique=True)


class Kills:
    """Crashes or loses an answer at one of a hundred effects or so."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def before(self, effect: object) -> None:
        if self.random.random() < 0.03:
            raise Crash

    def after(self, effect: object) -> None:
        chance = self.random.random()
        if chance < 0.03:
            raise Crash
        if chance < 0.06:
            raise ResultUnknown


@pytest.fixture
def people(connection_string: str) -> Iterator[TableClient]:
    name = f"T{uuid4().hex}"
    with TableClient.from_connection_string(connection_string, name, connection_timeout=60) as client:
        client.create_table()
        yield client
        client.delete_table()


def test_each_entity_is_found_at_every_instant(people: TableClient) -> None:
    """Eight writers change four entities; polls look each entity up by what a read found, if no write was between."""
    staff = indexed(Person, DECLARED, lambda: Table(people, Person, policy=QUICK))
    everyone = [Person("Sales" if number % 2 else "IT", number) for number in range(4)]
    for each in everyone:
        staff.insert(each)
    ended = threading.Event()
    crashes = 0

    def write(number: int) -> int:
        random = Random(number)
        killed = 0
        writer = indexed(
            Person,
            DECLARED,
            lambda: Table(people, Person, policy=QUICK, runtime=Runtime(failpoints=Kills(number))),
        )
        for _ in range(ROUNDS):
            city, team = random.choice(["Rome", "Oslo"]), random.choice(["red", "blue"])
            change = partial(replace, city=city, team=team, salary=random.randrange(3))
            try:
                with suppress(Conflict, OutcomeUnknown, Unavailable):
                    writer.update(random.choice(everyone), change)
            except Crash:
                killed += 1
        return killed

    def poll() -> int:
        looked = 0
        end = False
        while not end:
            end = ended.is_set()
            assert {each.kind for each in audit(staff)} <= SUPERFLUOUS
            for each in everyone:
                before = staff.get(each)
                assert before is not None
                where = before.department
                found = [
                    list(staff.by(index="city", city=before.city)),
                    list(staff.by(index="team", team=before.team)),
                    list(staff.by(index="pay", salary=before.salary, department=where)),
                    list(staff.by(index="teams", team=before.team)),
                    list(staff.by(index="cities", city=before.city, department=where)),
                ]
                copies = {
                    copied.key.row_key: copied.fields for copied in staff.by(index="city", city=before.city).copies()
                }
                if etag(staff.get(each)) == etag(before):
                    looked += 1
                    assert [before in one for one in found] == [True] * 5
                    assert copies[f"{each.id:04d}"] == {"salary": before.salary}
        return looked

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        polling = pool.submit(poll)
        try:
            crashes = sum(pool.map(write, range(WRITERS)))
        finally:
            ended.set()
        assert polling.result() > 0
    assert crashes > 5
    auditor = indexed(Person, DECLARED, lambda: Table(people, Person, runtime=Runtime(utc_now=later)))
    for _ in range(2):
        list(audit(auditor, repair=True))
    assert list(audit(auditor)) == []


def etag(found: Person | None) -> str:
    stored = getattr(found, "__stored__", None)
    assert stored is not None
    return str(stored.etag)


def test_one_of_32_claimants_wins_and_a_crashed_one_is_freed(people: TableClient) -> None:
    def claim(number: int, runtime: Runtime | None = None) -> bool:
        staff = indexed(Person, [UNIQUE], lambda: Table(people, Person, policy=QUICK, runtime=runtime))
        try:
            staff.insert(Person("Ops", number, "one@contoso.com"))
        except (NotUnique, Busy):
            return False
        return True

    class AfterTheClaim:
        count = 0

        def before(self, effect: object) -> None:
            return

        def after(self, effect: object) -> None:
            self.count += 1
            if self.count == 2:  # A read of the entity, and the claim.
                raise Crash

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(claim, range(32)))
    assert won.count(True) == 1
    indexed(Person, [UNIQUE], lambda: Table(people, Person)).delete(Person("Ops", won.index(True)))
    with pytest.raises(Crash):
        claim(99, Runtime(failpoints=AfterTheClaim()))
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(claim, range(32))), "the crashed claim is young"
    # One after the other: clocks that are ahead would take claims from writers at work.
    assert [claim(number, Runtime(utc_now=later)) for number in range(4)] == [True, False, False, False]
    staff = indexed(Person, [UNIQUE], lambda: Table(people, Person, runtime=Runtime(utc_now=later)))
    assert [each.id for each in staff.by(mail="one@contoso.com")] == [0]
    assert staff.where(scan=True).count() == 1
    assert list(audit(staff)) == []
