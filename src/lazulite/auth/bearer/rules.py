"""The rules by which bearer tokens are accepted, and by which their claims make roles of a service."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

DEFAULT_AUDIENCE = "https://storage.azure.com"
DEFAULT_ROLE_CLAIM = "roles"
REJECTED = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
"""The message of a 401."""


@dataclass(frozen=True, slots=True)
class Role:
    """One of Azure's built-in roles."""

    flag: str
    """The flag `--oidc-…` that takes the claim values of the role."""
    title: str
    id: str
    """The id in Azure; a claim value like the title."""
    actions: frozenset[str]
    """The actions of operations that the role permits, as `Requirement.actions` names them."""

    @property
    def values(self) -> frozenset[str]:
        """The claim values that make the role by default."""
        return frozenset({self.title, self.id})


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerConventions:
    """How one service takes bearer tokens."""

    roles: tuple[Role, ...]
    challenge_since: str
    """The first version that rejects a token, or a request without credentials, with a challenge."""
    since: str = ""
    """The first version that takes tokens; before it they are malformed."""
    rejection: str = "InvalidAuthenticationInfo"
    """The code of a 401."""
    unchallenged_rejection: str = "AuthenticationFailed"
    """The code for a bad token before `challenge_since`."""
    audience: str = ""
    """The accepted audience beside the default one, `{account}` in it being the addressed account; "" for none."""


@dataclass(frozen=True, slots=True)
class BearerRules:
    """The claims that a token needs."""

    issuer: str
    """The exact `iss`."""
    audiences: tuple[str, ...] = (DEFAULT_AUDIENCE,)
    """Any of them in `aud`, with or without a slash at the end; the first stands in challenges."""
    role_claims: tuple[str, ...] = (DEFAULT_ROLE_CLAIM,)
    """The claims, each a text or a list of texts, that roles are looked for in."""
    role_values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By `Role.flag`, the claim values that make a role in place of its default ones."""

    def actions(self, roles: Iterable[Role], values: frozenset[str]) -> frozenset[str]:
        """Return the actions that claim values permit.

        Args:
            roles: of the service.
            values: of a token's `role_claims`.
        """
        held = (role for role in roles if values & self.role_values.get(role.flag, role.values))
        return frozenset[str]().union(*(role.actions for role in held))

    def accepted_audiences(self, conventions: BearerConventions, account: str) -> frozenset[str]:
        """Return the audiences that a service accepts for an account, without a slash at the end.

        The audience of the account is accepted beside the default one only, not beside configured ones.
        """
        accepted = frozenset(map(bare, self.audiences))
        if conventions.audience and DEFAULT_AUDIENCE in accepted:
            accepted |= {conventions.audience.format(account=account)}
        return accepted


def bare(audience: str) -> str:
    """Return an audience without a slash at the end."""
    return audience.removesuffix("/")
