"""Jobs over all blobs below a prefix: count them, delete them."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from lazulite.ui.backend import BackendError, ServiceClient
from lazulite.ui.blobs.listing import BlobRow, address_of, all_blobs
from lazulite.ui.jobs import Job, Work
from lazulite.ui.rendering import size

AT_ONCE = 8
"""Deletions at a time."""
DELETE_SNAPSHOTS = "x-ms-delete-snapshots"


def count_blobs(client: ServiceClient, container: str, prefix: str) -> Work:
    """Return a job that counts blobs and their bytes, by type."""

    async def work(job: Job) -> None:
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        async for blobs in all_blobs(client, container, prefix):
            for blob in blobs:
                counts[blob.kind] += 1
                sizes[blob.kind] += blob.length
            await job.step(len(blobs))
        job.say(f"{counts.total():,} blobs, {size(sizes.total())} ({sizes.total():,} bytes)")
        for kind in sorted(counts):
            job.say(f"{kind}: {counts[kind]:,} blobs, {sizes[kind]:,} bytes")

    return work


def delete_blobs(client: ServiceClient, container: str, prefix: str) -> Work:
    """Return a job that deletes blobs with their snapshots, as they were listed."""

    async def work(job: Job) -> None:
        async for blobs in all_blobs(client, container, prefix):
            for start in range(0, len(blobs), AT_ONCE):
                part = blobs[start : start + AT_ONCE]
                for problem in await deleted(client, container, part, with_snapshots=True):
                    job.failed += 1
                    job.say(problem)
                await job.step(len(part))
        job.say(f"{job.done - job.failed:,} blobs were deleted")

    return work


async def deleted(
    client: ServiceClient, container: str, blobs: Sequence[BlobRow], *, with_snapshots: bool
) -> Sequence[str]:
    """Delete blobs that have not changed since they were listed; return why some could not be."""
    found = await asyncio.gather(
        *(delete_blob(client, container, each.name, each.etag, with_snapshots=with_snapshots) for each in blobs)
    )
    return [each for each in found if each]


async def delete_blob(client: ServiceClient, container: str, name: str, etag: str, *, with_snapshots: bool) -> str:
    """Delete a blob of an ETag; return why it could not be, "" if it was."""
    path, parameters = address_of(container, name)
    headers = {"If-Match": etag, **({DELETE_SNAPSHOTS: "include"} if with_snapshots else {})}
    try:
        await client.send("DELETE", path, parameters, headers)
    except BackendError as error:
        return "" if error.status == 404 else f"{name}: {error.code}: {error}"
    return ""
