"""Requests are as many as the pages say."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from azure.data.tables import TableClient

from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.shapes import Copies, Fat, Series, Tail, Wide

from .staff import COPIED, Department, Employee
from .support import counting

KEY = EntityKey("p", "r")
NOON = datetime(2014, 7, 31, 12, tzinfo=UTC)


def test_costs_are_those_of_the_pages(table_client: TableClient) -> None:
    count = counting()
    runtime = Runtime(failpoints=count)

    def cost(step: Callable[[], object]) -> int:
        before = count.count
        step()
        return count.count - before

    series = Series(table_client, 3, int, runtime=runtime)
    costs = [cost(lambda: series.add(KEY, 1, 1)), cost(lambda: series.put(KEY, {1: 1})), cost(lambda: series.get(KEY))]
    assert costs == [2, 1, 1]

    tail = Tail(table_client, runtime=runtime)
    costs = [cost(lambda: tail.append("log", {}, NOON)), cost(lambda: tail.latest("log", 5))]
    assert [*costs, cost(lambda: tail.trim("log", datetime.now(UTC)))] == [1, 1, 1 + 1]

    wide = Wide(table_client, runtime=runtime)
    bag = {f"P{number}": 1 for number in range(300)}
    costs = [cost(lambda: wide.insert(KEY, bag)), cost(lambda: wide.get(KEY)), cost(lambda: wide.upsert(KEY, bag))]
    assert [*costs, cost(lambda: wide.update(KEY, lambda each: each)), cost(lambda: wide.delete(KEY))] == [
        1,
        1,
        2,
        2,
        2,
    ]

    fat = Fat(table_client, runtime=runtime)
    small, large = {"Photo": b"x"}, {"Photo": bytes(5_000_000)}  # One row; a head and six rows.
    key = EntityKey("p", "fat")
    costs = [cost(lambda: fat.insert(key, small)), cost(lambda: fat.get(key)), cost(lambda: fat.upsert(key, small))]
    costs += [cost(lambda: fat.upsert(key, large)), cost(lambda: fat.upsert(key, large)), cost(lambda: fat.delete(key))]
    assert costs == [1, 1, 2, 2 + 2, 2 + 2 + 1, 2]

    staff: Copies[Employee | Department] = Copies(table_client, Employee | Department, COPIED, runtime=runtime)
    ann, sales = Employee("Rome", 1, "Ann"), Department("Rome", "Sales", 1, 1)
    costs = [cost(lambda: staff.insert(ann)), cost(lambda: staff.insert(sales))]
    costs += [cost(lambda: staff.update(ann, lambda each: replace(each, age=1)))]
    costs += [
        cost(lambda: staff.update(sales, lambda each: replace(each, deputy=None))),
        cost(lambda: staff.delete(sales)),
    ]
    assert [*costs, cost(lambda: staff.delete(ann))] == [1, 1 + 2, 2 + 2, 2 + 1, 2, 2 + 2]
