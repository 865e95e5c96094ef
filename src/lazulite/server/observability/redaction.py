"""What is shown of heads: the values of known parameters and fields that hold no secret.

Only the parameters and fields that are named here are shown with their values, so a field that a client or a later
version adds stays out. What is shown of a URL has no query.
"""

import re

from lazulite.protocol.secret_headers import SOURCE_HEADER

SIGNATURE = re.compile(
    r"((?:s|%(?:25)*[57]3)(?:i|%(?:25)*[46]9)(?:g|%(?:25)*[46]7)(?:\s|\+|%(?:25)*20)*(?:=|%(?:25)*3d))[^&]*",
    re.IGNORECASE,
)
"""`sig=` in any spelling that any number of percent-decodings leads to, wherever it is: query, Location, Referer."""

_CREDENTIALS = re.compile(r"(SharedKey(?:Lite)?\s+|Bearer\s+)\S.*", re.IGNORECASE)

_PARAMETERS = frozenset(
    (
        *("comp", "restype", "timeout", "api-version", "prefix", "marker", "maxresults", "delimiter", "include"),
        *("startfrom", "endbefore", "snapshot", "prevsnapshot", "versionid", "blockid", "blocklisttype", "deletetype"),
        *("copyid", "showonly", "where", "numofmessages", "peekonly", "visibilitytimeout", "messagettl"),
        *("$filter", "$top", "$select", "$format", "nextpartitionkey", "nextrowkey", "nexttablename"),
        *("sv", "sr", "sp", "st", "se", "spr", "sip", "si", "ss", "srt", "ses", "sdd", "tn", "spk", "srk", "epk"),
        *("erk", "skt", "ske", "sks", "skv", "rscc", "rscd", "rsce", "rscl", "rsct"),
    )
)
"""The query parameters whose values are written: addresses of data, and the terms of a SAS."""

_NAMED = frozenset(("sig", "popreceipt", "skoid", "sktid", "skdutid", "sduoid", "saoid", "suoid", "scid", "srh", "srq"))
"""Those of which only the name is written. Of all others, not even the name is: it may be a misplaced secret."""

_FIELDS = frozenset(
    (
        *("host", "user-agent", "accept", "accept-charset", "accept-encoding", "accept-language", "connection"),
        *("keep-alive", "date", "expect", "origin", "range", "server", "transfer-encoding", "vary", "allow", "prefer"),
        *("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "cache-control", "etag"),
        *("content-type", "content-length", "content-encoding", "content-language", "content-disposition"),
        *("content-md5", "content-range", "accept-ranges", "last-modified", "preference-applied", "x-http-method"),
        *("dataserviceversion", "maxdataserviceversion", "x-content-type-options", "www-authenticate", "retry-after"),
        *("server-timing", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "traceparent"),
        *("access-control-request-method", "access-control-request-headers", "access-control-allow-origin"),
        *("access-control-allow-methods", "access-control-allow-headers", "access-control-allow-credentials"),
        *("access-control-expose-headers", "access-control-max-age"),
        *("x-ms-date", "x-ms-version", "x-ms-client-request-id", "x-ms-request-id", "x-ms-return-client-request-id"),
        *("x-ms-error-code", "x-ms-range", "x-ms-access-tier", "x-ms-access-tier-change-time"),
        *("x-ms-access-tier-inferred", "x-ms-account-kind", "x-ms-sku-name", "x-ms-is-hns-enabled"),
        *(
            "x-ms-approximate-messages-count",
            "x-ms-time-next-visible",
            "x-ms-archive-status",
            "x-ms-blob-append-offset",
        ),
        *("x-ms-blob-cache-control", "x-ms-blob-committed-block-count", "x-ms-blob-condition-appendpos"),
        *("x-ms-blob-condition-maxsize", "x-ms-blob-content-disposition", "x-ms-blob-content-encoding"),
        *("x-ms-blob-content-language", "x-ms-blob-content-length", "x-ms-blob-content-md5", "x-ms-blob-content-type"),
        *("x-ms-blob-public-access", "x-ms-blob-sealed", "x-ms-blob-sequence-number", "x-ms-blob-type"),
        *("x-ms-content-crc64", "x-ms-copy-action", "x-ms-copy-completion-time", "x-ms-copy-id", "x-ms-copy-progress"),
        *("x-ms-copy-source-blob-properties", "x-ms-copy-source-error-code", "x-ms-copy-source-status-code"),
        *("x-ms-copy-source-tag-option", "x-ms-copy-status", "x-ms-copy-status-description", "x-ms-creation-time"),
        *("x-ms-delete-snapshots", "x-ms-delete-type-permanent", "x-ms-encryption-algorithm", "x-ms-encryption-scope"),
        *("x-ms-has-immutability-policy", "x-ms-has-legal-hold", "x-ms-if-sequence-number-eq"),
        *("x-ms-if-sequence-number-le", "x-ms-if-sequence-number-lt", "x-ms-is-current-version", "x-ms-lease-action"),
        *("x-ms-lease-break-period", "x-ms-lease-duration", "x-ms-lease-state", "x-ms-lease-status"),
        *("x-ms-lease-time", "x-ms-page-write", "x-ms-range-get-content-crc64", "x-ms-range-get-content-md5"),
        *("x-ms-rehydrate-priority", "x-ms-request-server-encrypted", "x-ms-requires-sync", "x-ms-seal-blob"),
        *("x-ms-sequence-number-action", "x-ms-server-encrypted", "x-ms-snapshot", "x-ms-source-content-crc64"),
        *("x-ms-source-content-md5", "x-ms-source-if-match", "x-ms-source-if-none-match"),
        *("x-ms-source-if-modified-since", "x-ms-source-if-unmodified-since", "x-ms-source-range"),
        *("x-ms-structured-body", "x-ms-structured-content-length", "x-ms-tag-count", "x-ms-version-id"),
        *("x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey", "x-ms-continuation-nexttablename"),
    )
)
"""The fields whose values are written. Keys, tokens, metadata, tags, ids of leases and receipts are not among them."""

_URLS = frozenset({SOURCE_HEADER, "location", "referer", "dataserviceid"})
"""The fields of which a URL is written, without credentials before its host, its query and its fragment."""

_USER = re.compile(r"//[^/@]*@")

_REDACTED = "REDACTED"

CONTROLS = {code: f"\\x{code:02x}" for code in [*range(32), 127, *range(128, 160), 0x2028, 0x2029]}
"""Characters that would break a line, or steer a terminal -> how they are shown."""


def redact(text: str) -> str:
    """Return the text without the signatures in it."""
    return _CREDENTIALS.sub(r"\1" + _REDACTED, SIGNATURE.sub(r"\1" + _REDACTED, text))


def shown_query(query: str) -> str:
    """Return a query string with its question mark, its secrets redacted; "" for none."""
    return "?" + "&".join(map(_parameter, query.split("&"))) if query else ""


def _parameter(pair: str) -> str:
    name = pair.partition("=")[0].lower()
    if name in _PARAMETERS:
        return redact(pair)
    return f"{name}={_REDACTED}" if name in _NAMED else _REDACTED


def shown_field(name: str, text: str) -> str:
    """Return the value of a field, whose name is in lower case, as far as it is shown."""
    if name in _FIELDS:
        return redact(text)
    return redact(_url(text)) if name in _URLS else _REDACTED


def _url(text: str) -> str:
    """Return a URL as far as it names a place."""
    place = text.partition("#")[0]
    place, asked, _ = place.partition("?")
    return _USER.sub(f"//{_REDACTED}@", place) + (f"?{_REDACTED}" if asked else "")
