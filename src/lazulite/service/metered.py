"""Operations of queues and blobs whose requests the meter counts, by the partition that the gate charges.

Entities of tables are counted by their operations, as a body tells their partition, and a page its rows. A page of
blobs is counted for the range of names that it may have read.
"""

from collections.abc import Coroutine, Sequence
from typing import Final

from lazulite.partitions.live import Charge
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.protocol.query_string import percent_decode
from lazulite.protocol.template import KEY, Answer, HeadValues, Miss, PendingAnswer
from lazulite.service.routing import CallT_contra, Keys, PreparedOperation, RepeatedOperation, Route
from lazulite.traffic.meter import Meter, Resource

_READS = frozenset({"GET", "HEAD"})
LAST: Final = "\uffff"
"""A text behind the names of all blobs with the same beginning."""


def prepared(route: Route[CallT_contra], call: CallT_contra) -> PreparedOperation:
    """Return the operation for a call whose request has its body, metered if its service does not do it.

    Raises:
        ServiceError: see `Route.prepare`.
    """
    operation, meter = route.prepare(call), call.context.meter
    if meter is None:
        return operation
    charge = call.charge()
    if not charge.resource:
        return operation
    return MeteredOperation(operation, meter, charge, call.method in _READS, call.parameters.get("prefix", ""))


async def respond(route: Route[CallT_contra], call: CallT_contra) -> Response:
    """Return the response to a call, which is metered as by `prepared`. Raises as the operation."""
    response = prepared(route, call).respond(call.request, route.keys_of(call))
    return response if isinstance(response, Response) else await response


def _size_of(request: Request, response: Response) -> int:
    """Return the bytes of a body; that of a HEAD is not sent."""
    if request.method == "HEAD":
        return 0
    return len(response.body) if response.content is None else response.content.length


class MeteredOperation(PreparedOperation):
    """An operation whose requests are counted.

    Args:
        operation: what it does.
        meter: counts.
        charge: its partition; of a plan that lasts, that of the request which it was made of.
        reads: whether it reads, and does not write.
        prefix: of the names that a list of blobs has.
    """

    __slots__ = ("_counts_rows", "_meter", "_operation", "_partition", "_reads", "_resource", "_spanned")

    def __init__(self, operation: PreparedOperation, meter: Meter, charge: Charge, reads: bool, prefix: str) -> None:
        self._operation = operation
        self._meter = meter
        self._resource = Resource(charge.account, charge.service, charge.resource)
        self._partition = charge.partition
        self._counts_rows = charge.counts_rows
        self._reads = reads
        self._spanned = prefix, f"{prefix}{LAST}"

    @property
    def lasts(self) -> bool:
        """See `PreparedOperation`."""
        return self._operation.lasts

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`."""
        return self._operation.has_templates

    def repeated(self, names: Sequence[str]) -> "RepeatedMeteredOperation | None":
        """See `PreparedOperation`."""
        repeated = self._operation.repeated(names)
        return None if repeated is None else RepeatedMeteredOperation(self, repeated, names[:1] == (KEY,))

    def respond(self, request: Request, keys: Keys) -> EventualResponse:
        """See `PreparedOperation`."""
        coming = request.body_to_come
        size = len(request.body) if coming is None else coming.length or 0
        try:
            response = self._operation.respond(request, keys)
        except ServiceError:
            self.note(keys[0] if keys else "", size, None, 0)
            raise
        if isinstance(response, Response):
            self._note(request, keys, size, response)
            return response
        return self._responded(request, keys, size, response)

    async def _responded(
        self, request: Request, keys: Keys, size: int, operation: Coroutine[object, None, Response]
    ) -> Response:
        try:
            response = await operation
        except ServiceError:
            self.note(keys[0] if keys else "", size, None, 0)
            raise
        self._note(request, keys, size, response)
        return response

    def _note(self, request: Request, keys: Keys, size: int, response: Response) -> None:
        record = request.record
        if self._partition is None:
            if record.rows_scanned:
                counts = (0, record.rows_scanned, 0, size, _size_of(request, response), 1, 0)
                self._meter.note(self._resource, self._spanned, counts)
            return
        rows = record.rows_returned if self._counts_rows and self._reads else 1
        self.note(keys[0] if keys else "", size, rows, _size_of(request, response))

    def note(self, key: str, bytes_in: int, rows: int | None, bytes_out: int) -> None:
        """Count a request.

        Args:
            key: of its path, which names the partition if it is not the resource itself.
            bytes_in: of its body.
            rows: what it read or wrote; None: it was rejected.
            bytes_out: of the body of its response.
        """
        if self._partition is not None:
            read, written = (rows or 0, 0) if self._reads else (0, rows or 0)
            counts = (read, 0, written, bytes_in, bytes_out, 1, 0)
            self._meter.note(self._resource, key if self._partition else "", counts)

    def answered(self, key: str, bytes_in: int, answer: Answer) -> None:
        """Count a request that a template answered."""
        rows = 1 if answer.rows is None or not self._counts_rows else answer.rows
        self.note(key, bytes_in, rows, len(answer.body))


class RepeatedMeteredOperation:
    """An operation whose requests are counted, for templates. Implements `RepeatedOperation`.

    Args:
        metered: counts.
        repeated: what it does.
        keyed: whether the first value is a key.
    """

    __slots__ = ("_keyed", "_metered", "_repeated", "waits")

    def __init__(self, metered: MeteredOperation, repeated: RepeatedOperation, keyed: bool) -> None:
        self._metered = metered
        self._repeated = repeated
        self._keyed = keyed
        self.waits = repeated.waits

    def answer(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Answer | Miss | None:
        """See `RepeatedOperation`."""
        key = percent_decode(values[0].decode("ascii")) if self._keyed else ""
        if later is not None:
            later = _MeteredAnswer(later, self._metered, key, len(body))
        answer = self._repeated.answer(values, body, later)
        if isinstance(answer, Answer):
            self._metered.answered(key, len(body), answer)
        return answer


class _MeteredAnswer:
    """Counts an answer that comes later. Implements `PendingAnswer`."""

    __slots__ = ("_key", "_later", "_metered", "_size")

    def __init__(self, later: PendingAnswer, metered: MeteredOperation, key: str, size: int) -> None:
        self._later = later
        self._metered = metered
        self._key = key
        self._size = size

    def answer(self, answer: Answer) -> None:
        """See `PendingAnswer`."""
        self._metered.answered(self._key, self._size, answer)
        self._later.answer(answer)

    def fail(self, failure: BaseException) -> None:
        """See `PendingAnswer`."""
        self._metered.note(self._key, self._size, None, 0)
        self._later.fail(failure)
