"""Blob Batch: up to 256 deletions, or changes of tiers, in one request. Source: reference §44.

Each part is authorised by its own credentials and succeeds or fails alone. The version of the whole governs each part.
"""

from lazulite.blob.batch.parts import (
    PartProperties,
    PartRequest,
    batch_response,
    lacks_boundary,
    read_batch,
    write_part,
)
from lazulite.blob.requests.call import Call
from lazulite.blob.resource import Kind, resource_of
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Request, Response
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import RequestVersion
from lazulite.service.time_slice import TimeSlice

_VERSION = "x-ms-version"


async def run_batch(call: Call) -> Response:
    """Run the parts of a batch, in their order."""
    sent, context = call.request, call.context
    content_type = sent.headers.get("content-type", "")
    if lacks_boundary(content_type):
        return batch_response([_reject_type(call, content_type)], context.random)
    _, parts = await call.in_slices(read_batch(content_type, sent.body))
    requests = [_request(sent, part, number) for number, part in enumerate(parts)]
    if call.resource.kind is Kind.CONTAINER:
        _check_container(call, requests)
    time_slice = TimeSlice(context.limits.slice_seconds, context.monotonic)
    written: list[bytes] = []
    version = RequestVersion(call.version, call.version)
    properties = context.properties.cached(call.account)
    analytics = properties is not None and properties.asks_for_analytics
    for part, request in zip(parts, requests, strict=True):
        response = await context.inner.kernel.respond_to_part(request, version)
        sent.record.fault = sent.record.fault or request.record.fault
        client_id = request.headers.get("x-ms-client-request-id", "")
        facts = PartProperties(part.head.content_id, request.id, call.version, client_id)
        written.append(write_part(response, facts))
        if analytics:
            call.record.parts = (*call.record.parts, (request, response))
        await time_slice.checkpoint()
    return batch_response(written, context.random)


def _request(sent: Request, part: PartRequest, number: int) -> Request:
    """Return a part as a request. It goes to the host of the whole batch."""
    headers = {**part.head.headers, "host": sent.headers.get("host", "")}
    id_ = f"{sent.id[:-4]}{number:04x}"
    return Request(part.head.method, part.path, part.query, headers, scheme=sent.scheme, client=sent.client, id=id_)


def _reject_type(call: Call, content_type: str) -> bytes:
    """Return the part that stands for all requests of a batch whose boundary is unknown (§44)."""
    sent = call.request
    request = Request(sent.method, sent.path, headers={_VERSION: call.version}, id=sent.id)
    response = call.context.inner.kernel.reject(request, invalid_header("Content-Type", content_type))
    return write_part(response, PartProperties(None, sent.id, call.version, ""))


def _check_container(call: Call, requests: list[Request]) -> None:
    """Reject a batch with a part outside the addressed container. Nothing of it runs.

    Raises:
        ServiceError: `InvalidInput`.
    """
    for request in requests:
        address = call.context.addressing.locate(request)
        resource = resource_of(address.resource, parse_query_string(request.query))
        named = address.account, resource.kind, resource.container
        if named != (call.account, Kind.BLOB, call.resource.container):
            raise ServiceError("InvalidInput")
