"""Photos of employees in blobs, which their entities name."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from azure.data.tables import TableServiceClient
from azure.storage.blob import ContainerClient

from company.model import Employee, staff
from lazulite_patterns import EntityKey, Large
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns_simulation import Crash, Fault, FaultAt

KEY = EntityKey("IT", "000102")
AFTER_UPLOAD = 2
"""The effect after the read of the entity and the upload: the write of the entity."""


def opened(service: TableServiceClient, container: ContainerClient, runtime: Runtime | None = None) -> Large[Employee]:
    """Return the photos."""
    return Large(staff(service), container, "photo", runtime=runtime)


def show(service: TableServiceClient, container: ContainerClient) -> None:
    """Replace a photo, let a process end in the middle of another one, and collect what that left."""
    photos = opened(service, container)
    photos.put(KEY, bytes(3_000_000), "image/jpeg")
    photos.put(KEY, bytes(2_000_000), "image/jpeg")
    ending = FaultAt(AFTER_UPLOAD, Fault.CRASH_BEFORE)
    with suppress(Crash):
        opened(service, container, Runtime(failpoints=ending)).put(KEY, b"never named", "image/png")
    blobs = len(list(container.list_blobs()))
    later = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(minutes=11))
    print(blobs, "blobs,", opened(service, container, later).collect(), "collected")
    if (found := photos.get(KEY)) is not None and found.reference is not None:
        print("photo:", found.entity.last_name, found.reference.content_type, found.reference.length)
