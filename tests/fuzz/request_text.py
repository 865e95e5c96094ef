"""A request as an input spells it: `METHOD target`, header lines, and a body behind an empty line."""

import re
from typing import NamedTuple

_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")
_UNFIT_IN_TARGET = re.compile(r"[\x00-\x20\x7f]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_LINES_MAX = 100


class RequestText(NamedTuple):
    """A request that a connection could have brought."""

    method: str
    path: str
    query: str
    fields: dict[str, str]
    body: bytes


def read_request(data: bytes) -> RequestText:
    """Read an input, whatever it is."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")[:_LINES_MAX]
    method, _, target = first.partition(" ")
    path, _, query = fit_in_target(target).partition("?")
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if _TOKEN.fullmatch(name):
            fields[name.lower()] = _CONTROLS.sub("", value).strip(" \t")
    return RequestText(method if method in _METHODS else "GET", path, query, fields, body)


def fit_in_target(text: str) -> str:
    """Return a text without what no target has."""
    return _UNFIT_IN_TARGET.sub("_", text)
