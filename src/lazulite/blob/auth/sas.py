"""The service SAS of blobs: for a container, a blob, a snapshot, a version or the blobs below a prefix.

A token names neither container nor blob; the path of the request does. They are fields of the token, put there by
`ServiceCredentials.sas_fields`. `sr` tells how much of the path the token signs: the container (`c`), the blob (`b`),
one snapshot (`bs`) or version (`bv`) of it, or the first segments of its name (`d`), as many as `sdd` says. Of a list,
those of its prefix are signed (*unverified*).

Source: "Create a service SAS" of the REST reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import Grant
from lazulite.auth.sas import MalformedSasError, ServiceSas, Terms, read_values, sign_service_sas
from lazulite.blob.resource import resource_of
from lazulite.blob.versions import (
    DIRECTORY_SAS_SINCE,
    OVERRIDES_SINCE,
    RESOURCE_SIGNED_SINCE,
    VERSION_SAS_SINCE,
    VERSION_SIGNED_SINCE,
)
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.version import ENCRYPTION_SCOPE_SINCE, SAS_TRANSPORT_SINCE
from lazulite.service.routing import component_of

CONTAINER, BLOB, TIME = "Container", "Blob", "Time"
"""The fields of the resource that a token signs."""
_TIMES = {"bs": ("snapshot", "versionid"), "bv": ("versionid", "snapshot")}
"""`sr` -> the query parameter that selects the signed resource, and one that must not select another."""
_DEPTH_DIGITS_MAX = 3
LIST_COMPONENT = "container/list"
"""The component of List Blobs."""
SNAPSHOT_PERMISSIONS = frozenset("rdxyt")
"""What a token for one snapshot or version may permit: no permission that would change the blob itself."""
OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}
"""Query parameter -> field of the response, in the order in which they are signed."""
Overrides = tuple[str, str, str, str, str]
"""The values of `OVERRIDES`; "" is absent."""
NO_OVERRIDES: Overrides = ("", "", "", "", "")
KINDS = {"c": "", "b": "", "bs": RESOURCE_SIGNED_SINCE, "bv": VERSION_SAS_SINCE, "d": DIRECTORY_SAS_SINCE}
"""The values of `sr` -> the first version that has it."""
SNAPSHOT_KINDS = frozenset({"bs", "bv"})
_UNVERSIONED_TICKS = 3600 * TICKS_PER_SECOND
"""How long a token without `sv` is valid at most."""
_NAMES = {
    "sv": "version",
    "sr": "kind",
    "sdd": "depth",
    "sp": "permission",
    "st": "start",
    "se": "expiry",
    "si": "policy_id",
    "sip": "ip",
    "spr": "protocol",
    "ses": "encryption_scope",
    "sig": "signature",
}
_RESOURCE = {CONTAINER: "container", BLOB: "blob", TIME: "time"}
BLOB_SAS_PARAMETERS = (*_NAMES, *OVERRIDES, *_RESOURCE)
"""Every field that takes part in a SAS of blobs."""


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


@dataclass(frozen=True, slots=True)
class BlobScope:
    """The blobs that a SAS reaches."""

    container: str
    blob: str = ""
    """The name of the one blob; "": all blobs of the container, and the container itself."""
    is_directory: bool = False
    """Whether `blob` is the beginning of names, up to a slash that it lacks."""

    def covers(self, resource: str) -> bool:
        """Tell whether a container, or a blob given as `container/blob`, is one that the token grants access to."""
        if not self.blob:
            return resource == self.container or resource.startswith(f"{self.container}/")
        name = f"{self.container}/{self.blob}"
        return resource.startswith(f"{name}/") if self.is_directory else resource == name


def read_overrides(parameters: Mapping[str, str]) -> Overrides:
    """Return the values in the query parameters of a token.

    Raises:
        MalformedSasError: a value has control characters, which no field can have.
    """
    cache, disposition, encoding, language, media = (parameters.get(name, "") for name in OVERRIDES)
    values = (cache, disposition, encoding, language, media)
    if any(character < " " or character == "\x7f" for value in values for character in value):
        raise MalformedSasError("a value for the response has a control character")
    return values


def response_fields(values: Overrides) -> tuple[tuple[str, str], ...]:
    """Return the fields of a response, their values as a head has them: bytes of UTF-8, one character each."""
    named = zip(OVERRIDES.values(), values, strict=True)
    return tuple((name, value.encode().decode("latin-1")) for name, value in named if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSas(ServiceSas):
    """Hold the values of a SAS of blobs."""

    kind: str
    """`sr`"""
    container: str
    blob: str = ""
    """The blob, or the prefix without the slash at its end."""
    time: str = ""
    """Which snapshot or version, as requests name it."""
    depth: str = ""
    """The number of segments of the prefix."""
    encryption_scope: str = ""
    overrides: Overrides = NO_OVERRIDES

    @property
    def policy_resource(self) -> str:
        """Return the name of the container."""
        return self.container

    @property
    def signed_resource(self) -> str:
        """Return the container, or container and blob."""
        return f"{self.container}/{self.blob}" if self.blob else self.container

    def scope(self) -> BlobScope:
        """Return the blobs that the token grants access to."""
        return BlobScope(self.container, self.blob, self.kind == "d")

    def grant(self, permission: str) -> Grant:
        """See `ServiceSas`. Fields of the response count only where they are signed."""
        grant = ServiceSas.grant(self, permission)
        permissions = grant.permissions & SNAPSHOT_PERMISSIONS if self.kind in SNAPSHOT_KINDS else grant.permissions
        fields = response_fields(self.overrides) if self.version >= OVERRIDES_SINCE else ()
        return replace(grant, permissions=permissions, response_headers=fields)

    def terms(self) -> Terms:
        """See `ServiceSas`. A token without a version has no `sip` and `spr`, and is valid for an hour at most.

        Raises:
            MalformedSasError: a required value is missing, or one is none of the documented forms.
        """
        check_resource(self.kind, self.version, self.container, self.blob, self.time)
        if self.version:
            return ServiceSas.terms(self)
        terms = replace(self, version=VERSION_SIGNED_SINCE).terms()
        return terms if self.policy_id else _within_an_hour(terms)

    def string_to_sign(self, account: str) -> str:
        """Return the string that the key of an account signs, given the account's name."""
        lines = self.signed_lines("blob", account)
        if not self.version:
            return "\n".join(lines[:-1])
        if self.version >= RESOURCE_SIGNED_SINCE:
            lines += [self.kind, self.time]
        if self.version >= ENCRYPTION_SCOPE_SINCE:
            lines.append(self.encryption_scope)
        if self.version >= OVERRIDES_SINCE:
            lines += self.overrides
        return "\n".join(lines)


