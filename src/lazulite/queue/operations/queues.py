"""List, create and delete queues; their metadata and stored access policies. Source: reference §26.1, §27."""

from lazulite.protocol.message import Response
from lazulite.protocol.metadata import metadata_headers, read_metadata
from lazulite.protocol.resource_names import check_resource_name
from lazulite.queue import limits
from lazulite.queue.call import Call
from lazulite.queue.catalog import Queue
from lazulite.queue.payload import write_queues
from lazulite.service.fault_injection import page_entries
from lazulite.service.parameters import invalid, read_name_marker, read_number
from lazulite.service.responses import NO_CACHE, XML_TYPE
from lazulite.service.signed_identifiers import read_signed_identifiers, write_signed_identifiers
from lazulite.service.time_slice import TimeSlice

QUEUE_PERMISSIONS = "raup"
_ECHOED = (("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults"))


async def list_queues(call: Call) -> Response:
    """Return a page of the account's queues, in the order of their names."""
    parameters = call.parameters
    most = read_number(parameters, "maxresults", limits.QUEUES_MAX, 1, limits.QUEUES_MAX)
    most = page_entries(call, most)
    prefix = parameters.get("prefix", "")
    include = parameters.get("include", "")
    if include.lower() not in ("", "metadata"):
        raise invalid("include", include, "Only metadata can be included.")
    start = read_name_marker(parameters, call.account, check_resource_name, "InvalidMarker")
    queues: list[Queue] = []
    following = ""
    metadata_bytes = 0
    time_slice = TimeSlice(call.context.limits.slice_seconds, call.context.monotonic)
    async for queue in call.context.catalog.list(call.account, start, prefix):
        is_full = len(queues) == most or metadata_bytes > limits.PAGE_METADATA_BYTES_MAX
        if is_full or await time_slice.checkpoint() > call.deadline:
            following = f"/{call.account}/{queue.name}"
            break
        queues.append(queue)
        if include:
            metadata_bytes += sum(len(name) + len(text) for name, text in queue.metadata)
    call.record.rows_scanned = call.record.rows_returned = len(queues)
    sent = [(element, parameters[name]) for element, name in _ECHOED if name in parameters]
    steps = write_queues(call.address, call.version, sent, queues, with_metadata=bool(include), marker=following)
    return Response(200, [XML_TYPE, NO_CACHE], await call.write(steps))


async def create_queue(call: Call) -> Response:
    """Create a queue: 201, or 204 if there is one with the same metadata."""
    metadata = read_metadata(call.request.headers)
    is_new = await call.context.catalog.create(call.account, call.resource.queue, metadata)
    return Response(201 if is_new else 204)


async def delete_queue(call: Call) -> Response:
    """Delete a queue with its messages. Its name is free at once."""
    await call.context.catalog.delete(call.account, call.resource.queue)
    return Response(204)


async def get_metadata(call: Call) -> Response:
    """Return the metadata and the approximate number of messages, as headers."""
    queue = await call.context.catalog.require(call.account, call.resource.queue)
    number = await call.with_queue(call.context.messages.count)
    headers = [NO_CACHE, ("x-ms-approximate-messages-count", str(number)), *metadata_headers(queue.metadata)]
    return Response(200, headers)


async def set_metadata(call: Call) -> Response:
    """Replace the metadata."""
    metadata = read_metadata(call.request.headers)
    await call.context.catalog.set_metadata(call.account, call.resource.queue, metadata)
    return Response(204)


async def get_acl(call: Call) -> Response:
    """Return the stored access policies."""
    queue = await call.context.catalog.require(call.account, call.resource.queue)
    return Response(200, [XML_TYPE, NO_CACHE], write_signed_identifiers(queue.policies))


async def set_acl(call: Call) -> Response:
    """Replace the stored access policies; they hold from the next request on."""
    policies = read_signed_identifiers(call.request.body, QUEUE_PERMISSIONS)
    await call.context.catalog.set_policies(call.account, call.resource.queue, policies)
    return Response(204)
