"""The fields of a request that a user delegation SAS signs: `srh` for headers, `srq` for query parameters.

A token has the names only; the values come from the request. So it is valid for requests with these values alone.

Source: the strings that the Python SDK signs.
"""

from collections.abc import Mapping

from lazulite.auth.sas.terms import MalformedSasError

_NAMES_MAX = 64


def signed_headers(names: str, headers: Mapping[str, str]) -> str:
    """Return the text of the headers in the string-to-sign; "" for no names.

    Raises:
        MalformedSasError: the request lacks one, or the names could be re-cut.
    """
    lines = _lines(names, headers)
    return "".join(f"{line}\n" for line in lines)


def signed_parameters(names: str, parameters: Mapping[str, str]) -> str:
    """Return the text of the query parameters in the string-to-sign; "" for no names. Raises as `signed_headers`."""
    lines = _lines(names, parameters)
    return "".join(f"\n{line}" for line in lines)


def _lines(names: str, values: Mapping[str, str]) -> list[str]:
    listed = names.split(",", _NAMES_MAX) if names else []
    if len(listed) > _NAMES_MAX or len({name.lower() for name in listed}) < len(listed):
        raise MalformedSasError("srh and srq have a few names, each once")
    return [f"{name}:{_value(name, values)}" for name in listed]


def _value(name: str, values: Mapping[str, str]) -> str:
    """Return the value of a field. With a colon in a name, the name could be cut at another colon."""
    value = values.get(name.lower())
    if value is None or not name or ":" in name or "\n" in name or "\n" in value:
        raise MalformedSasError("the request lacks a signed field, or the field could be re-cut")
    return value
