"""Containers: their metadata, public access and access policies."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lazulite.resources.policies import (
    Policies,
    Policy,
    metadata_headers,
    metadata_of,
    read_policies,
    write_policies,
)
from lazulite.resources.sender import Call, Sender, find, pages, send

_CONTAINER = {"restype": "container"}
_ACCESS = "x-ms-blob-public-access"


class ContainerState(NamedTuple):
    """A container without its blobs."""

    metadata: Mapping[str, str]
    public_access: str
    """`container`, `blob`, or "" for none."""


class ContainerAccess(NamedTuple):
    """The access to a container without a key."""

    public: str
    """`container`, `blob`, or "" for none."""
    policies: dict[str, Policy]


def container_names(sender: Sender) -> Iterator[str]:
    """Yield the names of all containers. Raises as `send`."""
    for root in pages(sender, Call("blob", "GET", "", {"comp": "list"})):
        yield from (each.findtext("Name") or "" for each in root.iterfind("Containers/Container"))


def find_container(sender: Sender, container: str) -> ContainerState | None:
    """Return a container; None if there is none. Raises as `send`."""
    reply = find(sender, Call("blob", "HEAD", container, _CONTAINER))
    return None if reply is None else ContainerState(metadata_of(reply.headers), reply.headers.get(_ACCESS, ""))


def create_container(sender: Sender, container: str, metadata: Mapping[str, str], public: str) -> None:
    """Create a container. Raises as `send`."""
    headers = {**metadata_headers(metadata), **({_ACCESS: public} if public else {})}
    send(sender, Call("blob", "PUT", container, _CONTAINER, headers))


def set_container_metadata(sender: Sender, container: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a container. Raises as `send`."""
    send(sender, Call("blob", "PUT", container, {**_CONTAINER, "comp": "metadata"}, metadata_headers(metadata)))


def container_access(sender: Sender, container: str) -> ContainerAccess:
    """Return the access to a container without a key. Raises as `send`."""
    reply = send(sender, Call("blob", "GET", container, {**_CONTAINER, "comp": "acl"}))
    return ContainerAccess(reply.headers.get(_ACCESS, ""), read_policies(reply.root))


def set_container_access(sender: Sender, container: str, public: str, policies: Policies) -> None:
    """Replace the public access and the access policies of a container. Raises as `send`."""
    headers = {"Content-Type": "application/xml", **({_ACCESS: public} if public else {})}
    send(sender, Call("blob", "PUT", container, {**_CONTAINER, "comp": "acl"}, headers, write_policies(policies)))
