"""Where the targets start that send requests without much of a body."""

import base64
import json

from tests.conformance.sas import account_sas, table_sas
from tests.tokens import AUDIENCE, segment

from .issuer import ISSUER
from .request_targets import ENDPOINT

_FOREVER = "2100-01-01T00:00:00Z"
_TABLE_SAS = table_sas(ENDPOINT, "Fuzz", {"se": _FOREVER})
_ACCOUNT_SAS = account_sas(ENDPOINT, {"se": _FOREVER})


def url() -> list[str]:
    root = "/devstoreaccount1"
    entity = "/Fuzz(PartitionKey='p',RowKey='r')"
    gets = [
        "",
        "/",
        "/Tables",
        "/Tables()",
        "/Tables('Fuzz')",
        "/Fuzz",
        "/Fuzz()",
        entity,
        "/?restype=service&comp=stats",
    ]
    gets += ["/?restype=service&comp=properties", "/Fuzz?comp=acl", "/Tables?$filter=TableName%20ge%20'A'&$top=1"]
    gets += [
        "/Fuzz()?$select=S,I&$top=2&$format=json",
        "/Fuzz()?$filter=I%20eq%205&timeout=10",
        "/$batch",
        "/Missing()",
    ]
    gets += [
        f"{entity}?$select=A%2CB",
        "/Fuzz(RowKey='',%20PartitionKey='')",
        "/Fuzz(PartitionKey='q''%25',RowKey='%F0%9F%98%80')",
    ]
    others = [("POST", "/Fuzz"), ("PUT", entity), ("DELETE", entity), ("MERGE", entity), ("POST", entity)]
    others += [("DELETE", "/Tables('Fuzz')"), ("OPTIONS", "/Fuzz"), ("HEAD", "/Fuzz?comp=acl"), ("POST", "/Tables")]
    lines = [f"GET {root}{path}" for path in gets] + [f"{method} {root}{path}" for method, path in others]
    lines += [f"GET {root}-secondary{path}" for path in gets[:8]] + [f"GET {root}-secondary{root}/Fuzz()"]
    return [*lines, f'POST {root}/Tables\n{{"TableName":"NewTable"}}']


_LINES = """
If-Match: *
If-Match: W/"datetime'2026-01-01T00%3A00%3A00Z'"
If-None-Match: *
Prefer: return-content
Accept: application/json;odata=fullmetadata;q=0.5, */*;q=0.1
Accept: application/atom+xml,text/html
X-HTTP-Method: MERGE
x-ms-version: 2011-08-18
x-ms-version: 2099-12-31
DataServiceVersion: 1.0;NetFx
MaxDataServiceVersion: 2.0;NetFx
Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==
Origin: http://example.com
Access-Control-Request-Method: PUT
Access-Control-Request-Headers: x-ms-a
x-ms-client-request-id: abc
Host: example.com:80
Host:
x-ms-date: Thu, 01 Jan 2026 00:10:00 GMT
Content-Type: application/json;odata=verbose
Authorization: SharedKeyLite devstoreaccount1:AAAA
Authorization: Bearer a.b.c
Date: now
Content-Type: text/xml; charset=utf-16
If-Modified-Since: Thu, 01 Jan 2026 00:10:00 GMT
Prefer:
User-Agent: x
X-Forwarded-Proto: https
X-Forwarded-Host: a.b
Accept-Charset: UTF-8
"""


def headers() -> list[str]:
    each = _LINES.strip().splitlines()
    key = "Fuzz(PartitionKey='p',RowKey='r')"
    starts = [
        "GET Fuzz()",
        f"GET {key}",
        "POST Fuzz",
        f"PUT {key}",
        f"MERGE {key}",
        f"DELETE {key}",
        f"POST {key}",
        "OPTIONS Fuzz",
    ]
    return [f"{start}\n{line}" for start in starts for line in each[:18]] + [
        f"{start}\n" + "\n".join(each[at::5]) for at, start in enumerate(starts)
    ]


