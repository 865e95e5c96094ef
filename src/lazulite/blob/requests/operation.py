"""An operation of the Blob service, prepared: it runs for any blob of its container, and any conditions.

Invariant: everything that a request can differ in, and everything stored, is looked at for each request: the blob, the
fields that vary, its preconditions, the container, the account's switches and properties. The cache key has the rest:
all other fields and the query, so also the version, the snapshot or the version of a blob, and fields that are not
supported. Of the credentials, a plan lasts only if they permit the same for every blob of the container.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from lazulite.blob.auth.sas import BlobScope
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import LEASE_ID
from lazulite.blob.requests.preconditions import Preconditions
from lazulite.blob.versions import head_lines, known_headers
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.protocol.template import KEY, Answer, HeadValues, Miss, PendingAnswer
from lazulite.protocol.version import stated_version
from lazulite.service.routing import Keys, Operation, PreparedOperation

Operate: TypeAlias = Callable[[Call], EventualResponse]
"""Responds to a call."""
ReadPreconditions: TypeAlias = Callable[[Call], Preconditions]
"""Reads the preconditions of a call; raises `ServiceError`."""

_CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", LEASE_ID)
READ_VARIES = ("range", "x-ms-range", *_CONDITIONS)
"""The fields that differ from read to read of blobs."""
WRITE_VARIES = ("content-md5", "x-ms-content-crc64", "x-ms-blob-content-md5", *_CONDITIONS)
"""The fields that differ from write to write of blobs."""


_READS = frozenset({"GET", "HEAD"})


class BlobOperation(PreparedOperation):
    """An operation with the preconditions that it knows, and the response headers that its version knows.

    Args:
        call: one of its requests.
        name: of the operation, as its route has it.
        operate: responds to a call.
        read: reads the preconditions; None: it has none.
        parameter: the query parameter that varies, see `Route.varies_parameter`.
    """

    __slots__ = ("_call", "_name", "_operate", "_parameter", "_read")

    def __init__(
        self, call: Call, name: str, operate: Operate, read: ReadPreconditions | None, parameter: str = ""
    ) -> None:
        self._call = call
        self._name = name
        self._operate = operate
        self._read = read
        self._parameter = parameter

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
            call = call.renewed(request, keys, self._parameter)
        if self._read is not None:
            call.preconditions = self._read(call)
        response = self._operate(call)
        return self._known(response) if isinstance(response, Response) else self._respond(response)

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`: only of reads, as what is stored decides on them at once."""
        return self._call.method in _READS

    def repeated(self, names: Sequence[str]) -> "RepeatedRead | None":
        """See `PreparedOperation`."""
        call = self._call
        fields = [name for name in names if name != KEY]
        if not self.has_templates or len(set(fields)) < len(fields):
            return None
        if len(names) - len(fields) != len(call.resource.keys):
            return None
        return RepeatedRead(self, names)

    def answer(self, name: str, values: Mapping[str, str]) -> Answer | Miss:
        """Return the answer to a read, if it is ready and has no content; see `RepeatedOperation.answer`.

        Args:
            name: of the blob, if the path has it as a key.
            values: the fields that vary.
        """
        request = self._call.request
        if values:
            request = Request(request.method, request.path, request.query, {**request.headers, **values})
        call = self._call.renewed(request, (name,), "")
        try:
            if self._read is not None:
                call.preconditions = self._read(call)
            response = self._operate(call)
        except ServiceError:
            return Miss.OPERATION
        if not isinstance(response, Response):
            response.close()
            return Miss.OPERATION
        response = self._known(response)
        return Miss.OPERATION if response.headers else Answer(response.status, response.opening, response.body)

    async def _respond(self, operation: Operation) -> Response:
        return self._known(await operation)

    def _known(self, response: Response) -> Response:
        """Return a response as the version of its request knows it, ready for the wire if it is of the usual form."""
        headers, version = response.headers, self._call.version
        if not headers:
            return response
        lines = head_lines(headers, self._name, version)
        if lines is None:
            response.headers = known_headers(headers, self._name, version)
        else:
            response.opening += lines
            response.headers = []
        return response


class RepeatedRead:
    """A read of blobs, for templates. Implements `RepeatedOperation`.

    Args:
        operation: the read.
        names: of the values of its heads.
    """

    __slots__ = ("_fields", "_has_key", "_operation")
    waits = False

    def __init__(self, operation: BlobOperation, names: Sequence[str]) -> None:
        self._operation = operation
        self._has_key = KEY in names
        self._fields = tuple((index, name) for index, name in enumerate(names) if name in READ_VARIES)

    def answer(self, values: HeadValues, _: bytes, __: PendingAnswer | None) -> Answer | Miss:
        """See `RepeatedOperation`."""
        name = values[0].decode("ascii") if self._has_key else ""
        return self._operation.answer(name, {name: values[index].decode("ascii") for index, name in self._fields})
