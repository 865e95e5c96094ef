"""What an authenticated request may do, and what an operation demands (reference §14.4, §15)."""

from dataclasses import dataclass
from typing import Literal, Protocol

from lazulite.protocol.errors import AuthorityError


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one operation demands of the credentials that ask for it."""

    resource_type: Literal["s", "c", "o"]
    """Of an account SAS: service, container (a table as a whole) or object (entities)."""
    account: tuple[str, ...] = ()
    """Of an account SAS: alternatives, each a string of letters that are all needed. Empty: never by account SAS."""
    service: str | None = None
    """Of a service SAS: letters that are all needed. None: never by service SAS."""
    shared_key_only: bool = False


class Scope(Protocol):
    """The resources that a service SAS reaches; each service has its own kind."""

    def covers(self, resource: str) -> bool:
        """Tell whether the resource of this name is within reach."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """What a request's credentials allow."""

    kind: Literal["shared-key", "account-sas", "service-sas", "bearer"]
    permissions: frozenset[str] = frozenset()
    """Letters, as an account SAS has them; of a SAS or a bearer token."""
    resource_types: str = ""
    """Of an account SAS or a bearer token."""
    scope: Scope | None = None
    """Of a service SAS: the resources within reach."""
    hides_refusals: bool = False
    """A token older than 2015-04-05: what it does not permit is 404 `ResourceNotFound`."""

    def refusal(self, code: str) -> AuthorityError:
        """Return the error for a lack of authority, as the token's version spells it."""
        return AuthorityError("ResourceNotFound" if self.hides_refusals else code)


SHARED_KEY_GRANT = Grant("shared-key")
"""May do everything."""


def authorize(grant: Grant, requirement: Requirement, resource: str) -> None:
    """Refuse what the grant does not cover; the service checks what its scope tells beyond the resource.

    Args:
        grant: from `Authenticator.authenticate`.
        requirement: of the operation.
        resource: name of the addressed resource as its service spells it; "" for the service itself.

    Raises:
        ServiceError: 403, in the order of reference §14.6: resource type, permission, the rest.
    """
    if grant.kind != "shared-key":
        _AUTHORIZE[grant.kind](grant, requirement, resource)


# Unverified: the code for an operation that no SAS of the kind can do at all (ACL; table operations by table SAS).


def _by_account_sas(grant: Grant, requirement: Requirement, _: str) -> None:
    if requirement.shared_key_only or not requirement.account:
        raise grant.refusal("AuthorizationFailure")
    if requirement.resource_type not in grant.resource_types:
        raise grant.refusal("AuthorizationResourceTypeMismatch")
    if not any(map(grant.permissions.issuperset, requirement.account)):
        raise grant.refusal("AuthorizationPermissionMismatch")


def _by_service_sas(grant: Grant, requirement: Requirement, resource: str) -> None:
    if requirement.shared_key_only or requirement.service is None:
        raise grant.refusal("AuthorizationFailure")
    if grant.scope is None or not grant.scope.covers(resource):
        raise AuthorityError("AuthenticationFailed")
    if not grant.permissions.issuperset(requirement.service):
        raise grant.refusal("AuthorizationPermissionMismatch")


def _by_bearer(grant: Grant, requirement: Requirement, _: str) -> None:
    # Unverified: the codes. For a lack of role the other storage services have AuthorizationPermissionMismatch.
    if requirement.shared_key_only:
        raise grant.refusal("AuthorizationFailure")
    in_reach = requirement.resource_type in grant.resource_types
    if not in_reach or not any(map(grant.permissions.issuperset, requirement.account)):
        raise grant.refusal("AuthorizationPermissionMismatch")


_AUTHORIZE = {"account-sas": _by_account_sas, "service-sas": _by_service_sas, "bearer": _by_bearer}
