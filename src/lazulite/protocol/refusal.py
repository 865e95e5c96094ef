"""Why the credentials of a request were refused, as its record carries it to the recorded requests.

It is made by `lazulite.auth.explain` while requests are recorded. It holds no key and no signature.
"""

from typing import NamedTuple


class RefusedField(NamedTuple):
    """One parameter of a SAS."""

    name: str
    value: str
    """As it came, decoded; `…` for the signature."""
    meaning: str
    failed: str = ""
    """Why the request was refused for it; "" if it is not the reason."""


class Refusal(NamedTuple):
    """What is known about refused credentials."""

    credentials: str
    """Their kind, such as `Shared Key` or `account SAS`."""
    reason: str
    """A sentence for people."""
    mistake: str = ""
    """The name of the usual mistake that yields the client's signature; "" if none does, or none was looked for."""
    string_to_sign: str = ""
    """What the server signed, without secrets; "" if it did not get so far."""
    tries: int = 0
    """How many usual mistakes were tried."""
    fields: tuple[RefusedField, ...] = ()
    """The parameters of a SAS."""
