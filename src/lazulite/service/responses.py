"""Headers of responses that all services share. Source: reference §3."""

NO_CACHE = ("Cache-Control", "no-cache")
NO_SNIFF = ("X-Content-Type-Options", "nosniff")
XML_TYPE = ("Content-Type", "application/xml")
