"""The signing keys of an OpenID Connect issuer, fetched over HTTPS."""
