"""How the decisions of this service, and their refusals, are told to another process: see `Wording`.

There are three decisions: one entity's write, several of them, and the swap of a row that changes seldom. Whatever a
commit of this service decides is one of them.
"""

from typing import cast

from lazulite.engine.compare_and_swap import RowChangedError, Swap
from lazulite.engine.contract import Decide
from lazulite.engine.remote.channel import Plain
from lazulite.protocol.errors import ServiceError
from lazulite.table.model.edm import TYPES
from lazulite.table.model.row import Property
from lazulite.table.operations.write_decisions import WRITES, ApplyAll, ApplyOne, EntityWrite, WriteRefusedError

_ONE, _ALL, _SWAP = range(3)
_NUMBERS = {kind: number for number, kind in enumerate(WRITES)}


class TableWording:
    """See above."""

    def tell_decision(self, decide: Decide) -> Plain:
        """See `Wording`."""
        if isinstance(decide, ApplyOne):
            return _ONE, _tell_write(decide.write)
        if isinstance(decide, ApplyAll):
            return _ALL, [_tell_write(write) for write in decide.writes]
        swap = cast("Swap", decide)
        return _SWAP, swap.expected, dict(swap.changes)

    def decision(self, told: Plain) -> Decide:
        """See `Wording`."""
        kind = told[0]
        if kind == _ONE:
            return ApplyOne(_write(told[1]))
        if kind == _ALL:
            return ApplyAll([_write(each) for each in told[1]])
        return Swap(told[1], told[2])

    def tell_refusal(self, refusal: Exception) -> Plain:
        """See `Wording`."""
        if isinstance(refusal, ServiceError):
            return _ONE, refusal.code, refusal.message, refusal.status
        if isinstance(refusal, WriteRefusedError):
            return _ALL, refusal.index, *self.tell_refusal(refusal.error)
        if isinstance(refusal, RowChangedError):
            return (_SWAP,)
        raise refusal

    def refusal(self, told: Plain) -> Exception:
        """See `Wording`."""
        if told[0] == _ONE:
            return _service_error(told)
        return WriteRefusedError(told[1], _service_error(told[2:])) if told[0] == _ALL else RowChangedError()


def _tell_write(write: EntityWrite) -> Plain:
    properties = [(name, edm.name, literal) for name, (edm, literal) in write.properties.items()]
    return (
        _NUMBERS[write.kind],
        write.partition_key,
        write.row_key,
        write.condition,
        properties,
        write.keys,
        write.encoded,
    )


def _write(told: Plain) -> EntityWrite:
    number, partition_key, row_key, condition, told_properties, keys, encoded = told
    properties = {name: Property(TYPES[edm], literal) for name, edm, literal in told_properties}
    return EntityWrite(WRITES[number], partition_key, row_key, condition, properties, keys, encoded)


def _service_error(told: Plain) -> ServiceError:
    _, code, message, status = told
    return ServiceError(code, message, status=status)
