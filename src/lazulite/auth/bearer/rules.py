"""What a bearer token must say to be accepted, and which of its claims make which role."""

from dataclasses import dataclass

DEFAULT_AUDIENCE = "https://storage.azure.com"
DEFAULT_ROLE_CLAIM = "roles"
READER = frozenset({"Storage Table Data Reader", "76199698-9eea-4c19-bc75-cec21354c6b6"})
CONTRIBUTOR = frozenset({"Storage Table Data Contributor", "0a9a7e1f-b9d0-4cc4-a60e-0319b160aaa3"})
"""Name and id of Azure's built-in roles."""
REFUSED = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
"""The message of a 401."""


@dataclass(frozen=True, slots=True)
class BearerRules:
    """What a token must say."""

    issuer: str
    """The exact `iss`."""
    audiences: tuple[str, ...] = (DEFAULT_AUDIENCE,)
    """Any of them in `aud`, with or without a slash at the end; the first stands in challenges."""
    role_claims: tuple[str, ...] = (DEFAULT_ROLE_CLAIM,)
    """The claims, each a text or a list of texts, that roles are looked for in."""
    readers: frozenset[str] = READER
    """Values of those claims that make a Storage Table Data Reader."""
    contributors: frozenset[str] = CONTRIBUTOR
    """Values that make a Storage Table Data Contributor."""
