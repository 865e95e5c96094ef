"""Steps outside a transaction, each of which is recorded when it is done.

A worker reads the record, does the first step that is not in it, and writes its result to the record If-Match the ETag
that it read. If another worker was faster, it reads again. So a step that is recorded is not done again, but by a
worker that read the record before. A step may be done twice, even at the same time: it must be idempotent.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.transactions.checks import SagaCheck
from lazulite_patterns.transactions.messages import TaskMessage
from lazulite_patterns.transactions.task import Source, Task

RESULTS, STATE = "Results", "State"
RUNNING, DONE = "running", "done"


class SagaProgress(NamedTuple):
    """What a step gets.

    Attributes:
        id: of this step of this saga, the same each time: a key by which others know duplicates.
        argument: what the saga was started with.
        results: of the steps before, by their names.
    """

    id: str
    argument: Any
    results: dict[str, Any]


class Step(NamedTuple):
    """A step: its name in the record, and the function that does it. Its result is what JSON has."""

    name: str
    function: Callable[[SagaProgress], object]


class Saga(Task[Any]):
    """Does steps one after the other, each once or more. `Tasks` starts sagas, and its workers run them."""

    def __init__(self, name: str, *, records: Source[Bag], steps: Sequence[Step]) -> None:
        """Take the steps.

        Args:
            name: of the task, in messages, and the RowKey of its records. The PartitionKey is the saga's id.
            records: a table of property bags.
            steps: in their order.

        Raises:
            ValueError: two steps have the same name, or there is none; or no RowKey can be the name.
        """
        super().__init__(name, records)
        limits.check_key(f"saga {name}", EntityKey("", name))
        self._records = records.session
        self._steps = tuple(steps)
        if not steps or len({each.name for each in steps}) < len(steps):
            raise ValueError(f"saga {name}: its steps have names that differ, and there is one at least")

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: records that are not done."""
        return [SagaCheck(self._records.name, self.name)]

    def begin(self, argument: Any) -> Protocol[TaskMessage]:
        """Return a message with the argument: what JSON has."""
        return TaskMessage(self.name, (yield from perform(NewId())), argument)

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Do the steps that are not recorded.

        Raises:
            Exception: what a step raises. The saga goes on with this step at the next delivery.
        """
        key = EntityKey(message.id, self.name)
        while True:
            found = yield from self._records.stored(key)
            results = {} if found is None else json.loads(str(found.properties[RESULTS]))
            step = next((each for each in self._steps if each.name not in results), None)
            if step is None:
                return
            result = yield from self._done(step, SagaProgress(f"{message.id}-{step.name}", message.body, dict(results)))
            yield from self._recorded(key, found, {**results, step.name: result})

    def _done(self, step: Step, progress: SagaProgress) -> Protocol[object]:
        return (yield from perform(Call(step.function, (progress,))))

    def _recorded(self, key: EntityKey, found: Stored | None, results: dict[str, object]) -> Protocol[None]:
        """Write the results, unless another worker was faster: then the next read shows what is left to do."""
        state = DONE if all(each.name in results for each in self._steps) else RUNNING
        properties = {STATE: state, RESULTS: json.dumps(results)}
        keys = {"PartitionKey": key.partition_key, "RowKey": key.row_key}
        limits.check(f"saga {self.name}", {**properties, **keys})
        kind, etag = (Kind.INSERT, None) if found is None else (Kind.REPLACE, found.etag)
        base = WriteIds() if found is None else WriteIds.of(found.properties)
        try:
            yield from self._records.write([Planned(Operation(kind, key, properties, etag), base)])
        except Conflict:
            return
