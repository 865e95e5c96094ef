"""Targets that send requests without much of a body: URLs, headers, continuation tokens, credentials."""

import json
import re
from urllib.parse import unquote, unquote_to_bytes

from lazulite.engine.ordinal import ordinal
from tests.conformance import sas as conformance_sas
from tests.conformance.signing import Endpoint, signature
from tests.tokens import AUDIENCE

from .issuer import ISSUER, KEY_ID, sign
from .oracles import require
from .world import ACCOUNT, NOW_SECONDS, ROOT, World

METHODS = ("GET", "POST", "PUT", "DELETE", "MERGE", "PATCH", "HEAD", "OPTIONS")
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ENDPOINT = Endpoint("http", "127.0.0.1:10002", f"/{ACCOUNT}", ACCOUNT, KEY)
_ENTITY_BODY = b'{"PartitionKey":"p","RowKey":"new","A":1}'
_UNFIT_IN_TARGET = re.compile(r"[\x00-\x20\x7f]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _method(words: list[str]) -> str:
    return words[0] if words and words[0] in METHODS else "GET"


def url(world: World, data: bytes) -> None:
    """`METHOD target`, and a body of its own if there are more lines."""
    line, _, body = data.partition(b"\n")
    method, _, target = line.decode("latin-1").partition(" ")
    path, _, query = _UNFIT_IN_TARGET.sub("_", target).partition("?")
    known = method if method in METHODS else "GET"
    world.ask(known, path, query, body=body or (_ENTITY_BODY if known != "GET" else b""))


def headers(world: World, data: bytes) -> None:
    """A valid request (`METHOD path` in the first line) with header lines of the input's choice."""
    line, _, rest = data.partition(b"\n")
    words = line.decode("latin-1").split()
    fields: dict[str, str] = {}
    for each in rest.decode("latin-1").split("\n")[:100]:
        name, _, value = each.partition(":")
        if _TOKEN.fullmatch(name):
            fields[name.lower()] = _CONTROLS.sub("", value).strip(" \t")
    path, _, query = (words[1] if len(words) > 1 and words[1].isascii() else world.table).partition("?")
    method = _method(words)
    world.ask(method, ROOT + path, query, fields, b"" if method in ("GET", "HEAD") else _ENTITY_BODY)


def tokens(world: World, data: bytes) -> None:
    """Continuation tokens, one a line: partition, row, table. What follows a token is not before its key."""
    lines = [_UNFIT_IN_TARGET.sub("_", line).replace("&", "%26") for line in data.decode("latin-1").split("\n")]
    partition, row, table = (*lines, "", "", "")[:3]
    query = f"$top=3&NextPartitionKey={partition}" + (f"&NextRowKey={row}" if row else "")
    page = world.ask("GET", f"{ROOT}{world.table}()", query)
    if page.status == 200:
        keys = [(each["PartitionKey"], each["RowKey"]) for each in json.loads(page.response.body)["value"]]
        order = [(ordinal(one), ordinal(other)) for one, other in keys]
        require(order == sorted(order), "a page is in order")
        following = page.header("x-ms-continuation-NextPartitionKey")
        if following is not None:
            rest = f"NextPartitionKey={following}&NextRowKey={page.header('x-ms-continuation-NextRowKey') or ''}"
            after = world.ask("GET", f"{ROOT}{world.table}()", rest)
            require(after.status == 200, "a token that was given out is taken")
            found = json.loads(after.response.body)["value"]
            require(bool(found), "there is more where a token says so")
            first = (ordinal(found[0]["PartitionKey"]), ordinal(found[0]["RowKey"]))
            require(not order or order[-1] < first, "a page begins where the last one ended")
    world.ask("GET", f"{ROOT}Tables", f"$top=1&NextTableName={table}")


_NEEDS = {"GET": "r", "POST": "a", "PUT": "u", "MERGE": "u", "PATCH": "u", "DELETE": "d"}


def sas(world: World, data: bytes) -> None:
    """`METHOD path sign` and a query string; without `sign` it goes as it is, with `twice` it follows the signed one.

    A request that succeeds has each field once, the right signature, made here from the reference and not by the
    server's code, and the letter of what was done.
    """
    line, _, rest = data.partition(b"\n")
    words = line.decode("latin-1").split()
    query = _UNFIT_IN_TARGET.sub("_", rest.decode("latin-1").partition("\n")[0])
    fields = _sas_fields(query)
    right = fields is not None and _signature(fields)
    if fields is not None and right and "sign" in words:
        fields["sig"] = right
        query = conformance_sas.query_text(fields) + (f"&{query}" if "twice" in words else "")
    path = words[1] if len(words) > 1 and words[1].isascii() else f"{world.table}()"
    method = _method(words)
    body = b"" if method in ("GET", "HEAD") else _ENTITY_BODY
    done = world.ask(method, ROOT + path, query, {"if-match": "*"} if method != "POST" else {}, body, signed=False)
    if done.status < 400 and method != "OPTIONS":
        require(fields is not None and bool(right) and fields.get("sig") == right, "a wrong signature opens nothing")
        names = [name for name, _ in _pairs(query) or () if name in _SAS_FIELDS]
        require(len(names) == len(set(names)), "a SAS of which a field comes twice opens nothing")
        assert fields is not None
        if "comp" not in fields:
            allowed = bool(fields.get("si")) or _NEEDS.get(method, "") in fields.get("sp", "")
            require(
                allowed or path.startswith(("Tables", "$batch")), f"a SAS without the letter for {method} is rejected"
            )
        if "tn" in fields:
            named = unquote(path).partition("(")[0].rstrip("/").lower()
            require(named in (fields["tn"].lower(), "$batch"), "a table SAS opens its table only")


_SAS_FIELDS = {*conformance_sas.TABLE_LINES, *conformance_sas.ACCOUNT_LINES, "sig", "tn", "ses"} - {"R", "account"}


def _pairs(query: str) -> list[tuple[str, str]] | None:
    """The names and values, decoded; None if that cannot be done."""
    try:
        bare = [pair.replace("+", " ").encode("latin-1").partition(b"=") for pair in query.split("&")]
        decoded = [(unquote_to_bytes(name).decode(), unquote_to_bytes(value).decode()) for name, _, value in bare]
    except ValueError:
        return None
    return [(name if name.startswith("$") else name.lower(), value) for name, value in decoded]


def _sas_fields(query: str) -> dict[str, str] | None:
    """The first value of each name, decoded; None if that cannot be done."""
    pairs = _pairs(query)
    return None if pairs is None else dict(reversed(pairs))


def _signature(fields: dict[str, str]) -> str:
    version = fields.get("sv", "")
    if "tn" in fields:
        prefix = "/table" if version >= conformance_sas.WITH_SERVICE_PREFIX else ""
        values = fields | {"R": f"{prefix}/{ACCOUNT}/{fields['tn'].lower()}"}
        with_ip = version >= conformance_sas.WITH_IP_AND_PROTOCOL
        lines = conformance_sas.TABLE_LINES if with_ip else conformance_sas.TABLE_LINES_BEFORE_IP
        return signature(KEY, "\n".join(values.get(line, "") for line in lines))
    scope = ("ses",) if version >= conformance_sas.WITH_ENCRYPTION_SCOPE else ()
    values = fields | {"account": ACCOUNT}
    return signature(KEY, "".join(values.get(line, "") + "\n" for line in conformance_sas.ACCOUNT_LINES + scope))


def jwt(world: World, data: bytes) -> None:
    """A bearer token; or `sign`, a header and claims on a line each, which the issuer signs.

    Nothing opens anything that the issuer did not sign, and what it signed only by the right key, for us, in its time
    and with a role.
    """
    line, _, rest = data[:12_000].partition(b"\n")
    head, _, claims = rest.partition(b"\n")
    signed = line.strip() == b"sign"
    token = sign(head, claims) if signed else _CONTROLS.sub("", data.decode("latin-1")).strip()
    fields = {"authorization": f"Bearer {token}", "x-ms-version": "2020-12-06"}
    done = world.ask("GET", f"{ROOT}{world.table}()", headers=fields)
    if done.status < 400:
        require(signed, "an unsigned token opens nothing")
        header, said = json.loads(head), json.loads(claims)
        require(
            header["alg"] == "RS256" and header.get("kid", KEY_ID) == KEY_ID, "a token names the key that signed it"
        )
        require("crit" not in header, "what is critical is understood")
        require(said["iss"] == ISSUER and AUDIENCE in str(said["aud"]), "a token is the issuer's, for us")
        require(said["exp"] + 60 >= NOW_SECONDS >= said.get("nbf", 0) - 60, "a token has its time")
        require("Storage Table Data" in str(said["roles"]), "a token has a role")
