"""The resource that a request addresses, as a SAS of blobs signs it.

A token names neither container nor blob; the path of the request does. They are fields of the token, put there by
`ServiceCredentials.sas_fields`. `sr` tells how much of the path the token signs: the container (`c`), the blob (`b`),
one snapshot (`bs`) or version (`bv`) of it, or the first segments of its name (`d`), as many as `sdd` says. Of a list,
those of its prefix are signed (*unverified*).

Source: "Create a service SAS" of the REST reference.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lazulite.blob.names import ROOT
from lazulite.protocol.query_string import percent_decode
from lazulite.service.routing import component_of

CONTAINER, BLOB, TIME = "Container", "Blob", "Time"
"""The fields."""
_TIMES = {"bs": ("snapshot", "versionid"), "bv": ("versionid", "snapshot")}
"""`sr` -> the query parameter that selects the signed resource, and one that must not select another."""
_DEPTH_DIGITS_MAX = 3
LIST_COMPONENT = "container/list"
"""The component of List Blobs."""


class Addressed(NamedTuple):
    """The names in a path, decoded; each is "" if the path has none."""

    container: str
    blob: str


def addressed(path: str, parameters: Mapping[str, str]) -> Addressed:
    """Return the container and the blob that a request addresses, well formed or not.

    Args:
        path: below the account, percent-encoded.
        parameters: the query. `restype` tells a container from a blob of the root container.

    Raises:
        ServiceError: `RequestUrlFailedToParse`.
    """
    container, _, blob = path.partition("/")
    if blob or not container or "restype" in parameters:
        return Addressed(percent_decode(container), percent_decode(blob))
    return Addressed(ROOT, percent_decode(container))


def resource_fields(path: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the resource that a SAS signs: see `ServiceCredentials.sas_resource`. Raises as `addressed`.

    A field is "" if the request does not address such a resource.
    """
    kind = parameters.get("sr", "")
    container, blob = addressed(path, parameters)
    if kind == "c":
        return {CONTAINER: container, BLOB: "", TIME: ""}
    if kind == "d":
        name = parameters.get("prefix", "") if component_of(parameters) == LIST_COMPONENT else blob
        return {CONTAINER: container, BLOB: _directory(name, parameters.get("sdd", "")), TIME: ""}
    selected, other = _TIMES.get(kind, ("", ""))
    return {CONTAINER: container, BLOB: blob, TIME: "" if other in parameters else parameters.get(selected, "")}


def _directory(blob: str, depth: str) -> str:
    """Return so many segments of a blob's name; "" if nothing of the name is below them."""
    if not (depth.isascii() and depth.isdigit() and len(depth) <= _DEPTH_DIGITS_MAX):
        return ""
    segments = blob.split("/", int(depth))
    return "/".join(segments[:-1]) if len(segments) > int(depth) else ""
