"""An append on a service returns the same version, whatever fails at each of its requests."""

from itertools import count

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.streams import WrongVersion
from lazulite_patterns.streams.protocol import StreamProtocol
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from ..faults import FAST, Run, aside, clear, world_of
from .test_model import events, projected, whole

NOTHING = NoFailpoints()


@pytest.mark.parametrize("expected", [1, None])
def test_every_fault_of_an_append(on_service: Run, table_client: TableClient, expected: int | None) -> None:
    stream = StreamProtocol(table_client.table_name, "s", FAST)
    numbers = count()

    def rival() -> None:
        aside(table_client, stream.append(events(f"rival{next(numbers)}"), None, projected(1)))

    def protocol() -> Protocol[int]:
        return stream.append(events("a", "b"), expected, projected(2))

    def attempt(fault: FaultAt) -> None:
        clear(table_client)
        on_service(stream.append(events("first"), 0, projected(1)), NOTHING)
        try:
            version = on_service(protocol(), fault)
        except Crash:
            whole(world_of(table_client))
            version = on_service(protocol(), NOTHING)  # The program is started again.
        except WrongVersion as wrong:
            assert (expected, wrong.version) == (1, 2), "a rival was faster"
            whole(world_of(table_client))
            return
        whole(world_of(table_client))
        assert on_service(stream.find("b"), NOTHING) == version
        assert on_service(protocol(), NOTHING) == version, "it is not appended again"

    assert sum(1 for _ in every_fault(attempt, rival)) >= 2 * 7
