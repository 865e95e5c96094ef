"""The resource that a request addresses, as a SAS of blobs signs it.

A token names neither container nor blob; the path of the request does. They are fields of the token, put there by
`ServiceCredentials.sas_fields`. `sr` tells how much of the path the token signs: the container (`c`), the blob (`b`),
one snapshot (`bs`) or version (`bv`) of it, or the first segments of its name (`d`), as many as `sdd` says. Of a list,
those of its prefix are signed (*unverified*).

Source: "Create a service SAS" of the REST reference.
"""

from collections.abc import Mapping

from lazulite.blob.resource import resource_of
from lazulite.service.routing import component_of

CONTAINER, BLOB, TIME = "Container", "Blob", "Time"
"""The fields."""
_TIMES = {"bs": ("snapshot", "versionid"), "bv": ("versionid", "snapshot")}
"""`sr` -> the query parameter that selects the signed resource, and one that must not select another."""
_DEPTH_DIGITS_MAX = 3
LIST_COMPONENT = "container/list"
"""The component of List Blobs."""


def resource_fields(path: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the resource that a SAS signs: see `ServiceCredentials.sas_resource`.

    Raises as `resource_of`.

    A field is "" if the request does not address such a resource.
    """
    kind = parameters.get("sr", "")
    _, container, blob = resource_of(path, parameters)
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