def http() -> list[str]:
    entity = '{"PartitionKey":"p","RowKey":"new","A":1}'
    path = "/devstoreaccount1/Fuzz"
    host = "Host: h\r\n"
    get = f"GET {path}()?{_ACCOUNT_SAS} HTTP/1.1\r\n{host}Accept: application/json\r\n\r\n"
    line = f"POST {path}?{_ACCOUNT_SAS} HTTP/1.1\r\n{host}Content-Type: application/json\r\n"
    post = f"{line}Content-Length: {len(entity)}\r\n\r\n{entity}"
    chunked = f"{line}Transfer-Encoding: chunked\r\n\r\n{len(entity):x};a=b\r\n{entity}\r\n0\r\nX-Trailer: 1\r\n\r\n"
    waiting = f"{line}Expect: 100-continue\r\nContent-Length: {len(entity)}\r\n\r\n{entity}"
    old = f"GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    upgrade = f"GET {path} HTTP/1.1\r\n{host}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    absolute = f"HEAD http://h{path}?comp=acl HTTP/1.1\r\n{host}\r\n"
    short = [
        f"GET / HTTP/1.1\r\n{host}\r\n",
        "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
        f"DELETE {path} HTTP/1.1\r\n{host}\r\n",
    ]
    return [
        get,
        post,
        get + post + get,
        chunked,
        chunked + get,
        waiting + get,
        old + old,
        upgrade + get,
        absolute,
        *short,
    ]


def sas() -> list[str]:
    signed = [_TABLE_SAS, _ACCOUNT_SAS]
    bounds = {"spk": "p", "srk": "a", "epk": "p", "erk": "z"}
    variants: list[dict[str, str | None]] = [
        {"sv": "2012-02-12"},
        {"sv": "2015-02-21"},
        {"sip": "192.0.2.0-192.0.2.255"},
        {"spr": "https,http"},
        {"sip": "192.0.2.7"},
        {"st": "2000-01-01"},
        {"si": "policy", "sp": None, "se": None},
        {"spr": "https"},
        dict(bounds),
        {"sp": "r"},
        {"sp": "a"},
    ]
    signed += [table_sas(ENDPOINT, "Fuzz", {"se": _FOREVER, **each}) for each in variants]
    accounts: list[dict[str, str | None]] = [
        {"sv": "2020-12-06", "ses": "scope"},
        {"srt": "o"},
        {"ss": "bq"},
        {"sp": "rl"},
    ]
    signed += [account_sas(ENDPOINT, {"se": _FOREVER, **each}) for each in accounts]
    paths = [
        "GET Fuzz()",
        "POST Fuzz sign",
        "GET Tables sign",
        "DELETE Fuzz(PartitionKey='p',RowKey='r') sign",
        "GET Fuzz() sign",
        "GET Fuzz() sign twice",
    ]
    return [f"{path}\n{text}" for path in paths for text in signed]


def _token(text: str) -> str:
    encoded = base64.b64encode(text.encode()).decode().replace("=", "-")
    return f"1!{len(encoded)}!{encoded}"


def tokens() -> list[str]:
    return [
        f"{_token('p')}\n{_token('r')}\n{_token('fuzz')}",
        f"{_token('q%')}\n{_token(chr(0x1F600))}\nfuzz",
        "p\nr\n",
        "p%20+\n",
        "1!4!AAA-\n1!0!\n1!9!x",
        f"{_token('')}\n{_token('')}\n{_token('')}",
    ]


def jwt() -> list[str]:
    """Tokens of every algorithm, and what is to be signed."""
    claims: dict[str, object] = {"iss": ISSUER, "aud": AUDIENCE, "exp": 4102444800, "nbf": 0, "iat": 0, "sub": "x"}
    claims["roles"] = ["Storage Table Data Reader"]
    algorithms = ("RS256", "none", "HS256", "ES256", "PS512", "EdDSA", "")
    heads: list[dict[str, object]] = [{"alg": each, "typ": "JWT", "kid": "k"} for each in algorithms]
    heads += [{"alg": "RS256", "kid": "other"}, {"alg": "RS256"}, {"alg": 5, "crit": ["x"], "jwk": {}}]
    said = [claims, {**claims, "aud": [AUDIENCE + "/", 5], "roles": "Storage Table Data Contributor"}]
    said += [{**claims, "exp": 1.5e9}, {**claims, "nbf": 4e9}, {**claims, "exp": 10**400}, {**claims, "exp": "x"}, {}]
    texts = [json.dumps(each) for each in said]
    raw = [f"{segment(head)}.{segment(texts[0].encode())}.{'A' * 342}" for head in heads]
    signed = [f"sign\n{json.dumps(head)}\n{text}" for head in heads for text in texts[: 7 if head is heads[0] else 1]]
    unknown = [f"sign\n{json.dumps(heads[7])}\n{text}" for text in texts]
    return [*raw, *signed, *unknown, raw[1].rpartition(".")[0] + ".", "a.b.c", "", ".."]
