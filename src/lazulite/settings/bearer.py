"""How bearer tokens are accepted: the flags `--oidc-…`, made into settings."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lazulite.auth.bearer.rules import CONTRIBUTOR, DEFAULT_AUDIENCE, DEFAULT_ROLE_CLAIM, READER, BearerRules
from lazulite.server.oidc.fetch import FetchError, origin_of
from lazulite.settings.extras import require_extra


@dataclass(frozen=True, slots=True)
class BearerSettings:
    """Whose tokens are accepted, and how they are checked."""

    rules: BearerRules
    jwks: Path | None = None
    """The file with the issuer's keys; None asks the issuer."""
    allow_http: bool = False


def bearer_settings_from(args: Namespace) -> BearerSettings | None:
    """Return the settings, None without an issuer.

    Raises:
        ValueError: the flags do not go together, the issuer is no URL, or the extra `oidc` is not installed. The text
            is one line.
    """
    others = (args.oidc_jwks, args.oidc_audience, args.oidc_role_claim, args.oidc_reader, args.oidc_contributor)
    if args.oidc_issuer is None:
        if any(others) or args.allow_bearer_over_http:
            raise ValueError("the other flags of bearer tokens need --oidc-issuer")
        return None
    require_extra("oidc", "--oidc-issuer")
    _check_issuer(args.oidc_issuer)
    if not all(map(_is_spelled_well, args.oidc_audience)):
        raise ValueError("--oidc-audience takes visible ASCII without blanks, quotes and commas")
    rules = BearerRules(
        args.oidc_issuer,
        tuple(args.oidc_audience) or (DEFAULT_AUDIENCE,),
        tuple(args.oidc_role_claim) or (DEFAULT_ROLE_CLAIM,),
        frozenset(args.oidc_reader) or READER,
        frozenset(args.oidc_contributor) or CONTRIBUTOR,
    )
    return BearerSettings(rules, args.oidc_jwks, args.allow_bearer_over_http)


def _check_issuer(issuer: str) -> None:
    try:
        origin_of(issuer)
    except FetchError as error:
        raise ValueError(f"--oidc-issuer: {error}") from None
    # It stands in a header that SDKs take apart at blanks, commas and equals signs.
    if not _is_spelled_well(issuer) or "=" in issuer or urlsplit(issuer).query:
        raise ValueError("--oidc-issuer takes a URL without query, quotes and commas")


def _is_spelled_well(text: str) -> bool:
    return text.isascii() and text.isprintable() and not set(text) & set(' ",') and bool(text)