def _within_an_hour(terms: Terms) -> Terms:
    """Return the terms of a token that begins, if it does not say when, an hour before its end."""
    assert terms.expiry is not None
    earliest = terms.expiry - _UNVERSIONED_TICKS
    if terms.start is not None and terms.start < earliest:
        raise MalformedSasError("a SAS without sv and si is valid for an hour at most")
    return terms if terms.start is not None else replace(terms, start=earliest)


def check_resource(kind: str, version: str, container: str, blob: str, time: str) -> None:
    """Check which resource a token is for, as far as the request addresses it.

    Raises:
        MalformedSasError: the version has no such resource, or the request addresses none of that kind.
    """
    since = KINDS.get(kind)
    if since is None or version < since:
        raise MalformedSasError(f"sr must be one of {', '.join(KINDS)}, in a version that has it")
    if not container or bool(blob) != (kind != "c") or bool(time) != (kind in SNAPSHOT_KINDS):
        raise MalformedSasError("the request addresses no resource of the kind that sr says")


def parse_blob_sas(parameters: Mapping[str, str]) -> BlobSas:
    """Read a token from the fields of a request.

    Raises:
        MalformedSasError: a value would make the string-to-sign ambiguous, or cannot be in a response.
    """
    values = read_values(parameters, {**_NAMES, **_RESOURCE})
    return BlobSas(**({"version": "", "kind": ""} | values), overrides=read_overrides(parameters))


def sign_blob_sas(account: Account, sas: BlobSas, key: int = 1) -> str:
    """Return the query string of a signed token, without the parameter that names a snapshot or version.

    Arguments and errors are those of `sign_service_sas`.
    """
    if sas.version < ENCRYPTION_SCOPE_SINCE and sas.encryption_scope:
        raise MalformedSasError(f"ses needs sv {ENCRYPTION_SCOPE_SINCE} or later")
    if sas.version < SAS_TRANSPORT_SINCE and any(sas.overrides):
        raise MalformedSasError(f"fields of the response need sv {SAS_TRANSPORT_SINCE} or later")
    values = {name: getattr(sas, attribute) for name, attribute in _NAMES.items()}
    values |= dict(zip(OVERRIDES, sas.overrides, strict=True))
    resource = {name: getattr(sas, attribute) for name, attribute in _RESOURCE.items()}
    return sign_service_sas(account, key, sas, values, parse_blob_sas, **resource)
