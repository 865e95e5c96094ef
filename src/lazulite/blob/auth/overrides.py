"""Fields of a response to GET or HEAD that a SAS replaces.

Source: "Create a service SAS" of the REST reference.
"""

from collections.abc import Mapping

from lazulite.auth.sas.terms import MalformedSasError

OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}
"""Query parameter -> field of the response, in the order in which they are signed."""

Overrides = tuple[str, str, str, str, str]
"""The values of `OVERRIDES`; "" is absent."""
NO_OVERRIDES: Overrides = ("", "", "", "", "")


def read_overrides(parameters: Mapping[str, str]) -> Overrides:
    """Return the values in the query parameters of a token.

    Raises:
        MalformedSasError: a value has control characters, which no field can have.
    """
    cache, disposition, encoding, language, media = (parameters.get(name, "") for name in OVERRIDES)
    values = (cache, disposition, encoding, language, media)
    if any(character < " " or character == "\x7f" for value in values for character in value):
        raise MalformedSasError("a value for the response has a control character")
    return values


def response_fields(values: Overrides) -> tuple[tuple[str, str], ...]:
    """Return the fields of a response, their values as a head has them: bytes of UTF-8, one character each."""
    named = zip(OVERRIDES.values(), values, strict=True)
    return tuple((name, value.encode().decode("latin-1")) for name, value in named if value)
