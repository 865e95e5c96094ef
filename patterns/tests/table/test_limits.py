"""A table rejects what the service would reject, before it is sent: also with the library's own property."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lazulite_patterns import Column, EntityValueError, Index, column, entity, partition, row
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Write
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.limits import ENTITY_BYTES_MAX, PROPERTIES_MAX, entity_size
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.outcomes.ring import NO_ID, RING, WriteIds
from lazulite_patterns.table.table import Table

from ..declared import indexed

KEYS = {"PartitionKey": "p", "RowKey": "r"}
KEY = EntityKey("p", "r")


@dataclass
class Sent:
    """Failpoints: counts the writes."""

    writes: int = 0

    def before(self, effect: Effect[object]) -> None:
        self.writes += isinstance(effect, Write)

    def after(self, effect: Effect[object]) -> None: ...


@pytest.fixture
def sent() -> Sent:
    return Sent()


def several(count: int) -> Bag:
    """Return a bag of so many properties."""
    return Bag(**KEYS, **{f"P{number}": 1 for number in range(count)})


def large(size: int) -> Bag:
    """Return a bag that has so many bytes."""
    properties = {f"P{number:02d}": bytes(65_000) for number in range(16)}
    rest = size - entity_size({**KEYS, **properties, "Rest": b""})
    return Bag(**KEYS, **properties, Rest=bytes(rest))


def ring_size(writes: int) -> int:
    ring = WriteIds.born(NO_ID)
    for _ in range(writes - 1):
        ring = ring.add(NO_ID, 4)
    return entity_size({**KEYS, RING: ring.text}) - entity_size(KEYS)


@pytest.mark.parametrize("marks", [0, 4])
def test_a_bag_has_252_properties_with_the_library_s(table_client: TableClient, sent: Sent, marks: int) -> None:
    table = Table(table_client, Bag, policy=Policy(marks=marks), runtime=Runtime(failpoints=sent))
    most = PROPERTIES_MAX - bool(marks)
    table.insert(several(most))
    assert len(table_client.get_entity("p", "r")) - 2 == PROPERTIES_MAX
    for write in (table.insert, table.upsert):
        with pytest.raises(EntityValueError, match="253 properties, 252 are allowed"):
            write(several(most + 1))
    with pytest.raises(EntityValueError, match="253 properties, 252 are allowed"):
        table.update(KEY, lambda bag: Bag({**bag, "More": 1}))
    assert sent.writes == 1


def test_a_bag_has_1_mib_with_the_library_s_property(table_client: TableClient, sent: Sent) -> None:
    table = Table(table_client, Bag, runtime=Runtime(failpoints=sent))
    table.insert(large(ENTITY_BYTES_MAX - ring_size(1)))
    room = ENTITY_BYTES_MAX - ring_size(2)
    with pytest.raises(EntityValueError, match="1048577 bytes by the service's formula"):
        table.update(KEY, lambda _: large(room + 1))
    table.update(KEY, lambda _: large(room))
    with pytest.raises(EntityValueError, match="1048577 bytes"):
        table.insert(large(ENTITY_BYTES_MAX - ring_size(1) + 1))
    assert sent.writes == 2


@entity(type="Open")
class Open:
    club: Column[str] = partition()
    id: Column[str] = row()
    name: Column[str] = column(default="ann")
    more: Column[dict[str, object]] = column(form="extra", default_factory=dict)


def more(count: int) -> dict[str, object]:
    return {f"P{number}": 1 for number in range(count)}


def test_properties_of_another_program_count(table_client: TableClient, sent: Sent) -> None:
    """The row has 252 with `_Op`, `_Type`, `name`; a replacement keeps what the class does not know."""
    table = Table(table_client, Open, runtime=Runtime(failpoints=sent))
    table.insert(Open("p", "r", more=more(249)))
    with pytest.raises(EntityValueError, match="253 properties"):
        table.insert(Open("p", "r2", more=more(250)))
    assert sent.writes == 1


def test_an_indexed_merge_counts_what_is_there(table_client: TableClient, sent: Sent) -> None:
    index = Index("name", "name", within_partition=True)
    table = indexed(Open, [index], lambda: Table(table_client, Open, runtime=Runtime(failpoints=sent)))
    table_client.create_entity({**KEYS, "_Type": "Open", "name": "ann", **more(250)})
    with pytest.raises(EntityValueError, match="253 properties"):
        table.merge(KEY, name="bob")
    assert sent.writes == 0


def test_a_transaction_and_a_merge_count(table_client: TableClient) -> None:
    table = Table(table_client, Bag)
    with pytest.raises(EntityValueError, match="253 properties"), table.transaction() as partition:
        partition.insert(several(252))
    with pytest.raises(EntityValueError, match="253 properties"):
        table.merge(KEY, **more(252))


TEXTS = st.text(st.one_of(st.sampled_from("a/\\#?%\t\x7f\x85\x9f\xa0 é\ud800"), st.characters()), max_size=3)


def service_takes(client: TableClient, bag: dict[str, object]) -> bool:
    try:
        client.upsert_entity(bag)
    except (HttpResponseError, UnicodeEncodeError, ValueError):
        return False
    return True


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(partition_key=TEXTS, row_key=TEXTS)
@example("x" * 1024, "y" * 1024)
@example("x" * 1025, "y")
@example("\U0001f600" * 512, "\U0001f600" * 513)
@example("", "")
def test_raw_keys_are_taken_if_the_service_takes_them(
    table_client: TableClient, partition_key: str, row_key: str
) -> None:
    bag = Bag(PartitionKey=partition_key, RowKey=row_key)
    taken = True
    try:
        Table(table_client, Bag).upsert(bag)
    except EntityValueError:
        taken = False
    assert taken is service_takes(table_client, bag)


@pytest.mark.parametrize(
    ("name", "keys"), [("PartitionKey", ("a/b", "r")), ("RowKey", ("p", "a#b")), ("RowKey", ("p", "x" * 1025))]
)
def test_the_key_that_is_wrong_is_named(table_client: TableClient, name: str, keys: tuple[str, str]) -> None:
    table = Table(table_client, Bag)
    calls: list[Callable[[], Any]] = [
        lambda: table.insert(Bag(PartitionKey=keys[0], RowKey=keys[1])),
        lambda: table.merge(EntityKey(*keys), N=1),
    ]
    for call in calls:
        with pytest.raises(EntityValueError, match=rf"\.{name}: "):
            call()
