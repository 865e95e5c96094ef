"""The headers of requests that authorize a request, or hold a key: no log, rule or page has their values."""

SOURCE_HEADER = "x-ms-copy-source"
"""A URL, which may have a SAS in its query."""

CREDENTIAL_HEADERS = frozenset(
    {
        "authorization",
        "cookie",
        "proxy-authorization",
        "x-ms-copy-source-authorization",
        "x-ms-encryption-key",
        "x-ms-source-encryption-key",
    }
)
"""The headers whose whole value is secret, in lower case."""

SECRET_HEADERS = CREDENTIAL_HEADERS | {SOURCE_HEADER}
"""The headers whose value has a secret, in lower case."""
