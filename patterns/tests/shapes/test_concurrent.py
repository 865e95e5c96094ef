"""Writers and readers at the same time, on the service: each read is what one write wrote, and no add is lost."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.shapes.protocols.chunks import Sizes as FatSizes
from lazulite_patterns.shapes.protocols.fat import FatProtocol
from lazulite_patterns.shapes.protocols.wide import Sizes as WideSizes
from lazulite_patterns.shapes.protocols.wide import WideProtocol

from .support import rows

KEY = EntityKey("p", "e")
PATIENT = Policy(marks=16)


def protocols(name: str) -> dict[str, WideProtocol | FatProtocol]:
    return {
        "wide": WideProtocol(name, PATIENT, WideSizes(properties=6, page_rows=1)),
        "fat": FatProtocol(name, PATIENT, sizes=FatSizes(100, 100, 0, 0, 1)),
        "fat in one transaction": FatProtocol(name, PATIENT, sizes=FatSizes(100, 100, 0, 100_000, 1)),
    }


def properties(count: int) -> dict[str, object]:
    return {"Count": count, **{f"P{number:02d}": f"{count:x}" * 60 for number in range(4 + count % 7)}}


@pytest.mark.parametrize("kind", ["wide", "fat", "fat in one transaction"])
def test_no_read_is_torn_and_no_update_is_lost(table_client: TableClient, kind: str) -> None:
    protocol = protocols(table_client.table_name)[kind]
    driver = Driver({table_client.table_name: table_client})
    driver.run(protocol.upsert(KEY, properties(0)))
    done = Event()

    def write(_: int) -> None:
        for _ in range(6):
            driver.run(protocol.update(KEY, lambda each: Bag(properties(int(str(each["Count"])) + 1)), 1000))

    def read() -> int:
        count = 0
        while not done.is_set():
            found = driver.run(protocol.get(KEY))
            assert found is not None
            expected = properties(int(str(found["Count"])))
            assert {name: each for name, each in found.items() if not name.endswith("Key")} == expected
            count += 1
        return count

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            list(pool.map(write, range(4)))
        finally:
            done.set()
        assert all(each.result() for each in readers)
    assert driver.run(protocol.get(KEY)) == {"PartitionKey": "p", "RowKey": "e", **properties(24)}
    assert driver.run(protocol.delete(KEY))
    assert rows(table_client) == [], "nothing is left"
