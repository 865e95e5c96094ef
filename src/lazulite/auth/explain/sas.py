"""What each field of a SAS means, which of them a request was refused for, and the usual mistakes in its signature."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from lazulite.auth.explain.tries import Mistake
from lazulite.auth.sas import format_sas_date, parse_sas_date
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.refusal import RefusedField

MEANINGS: Mapping[str, str] = {
    "sv": "version of the signed form",
    "ss": "services",
    "srt": "types of resources",
    "sr": "resource",
    "tn": "table",
    "sdd": "depth of the directory",
    "sp": "permissions",
    "st": "valid from",
    "se": "valid until",
    "si": "stored access policy",
    "sip": "addresses of clients",
    "spr": "protocols",
    "ses": "encryption scope",
    "spk": "first PartitionKey",
    "srk": "first RowKey",
    "epk": "last PartitionKey",
    "erk": "last RowKey",
    "skoid": "object id of the user",
    "sktid": "tenant of the user",
    "skt": "user delegation key valid from",
    "ske": "user delegation key valid until",
    "sks": "service of the user delegation key",
    "skv": "version of the user delegation key",
    "saoid": "object id of an authorized user",
    "suoid": "object id of an unauthorized user",
    "scid": "correlation id",
    "skdutid": "tenant of the delegated user",
    "sduoid": "object id of the delegated user",
    "rscc": "Cache-Control of responses",
    "rscd": "Content-Disposition of responses",
    "rsce": "Content-Encoding of responses",
    "rscl": "Content-Language of responses",
    "rsct": "Content-Type of responses",
    "sig": "signature",
}
"""Parameter -> what it is, in the order in which it is shown."""

_LETTERS: Mapping[str, Mapping[str, str]] = {
    "sp": {
        "r": "read",
        "a": "add",
        "c": "create",
        "w": "write",
        "u": "update",
        "d": "delete",
        "x": "delete versions",
        "y": "delete permanently",
        "l": "list",
        "t": "tags",
        "f": "find by tags",
        "m": "move",
        "e": "execute",
        "o": "ownership",
        "p": "process",
        "i": "immutability",
    },
    "ss": {"b": "blobs", "q": "queues", "t": "tables", "f": "files"},
    "srt": {"s": "service", "c": "containers (tables, queues)", "o": "objects (entities, messages, blobs)"},
}
"""Parameter -> letter -> what it stands for."""
_KINDS = {"b": "a blob", "c": "a container", "bs": "a snapshot", "bv": "a version", "d": "a directory"}
_TIMES = frozenset({"st", "se", "skt", "ske"})

CODES: Mapping[str, tuple[str, str]] = {
    "AuthorizationPermissionMismatch": ("sp", "the operation needs another permission"),
    "AuthorizationResourceTypeMismatch": ("srt", "the operation is on another type of resource"),
    "AuthorizationServiceMismatch": ("ss", "it does not name this service"),
    "AuthorizationProtocolMismatch": ("spr", "the request came by http"),
    "AuthorizationSourceIPMismatch": ("sip", "the request came from another address"),
}
"""The code of a rejection -> the field that it is for, and why."""


def meaning(name: str, value: str, now: int) -> str:
    """Return what a field means, with its value in words.

    Args:
        name: of the parameter.
        value: decoded.
        now: the time, in ticks.
    """
    words = ""
    if name in _LETTERS:
        words = ", ".join(_LETTERS[name].get(letter, f"unknown: {letter}") for letter in value[:32])
    elif name == "sr":
        words = _KINDS.get(value, "unknown")
    elif name in _TIMES:
        words = _distance(value, now)
    return f"{MEANINGS[name]}: {words}" if words else MEANINGS[name]


def _distance(value: str, now: int) -> str:
    """Return how far a time is from now."""
    try:
        seconds = (parse_sas_date(value) - now) // TICKS_PER_SECOND
    except ValueError:
        return "no such time"
    return f"{_duration(abs(seconds))} {'from now' if seconds >= 0 else 'ago'}"


def _duration(seconds: int) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = seconds // size
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def explained_fields(parameters: Mapping[str, str], now: int, failed: Mapping[str, str]) -> tuple[RefusedField, ...]:
    """Return the fields of a SAS.

    Args:
        parameters: the query, decoded.
        now: the time, in ticks.
        failed: field -> why the request is refused for it. A field that is missing is among the results, too.
    """
    return tuple(
        RefusedField(
            name,
            "…" if name == "sig" and name in parameters else parameters.get(name, ""),
            meaning(name, parameters.get(name, ""), now) if name in parameters else MEANINGS[name],
            failed.get(name, ""),
        )
        for name in MEANINGS
        if name in parameters or name in failed
    )


def failed_fields(error: ServiceError, parameters: Mapping[str, str], finding: str, now: int) -> Mapping[str, str]:
    """Return which fields of a SAS a request was refused for, and why.

    Args:
        error: the rejection.
        parameters: the query, decoded.
        finding: what is wrong with the form of the token, which names a field; "" if its form is right.
        now: the time, in ticks.
    """
    if error.code in CODES:
        field, why = CODES[error.code]
        return {field: why}
    if finding:
        names = [word for word in re.findall(r"[a-z]+", finding) if word in MEANINGS]
        missing = [name for name in names if name not in parameters]
        return dict.fromkeys(missing or names[:1], finding)
    start, end = _ticks(parameters.get("st", "")), _ticks(parameters.get("se", ""))
    if start is not None and now < start:
        return {"st": f"it is not valid yet: the server has {format_sas_date(now)}"}
    if end is not None and now > end:
        return {"se": f"it has expired: the server has {format_sas_date(now)}"}
    return {}


def _ticks(value: str) -> int | None:
    try:
        return parse_sas_date(value) if value else None
    except ValueError:
        return None


class RefusedToken(NamedTuple):
    """A token that no key of its account has signed."""

    string_to_sign: str
    parameters: Mapping[str, str]
    account: str
    path: str
    """The path of the request below the account, decoded."""

    @property
    def lines(self) -> list[str]:
        """The lines that are signed."""
        return self.string_to_sign.split("\n")

    @property
    def resource_at(self) -> int | None:
        """The index of the line of the resource; an account SAS has none."""
        return next((at for at, line in enumerate(self.lines) if line.startswith("/")), None)

    def with_resource(self, resource: str) -> str:
        """Return the string to sign with another resource."""
        at = self.resource_at
        return self.string_to_sign if at is None else self.replaced(at, resource)

    def replaced(self, at: int, *lines: str) -> str:
        """Return the string to sign with others in place of one line."""
        return "\n".join([*self.lines[:at], *lines, *self.lines[at + 1 :]])


def _resource(token: RefusedToken) -> str:
    at = token.resource_at
    return "" if at is None else token.lines[at]


def _line_end(token: RefusedToken) -> Iterable[tuple[str, str]]:
    text = token.string_to_sign
    if text.endswith("\n") and _resource(token) == "":
        return [(text.removesuffix("\n"), "without the last line end; newer versions have ses before it")]
    return [(f"{text}\n", "with a line end behind the last line")]


def _prefix(token: RefusedToken) -> Iterator[tuple[str, str]]:
    resource = _resource(token)
    first, account, rest = (*resource[1:].split("/", 2), "", "")[:3]
    if not resource:
        return
    if first in ("table", "queue", "blob") and account == token.account:
        yield token.with_resource(f"/{account}/{rest}"), f"/{account}/…, and it begins with /{first}"
        yield token.with_resource(f"/{first}/{account}/{account}/{rest}"), "the account twice"
        yield token.with_resource(resource[1:]), "it without the slash at its beginning"
    else:
        for service in ("blob", "queue", "table"):
            yield token.with_resource(f"/{service}{resource}"), f"/{service}{resource[:80]}, which newer versions have"


def _kind(token: RefusedToken) -> Iterator[tuple[str, str]]:
    resource, kind = _resource(token), token.parameters.get("sr", "")
    if not kind or not resource:
        return
    container, _, blob = token.path.partition("/")
    start = resource[: len(resource) - len(resource.split(f"/{token.account}/", 1)[-1])]
    if blob and resource != f"{start}{container}":
        yield token.with_resource(f"{start}{container}"), f"the container, and sr={kind} says {_KINDS.get(kind, kind)}"
    if blob and resource != f"{start}{token.path}":
        yield token.with_resource(start + token.path), f"the blob, and sr={kind} says {_KINDS.get(kind, kind)}"
    lines = token.lines
    at = next((index for index in range(len(lines) - 1, 0, -1) if lines[index] == kind), None)
    if at is not None:
        for other in ("b", "c"):
            if other != kind:
                yield token.replaced(at, other), f"sr={other}, and sent sr={kind}"


def _case(token: RefusedToken) -> Iterator[tuple[str, str]]:
    table, resource = token.parameters.get("tn", ""), _resource(token)
    if table and resource:
        yield token.with_resource(f"{resource[: len(resource) - len(table)]}{table}"), ""


def _encoded(token: RefusedToken) -> Iterable[tuple[str, str]]:
    values = [quote(line, safe="/" if line.startswith("/") else "") for line in token.lines]
    return [("\n".join(values), "")]


def _empty(token: RefusedToken) -> Iterable[tuple[str, str]]:
    return [("\n".join(filter(None, token.lines)), "")]


def _older(token: RefusedToken) -> Iterator[tuple[str, str]]:
    """Yield strings that lack what newer versions sign."""
    lines, version = token.lines, token.parameters.get("sv", "")
    if version not in lines:
        return
    at = lines.index(version)
    address, protocol = token.parameters.get("sip", ""), token.parameters.get("spr", "")
    if lines[at - 2 : at] == [address, protocol]:
        yield "\n".join([*lines[: at - 2], *lines[at:]]), "the form before 2015-04-05, without sip and spr"
    if "sr" in token.parameters and len(lines) > at + 3:
        yield "\n".join([*lines[: at + 3], *lines[at + 4 :]]), "the form before 2020-12-06, without ses"
        yield "\n".join([*lines[: at + 1], *lines[at + 3 :]]), "the form before 2018-11-09, without sr"


def _times(token: RefusedToken) -> Iterator[tuple[str, str]]:
    """Yield strings with times of another spelling."""
    lines = token.lines
    moments = {token.parameters.get(name, "") for name in ("st", "se")} - {""}
    short = [line.removesuffix("Z") if line in moments else line for line in lines]
    yield "\n".join(short), "without the Z at their end"
    whole = [re.sub(r"\.\d+Z$", "Z", line) if line in moments else line for line in lines]
    yield "\n".join(whole), "without fractions of seconds"


def _permissions(token: RefusedToken) -> Iterator[tuple[str, str]]:
    given, order = token.parameters.get("sp", ""), "racwdxyltfmeopiu"
    lines = token.lines
    if given in lines:
        right = "".join(sorted(given, key=order.find))
        yield token.replaced(lines.index(given), right), f"sp={right}, and sent sp={given}"


MISTAKES: Sequence[Mistake[RefusedToken]] = (
    Mistake("line-end", "The token was signed {}.", _line_end),
    Mistake("resource", "The token signs {} as the resource.", _prefix),
    Mistake("kind", "The token signs {}.", _kind),
    Mistake("table-case", "The token signs the name of the table as sent: it is signed in lower case.", _case),
    Mistake("encoded-values", "The token signs its values percent-encoded: they are signed decoded.", _encoded),
    Mistake("older-form", "The token signs {}.", _older),
    Mistake("permissions", "The token signs {}.", _permissions),
    Mistake("times", "The token signs its times {}.", _times),
    Mistake("empty-lines", "The token signs no lines for absent values: they are signed as empty lines.", _empty),
)
"""What is tried, in this order, until there are `TRIES_MAX` tries."""
