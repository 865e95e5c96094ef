"""CORS: which headers let a browser page of another origin see an answer.

Invariants: the rules are tried in order and the first whose origins and methods match decides; when its headers then
do not, the request fails, and no later rule is looked at. Origins and methods match exactly, header names whatever
their case. The method is that of the request line, as a browser knows nothing of `X-HTTP-Method`.

Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage", its evaluation rules and its table of headers.
"""

import re
from collections.abc import Iterable, Sequence

from lazulite.protocol.errors import ServiceError
from lazulite.service.properties import CorsRule

Headers = list[tuple[str, str]]
"""Response headers in wire order."""

_SUBDOMAIN = re.compile(r"[0-9A-Za-z_.-]+")


def preflight(
    rules: Sequence[CorsRule], origin: str | None, method: str | None, requested_headers: str | None
) -> Headers:
    """Answer an OPTIONS request.

    Args:
        rules: the service's rules, in order.
        origin: the `Origin` header.
        method: the `Access-Control-Request-Method` header.
        requested_headers: the `Access-Control-Request-Headers` header, names parted by commas.

    Raises:
        ServiceError: `InvalidHeaderValue`, a header is missing; `CorsPreflightFailure`, no rule allows the request.
    """
    if not origin or not method:
        raise ServiceError("InvalidHeaderValue", "A required CORS header is not present.")
    rule = _choose(rules, origin, method)
    wanted = [name.strip() for name in (requested_headers or "").split(",") if name.strip()]
    if rule is None or not all(_covers(rule.allowed_headers, name) for name in wanted):
        raise ServiceError("CorsPreflightFailure")
    headers = _allow_origin(rule, origin)
    headers.append(("Access-Control-Allow-Methods", method))
    if wanted and requested_headers:
        headers.append(("Access-Control-Allow-Headers", requested_headers))
    headers.append(("Access-Control-Max-Age", str(rule.max_age)))
    return headers


def response_headers(
    rules: Sequence[CorsRule], origin: str | None, method: str, present: Iterable[str] = ()
) -> Headers:
    """Return what an actual request's answer must say, be it a success or an error.

    Args:
        rules: the service's rules, in order.
        origin: the `Origin` header, None if there was none.
        method: the request's method.
        present: names of the answer's other headers; `x-ms-*` among a rule's exposed headers stands for those of
            them that match, as a browser takes no prefix there.
    """
    cacheable = method in ("GET", "HEAD")
    if not rules or (origin is None and not cacheable):
        return []
    rule = _choose(rules, origin, method)
    headers = [] if rule is None else _allow_origin(rule, origin) + _expose(rule, present)
    if cacheable and (rule is None or "*" not in rule.allowed_origins):
        headers.append(("Vary", "Origin"))
    return headers


def _choose(rules: Iterable[CorsRule], origin: str | None, method: str) -> CorsRule | None:
    for rule in rules:
        if method in rule.allowed_methods and any(_allows(pattern, origin) for pattern in rule.allowed_origins):
            return rule
    return None


def _allows(pattern: str, origin: str | None) -> bool:
    """Say whether a rule's origin (`*`, `https://*.contoso.com` or `https://contoso.com`) covers the request's."""
    if pattern == "*" or origin is None:
        return pattern == "*"
    scheme, wildcard, domain = pattern.partition("://*.")
    if not wildcard:
        return pattern == origin
    before, after = f"{scheme}://", f".{domain}"
    if not (origin.startswith(before) and origin.endswith(after)):
        return False
    return _SUBDOMAIN.fullmatch(origin[len(before) : -len(after)]) is not None


def _covers(patterns: Iterable[str], name: str) -> bool:
    name = name.lower()
    return any(
        name.startswith(pattern[:-1].lower()) if pattern.endswith("*") else name == pattern.lower()
        for pattern in patterns
    )


def _allow_origin(rule: CorsRule, origin: str | None) -> Headers:
    if origin is None or "*" in rule.allowed_origins:
        return [("Access-Control-Allow-Origin", "*")]
    return [("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Credentials", "true")]


def _expose(rule: CorsRule, present: Iterable[str]) -> Headers:
    names = [name for name in rule.exposed_headers if not name.endswith("*")]
    prefixes = [name for name in rule.exposed_headers if name.endswith("*")]
    literal = {name.lower() for name in names}
    names += [name for name in present if name.lower() not in literal and _covers(prefixes, name)]
    return [("Access-Control-Expose-Headers", ",".join(names))] if names else []
