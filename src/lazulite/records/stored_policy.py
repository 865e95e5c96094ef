"""A stored access policy: terms of a shared access signature that live on a resource and can be withdrawn there."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredAccessPolicy:
    """One signed identifier of an ACL. A token that names the policy must state what is None here."""

    id: str
    """The name that a signature refers to by `si`, at most 64 characters."""
    start: int | None = None
    """Not valid before this instant, in ticks."""
    expiry: int | None = None
    """The last instant at which it is valid, in ticks."""
    permission: str | None = None
    """Permission letters of the service, such as `raud`."""
