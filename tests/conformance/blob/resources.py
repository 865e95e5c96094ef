"""A container or blob under test, on which operations, leases and conditions work alike."""

from dataclasses import dataclass

from tests.conformance.answers import Answer
from tests.conformance.client import HeaderChanges

from .blobs import Container

A, B, C = (f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "abc")
"""Ids of leases."""


@dataclass(frozen=True)
class Resource:
    """A container, or a blob of it."""

    container: Container
    name: str = ""
    """The name of the blob; empty for the container."""

    def send(self, method: str, query: str = "", headers: HeaderChanges | None = None, **options: object) -> Answer:
        """Send a request to it."""
        parts = [part for part in ("" if self.name else "restype=container", query) if part]
        return self.container.send(method, self.name, "&".join(parts), headers=headers, **options)

    def put(self, content: bytes, headers: HeaderChanges | None = None, **options: object) -> Answer:
        """Put a block blob."""
        given = {"x-ms-blob-type": "BlockBlob", **(headers or {})}
        return self.send("PUT", "", given, body=content, **options)

    def lease(self, action: str, **fields: str | int) -> Answer:
        """Send a lease operation with headers such as `id`, `proposed_id` and `duration`."""
        names = {"id": "x-ms-lease-id", "proposed_id": "x-ms-proposed-lease-id"}
        given = {names.get(name, f"x-ms-lease-{name.replace('_', '-')}"): str(value) for name, value in fields.items()}
        return self.send("PUT", "comp=lease", {"x-ms-lease-action": action, **given})

    def facts(self) -> Answer:
        """Read its properties."""
        return self.send("HEAD").expect(200)


def with_lease(id_: str | None) -> dict[str, str]:
    """The headers of another request that names a lease, or not."""
    return {} if id_ is None else {"x-ms-lease-id": id_}
