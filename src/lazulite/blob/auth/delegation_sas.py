"""The user delegation SAS of blobs.

Two versions with different strings-to-sign differ in the number of lines. No value holds a line feed, except signed
request fields. So a token of one version is never valid as a token of another.

A token can sign fields of the request: `srh` names headers, `srq` query parameters. Their values come from the request.
So it is valid for requests with these values alone.

Source: "Create a user delegation SAS" of the REST reference; the strings that the Python SDK signs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lazulite.auth.delegation.sas import DelegationSas, read_delegation_values
from lazulite.auth.grant import Grant
from lazulite.auth.sas import MalformedSasError, Terms, read_values
from lazulite.blob.auth.sas import (
    BLOB,
    CONTAINER,
    SNAPSHOT_KINDS,
    SNAPSHOT_PERMISSIONS,
    TIME,
    BlobScope,
    Overrides,
    check_resource,
    read_overrides,
    response_fields,
)
from lazulite.blob.versions import (
    DELEGATION_SINCE,
    OBJECT_IDS_SIGNED_SINCE,
    REQUEST_SIGNED_SINCE,
    USER_SIGNED_SINCE,
)
from lazulite.protocol.version import ENCRYPTION_SCOPE_SINCE

_NAMES = {
    "sr": "kind",
    "saoid": "authorized_oid",
    "suoid": "unauthorized_oid",
    "scid": "correlation_id",
    "ses": "encryption_scope",
    CONTAINER: "container",
    BLOB: "blob",
    TIME: "time",
}
_SIGNED_FIELDS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobDelegationSas(DelegationSas):
    """Hold the values of a user delegation SAS of blobs."""

    kind: str = ""
    """`sr`"""
    container: str = ""
    blob: str = ""
    time: str = ""
    authorized_oid: str = ""
    """The id of a user that the token is for, which the delegating user has checked."""
    unauthorized_oid: str = ""
    """The id of a user whose access lists are to be checked; accounts without a hierarchy have no such lists."""
    correlation_id: str = ""
    encryption_scope: str = ""
    headers: str = ""
    """The signed headers of the request, as the string-to-sign has them."""
    parameters: str = ""
    """The signed query parameters, likewise."""
    overrides: Overrides

    @property
    def since(self) -> str:
        """Return the first version that has such tokens."""
        return DELEGATION_SINCE

    def scope(self) -> BlobScope:
        """Return the blobs that the token grants access to."""
        return BlobScope(self.container, self.blob, self.kind == "d")

    def grant(self, actions: frozenset[str]) -> Grant:
        """See `DelegationSas`."""
        grant = DelegationSas.grant(self, actions)
        permissions = grant.permissions & SNAPSHOT_PERMISSIONS if self.kind in SNAPSHOT_KINDS else grant.permissions
        return replace(grant, permissions=permissions, response_headers=response_fields(self.overrides))

    def terms(self) -> Terms:
        """See `DelegationSas`. A token is rejected if its version does not sign one of its restrictions."""
        check_resource(self.kind, self.version, self.container, self.blob, self.time)
        if self.unauthorized_oid:
            raise MalformedSasError("there are no access lists to check suoid with")
        if self.user_oid and self.version < USER_SIGNED_SINCE:
            raise MalformedSasError("the version does not sign sduoid")
        return DelegationSas.terms(self)

    def strings_to_sign(self, account: str) -> list[str]:
        """Return the strings that the key may have signed, given the account's name.

        A version without the lines of the request has no string for a token that names such fields. *Unverified*: which
        version is the first with them. So tokens without such fields may lack the lines.
        """
        key, version = self.key, self.version
        resource = "/".join(filter(None, ("/blob", account, self.container, self.blob)))
        lines = [self.permission, self.start, self.expiry, resource]
        lines += [key.oid, key.tid, key.start, key.expiry, key.service, key.version]
        if version >= OBJECT_IDS_SIGNED_SINCE:
            lines += [self.authorized_oid, self.unauthorized_oid, self.correlation_id]
        if version >= USER_SIGNED_SINCE:
            lines += [key.delegated_tid, self.user_oid]
        lines += [self.ip, self.protocol, version, self.kind, self.time]
        if version >= ENCRYPTION_SCOPE_SINCE:
            lines.append(self.encryption_scope)
        found = [[*lines, self.headers, self.parameters]] if version >= REQUEST_SIGNED_SINCE else []
        if not (self.headers or self.parameters):
            found.append(lines)
        return ["\n".join((*each, *self.overrides)) for each in found]


def parse_blob_delegation_sas(parameters: Mapping[str, str], headers: Mapping[str, str]) -> BlobDelegationSas:
    """Read a user delegation SAS: a `ParseDelegationSas`.

    Raises:
        MalformedSasError: a value would make the string-to-sign ambiguous or cannot be in a response, or the request
            lacks a signed field.
    """
    key, values = read_delegation_values(parameters)
    return BlobDelegationSas(
        key=key,
        **(values | read_values(parameters, _NAMES)),
        headers=signed_headers(parameters.get("srh", ""), headers),
        parameters=signed_parameters(parameters.get("srq", ""), parameters),
        overrides=read_overrides(parameters),
    )


def signed_headers(names: str, headers: Mapping[str, str]) -> str:
    """Return the text of the headers in the string-to-sign; "" for no names.

    Raises:
        MalformedSasError: the request lacks one, or a name would make the string-to-sign ambiguous.
    """
    lines = _lines(names, headers)
    return "".join(f"{line}\n" for line in lines)


def signed_parameters(names: str, parameters: Mapping[str, str]) -> str:
    """Return the text of the query parameters in the string-to-sign; "" for no names. Raises as `signed_headers`."""
    lines = _lines(names, parameters)
    return "".join(f"\n{line}" for line in lines)


def _lines(names: str, values: Mapping[str, str]) -> list[str]:
    listed = names.split(",", _SIGNED_FIELDS_MAX) if names else []
    if len(listed) > _SIGNED_FIELDS_MAX or len({name.lower() for name in listed}) < len(listed):
        raise MalformedSasError("srh and srq have a few names, each once")
    return [f"{name}:{_value(name, values)}" for name in listed]


def _value(name: str, values: Mapping[str, str]) -> str:
    """Return the value of a field. A name with a colon is rejected: `name:value` would be ambiguous."""
    value = values.get(name.lower())
    if value is None or not name or ":" in name or "\n" in name or "\n" in value:
        raise MalformedSasError("the request lacks a signed field, or the field could be re-cut")
    return value
