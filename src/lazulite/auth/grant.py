"""The permissions of an authenticated request, and the demands of an operation (reference §14.4, §15)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from lazulite.protocol.errors import AuthorityError


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one operation demands of the credentials that ask for it."""

    resource_type: Literal["s", "c", "o", ""]
    """The resource type of an account SAS: service, container (a table) or object (entities); "": any of them."""
    account: tuple[str, ...] = ()
    """Permissions of an account SAS: alternatives, each a string of letters that are all needed. Empty: never by it."""
    service: tuple[str, ...] = ()
    """Permissions of a service SAS: alternatives, as in `account`. Empty: never by it."""
    actions: tuple[frozenset[str], ...] = ()
    """Actions of a role: alternatives, each a set of actions that are all needed (`either`). Empty: never by a role."""
    public: str = ""
    """The least level of public access that permits it without credentials. Empty: no level does."""
    shared_key_only: bool = False
    bearer_only: bool = False


def either(*alternatives: str) -> tuple[frozenset[str], ...]:
    """Return alternatives of actions, each given as names with blanks between."""
    return tuple(frozenset(alternative.split()) for alternative in alternatives)


class Scope(Protocol):
    """The resources that a service SAS reaches; each service has its own kind."""

    def covers(self, resource: str) -> bool:
        """Tell whether the token grants access to the resource of this name."""
        ...


class Identity(NamedTuple):
    """The bearer of a token."""

    oid: str
    """The object id of the user or application; "" if the token has not a usable form."""
    tid: str
    """The id of the tenant."""
    roles: frozenset[str]
    """The values of the claims that roles are looked for in."""
    issued: float
    """When the token was issued, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a request's credentials allow."""

    kind: Literal["shared-key", "account-sas", "service-sas", "delegation-sas", "bearer", "anonymous"]
    permissions: frozenset[str] = frozenset()
    """Letters of a SAS; without credentials, the levels of public access that the resource has."""
    resource_types: str = ""
    """The resource types of an account SAS."""
    scope: Scope | None = None
    """The resources that a service SAS grants access to, or that are public without credentials."""
    actions: frozenset[str] = frozenset()
    """What the roles of a bearer token, or of the identity that delegates its rights, permit."""
    identity: Identity | None = None
    """The identity of a bearer token."""
    response_headers: tuple[tuple[str, str], ...] = ()
    """The fields that a service SAS sets in responses to GET and HEAD, in place of the stored ones."""
    anonymous_code: str = "NoAuthenticationInformation"
    """Without credentials: the code for everything that is not public."""
    hides_rejections: bool = False
    """A token older than 2015-04-05: what it does not permit is 404 `ResourceNotFound`."""

    def rejection(self, code: str) -> AuthorityError:
        """Return the error for a lack of authority, as the token's version spells it."""
        return AuthorityError("ResourceNotFound" if self.hides_rejections else code)


SHARED_KEY_GRANT = Grant("shared-key")
"""May do everything."""


def authorize(grant: Grant, requirement: Requirement, resource: str) -> None:
    """Reject what the grant does not cover; the service checks what its scope tells beyond the resource.

    Args:
        grant: from `Authenticator.authenticate`.
        requirement: of the operation.
        resource: name of the addressed resource as its service spells it; "" for the service itself.

    Raises:
        ServiceError: 403, in the order of reference §14.6: resource type, permission, the rest.
    """
    if requirement.bearer_only and grant.kind != "bearer":
        raise AuthorityError("AuthenticationFailed")  # *Unverified*: the code.
    if grant.kind != "shared-key":
        _AUTHORIZE[grant.kind](grant, requirement, resource)


def permits(grant: Grant, requirement: Requirement, resource: str) -> bool:
    """Tell whether the grant covers a requirement; the arguments are those of `authorize`."""
    try:
        authorize(grant, requirement, resource)
    except AuthorityError:
        return False
    return True


# Unverified: the code for an operation that no SAS of the kind can do at all (ACL; table operations by table SAS).


def _by_account_sas(grant: Grant, requirement: Requirement, _: str) -> None:
    if requirement.shared_key_only or not requirement.account:
        raise grant.rejection("AuthorizationFailure")
    if requirement.resource_type not in grant.resource_types:
        raise grant.rejection("AuthorizationResourceTypeMismatch")
    if not any(map(grant.permissions.issuperset, requirement.account)):
        raise grant.rejection("AuthorizationPermissionMismatch")


def _by_service_sas(grant: Grant, requirement: Requirement, resource: str) -> None:
    if requirement.shared_key_only or not requirement.service:
        raise grant.rejection("AuthorizationFailure")
    if grant.scope is None or not grant.scope.covers(resource):
        raise AuthorityError("AuthenticationFailed")
    if not any(map(grant.permissions.issuperset, requirement.service)):
        raise grant.rejection("AuthorizationPermissionMismatch")


def _by_bearer(grant: Grant, requirement: Requirement, _: str) -> None:
    # Unverified for tables: the codes. For a lack of role the other services have AuthorizationPermissionMismatch.
    if requirement.shared_key_only:
        raise grant.rejection("AuthorizationFailure")
    if not any(map(grant.actions.issuperset, requirement.actions)):
        raise grant.rejection("AuthorizationPermissionMismatch")


def _by_delegation_sas(grant: Grant, requirement: Requirement, resource: str) -> None:
    """Reject what the token does not permit, or the roles of the identity that signed it do not."""
    _by_service_sas(grant, requirement, resource)
    _by_bearer(grant, requirement, resource)


def _by_nothing(grant: Grant, requirement: Requirement, resource: str) -> None:
    public = requirement.public in grant.permissions and grant.scope is not None and grant.scope.covers(resource)
    if not public:
        raise AuthorityError(grant.anonymous_code)


_AUTHORIZE = {
    "anonymous": _by_nothing,
    "account-sas": _by_account_sas,
    "service-sas": _by_service_sas,
    "delegation-sas": _by_delegation_sas,
    "bearer": _by_bearer,
}
