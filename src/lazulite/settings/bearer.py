"""Parse the flags `--oidc-…` into the settings of bearer tokens."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lazulite.auth.bearer.rules import DEFAULT_AUDIENCE, DEFAULT_ROLE_CLAIM, BearerRules
from lazulite.blob.auth.requirements import BLOB_ROLES
from lazulite.queue.roles import QUEUE_ROLES
from lazulite.server.oidc.fetch import FetchError, origin_of
from lazulite.settings.extras import require_extra
from lazulite.table.roles import TABLE_ROLES

ROLES = (*TABLE_ROLES, *QUEUE_ROLES, *BLOB_ROLES)
"""The roles of all services."""


@dataclass(frozen=True, slots=True)
class BearerSettings:
    """The accepted issuer and the rules for its tokens."""

    rules: BearerRules
    jwks: Path | None = None
    """The file with the issuer's keys; None: fetched from the issuer."""
    allow_http: bool = False


def bearer_settings_from(args: Namespace) -> BearerSettings | None:
    """Return the settings; None without an issuer.

    Raises:
        ValueError: the flags are incompatible, the issuer is not a URL, or the extra `oidc` is not installed. The text
            is one line.
    """
    given = vars(args)
    role_values = {role.flag: frozenset(given["oidc_" + role.flag.replace("-", "_")]) for role in ROLES}
    others = (args.oidc_jwks, args.oidc_audience, args.oidc_role_claim, *role_values.values())
    if args.oidc_issuer is None:
        if any(others) or args.allow_bearer_over_http:
            raise ValueError("the other flags of bearer tokens need --oidc-issuer")
        return None
    require_extra("oidc", "--oidc-issuer")
    _check_issuer(args.oidc_issuer)
    if not all(map(_is_header_safe, args.oidc_audience)):
        raise ValueError("--oidc-audience takes visible ASCII without blanks, quotes and commas")
    rules = BearerRules(
        args.oidc_issuer,
        tuple(args.oidc_audience) or (DEFAULT_AUDIENCE,),
        tuple(args.oidc_role_claim) or (DEFAULT_ROLE_CLAIM,),
        {flag: values for flag, values in role_values.items() if values},
    )
    return BearerSettings(rules, args.oidc_jwks, args.allow_bearer_over_http)


def _check_issuer(issuer: str) -> None:
    try:
        origin_of(issuer)
    except FetchError as error:
        raise ValueError(f"--oidc-issuer: {error}") from None
    # The issuer is sent in a header that SDKs split at blanks, commas and equals signs.
    if not _is_header_safe(issuer) or "=" in issuer or urlsplit(issuer).query:
        raise ValueError("--oidc-issuer takes a URL without query, quotes and commas")


def _is_header_safe(text: str) -> bool:
    return text.isascii() and text.isprintable() and not set(text) & set(' ",') and bool(text)
