"""An operation of the Blob service, prepared: it runs for any blob of its container, and any conditions.

Invariant: everything that a request can differ in, and everything stored, is looked at for each request: the blob, the
fields that vary, its preconditions, the container, the account's switches and properties. The cache key has the rest:
all other fields and the query, so also the version, the snapshot or the version of a blob, and fields that are not
supported. Of the credentials, a plan lasts only if they permit the same for every blob of the container.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from lazulite.blob.auth.sas import BlobScope
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import LEASE_ID
from lazulite.blob.requests.preconditions import Preconditions
from lazulite.blob.versions import QUOTED_ETAG, head_lines, known_headers
from lazulite.engine.contract import Waiter
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.protocol.query_string import percent_decode
from lazulite.protocol.template import KEY, Answer, HeadValues, Miss, PendingAnswer
from lazulite.protocol.version import stated_version
from lazulite.service.routing import Keys, Operation, PreparedOperation

Operate: TypeAlias = Callable[[Call], EventualResponse]
"""Responds to a call."""
Begin: TypeAlias = Callable[[Call, Waiter], Response | None]
"""Begins a write whose request has its body, and which the waiter waits for. Returns the response, of which nothing may
be told before; None: it has to go the usual way, and nothing was changed."""
ReadPreconditions: TypeAlias = Callable[[Call], Preconditions]
"""Reads the preconditions of a call; raises `ServiceError`."""

_CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", LEASE_ID)
READ_VARIES = ("range", "x-ms-range", *_CONDITIONS)
"""The fields that differ from read to read of blobs."""
WRITE_VARIES = ("content-md5", "x-ms-content-crc64", "x-ms-blob-content-md5", *_CONDITIONS)
"""The fields that differ from write to write of blobs."""


_VARYING = frozenset({*READ_VARIES, *WRITE_VARIES})
_READS = frozenset({"GET", "HEAD"})


class OperationForm(NamedTuple):
    """What is the same for all requests of an operation."""

    name: str
    """As its route has it."""
    operate: Operate
    read: ReadPreconditions | None
    """None: it has no preconditions."""
    parameter: str = ""
    """The query parameter that varies, see `Route.varies_parameter`."""
    begin: Begin | None = None
    """None: no template answers the write."""


class BlobOperation(PreparedOperation):
    """An operation with the preconditions that it knows, and the response headers that its version knows.

    Args:
        call: one of its requests.
        form: of the operation.
    """

    __slots__ = ("_call", "form")

    def __init__(self, call: Call, form: OperationForm) -> None:
        self._call = call
        self.form = form

    @property
    def lasts(self) -> bool:
        """See `PreparedOperation`.

        It is False if the name of the blob decides on the permission, or the account on the version.
        """
        call = self._call
        scope = call.grant.scope
        names_blob = isinstance(scope, BlobScope) and scope.blob != ""
        return not names_blob and stated_version(call.request.headers, call.parameters) != ""

    def respond(self, request: Request, keys: Keys) -> EventualResponse:
        """See `PreparedOperation`."""
        call = self._call
        if request is not call.request:
            call = call.renewed(request, keys, self.form.parameter)
        response = self.form.operate(self._conditional(call))
        return self.known(response) if isinstance(response, Response) else self._respond(response)

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`: reads, and writes that can be begun, unless rows are a round trip away."""
        engine = self._call.context.engine
        return engine.reads_now if self._call.method in _READS else engine.commits_now and self.form.begin is not None

    def repeated(self, names: Sequence[str]) -> "RepeatedBlobOperation | None":
        """See `PreparedOperation`."""
        call = self._call
        fields = [name for name in names if name != KEY]
        if not self.has_templates or len(set(fields)) < len(fields) or call.version < QUOTED_ETAG:
            return None
        key_count = len(call.resource.keys) + (self.form.parameter != "")
        return RepeatedBlobOperation(self, names) if len(names) - len(fields) == key_count else None

    def call_of(self, keys: Keys, values: Mapping[str, str], body: bytes) -> Call:
        """Return the call of another request, see `Call.renewed`. Raises as `ReadPreconditions`.

        Args:
            keys: of the request.
            values: the fields that vary.
            body: of the request.
        """
        request = self._call.request
        if values or body:
            request = Request(request.method, request.path, request.query, {**request.headers, **values}, body)
        return self._conditional(self._call.renewed(request, keys, self.form.parameter))

    def _conditional(self, call: Call) -> Call:
        """Return a call with its preconditions."""
        if self.form.read is not None:
            call.preconditions = self.form.read(call)
        return call

    async def _respond(self, operation: Operation) -> Response:
        return self.known(await operation)

    def known(self, response: Response) -> Response:
        """Return a response as the version of its request knows it, ready for the wire if it is of the usual form."""
        headers, version = response.headers, self._call.version
        if not headers:
            return response
        lines = head_lines(headers, self.form.name, version)
        if lines is None:
            response.headers = known_headers(headers, self.form.name, version)
        else:
            response.opening += lines
            response.headers = []
        return response


class RepeatedBlobOperation:
    """An operation on blobs, for templates. Implements `RepeatedOperation`.

    Args:
        operation: the operation.
        names: of the values of its heads.
    """

    __slots__ = ("_fields", "_key_count", "_operation", "waits")

    def __init__(self, operation: BlobOperation, names: Sequence[str]) -> None:
        self._operation = operation
        self._key_count = names.count(KEY)
        self._fields = tuple((index, name) for index, name in enumerate(names) if name in _VARYING)
        self.waits = operation.form.begin is not None

    def answer(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Answer | Miss | None:
        """See `RepeatedOperation`."""
        operation = self._operation
        fields = {name: values[index].decode("ascii") for index, name in self._fields}
        try:
            keys = tuple([percent_decode(key.decode("ascii")) for key in values[: self._key_count]])
            call = operation.call_of(keys, fields, body)
            if later is not None:
                return _begin(operation, call, later)
            response = operation.form.operate(call)
        except ServiceError:
            return Miss.OPERATION
        if not isinstance(response, Response):
            response.close()
            return Miss.OPERATION
        response = operation.known(response)
        return Miss.OPERATION if response.headers else Answer(response.status, response.opening, response.body)


def _begin(operation: BlobOperation, call: Call, later: PendingAnswer) -> Miss | None:
    """Begin a write. Return None if it has begun. Raises as the operation."""
    assert operation.form.begin is not None, "it waits"
    pending = PendingWrite(later)
    response = operation.form.begin(call, pending)
    if response is None:
        return Miss.OPERATION
    response = operation.known(response)
    assert not response.headers, "a write tells nothing that a client chose"
    pending.result = Answer(response.status, response.opening)
    return None


class PendingWrite:
    """A write that has joined a commit group. Implements `Waiter`.

    Args:
        later: gets the answer.

    Attributes:
        result: the answer, once it is known.
    """

    __slots__ = ("_later", "result")

    def __init__(self, later: PendingAnswer) -> None:
        self._later = later
        self.result: Answer | None = None

    def done(self) -> bool:
        """See `Waiter`."""
        return False

    def set_result(self, _: None) -> None:
        """Answer: the write is durable."""
        assert self.result is not None, "it is known before it is durable"
        self._later.answer(self.result)

    def set_exception(self, exception: BaseException) -> None:
        """Reject: the write may not be durable."""
        self._later.fail(exception)
