"""Where each target starts: well-formed requests of every kind, and the words that they are made of.

The coverage that fuzzing reached beyond them is stored in `corpus/`.
"""

import json

from tests.conformance import service_properties as properties
from tests.table.batches import Operation, change_set, query

from . import blob_seeds, queue_seeds, request_seeds
from .world import TYPES_ROW

_GUID = str(TYPES_ROW["G"])
_DATA = "http://schemas.microsoft.com/ado/2007/08/dataservices"


def _entity(**more: object) -> str:
    return json.dumps({"PartitionKey": "p", "RowKey": "new", **TYPES_ROW, **more})


def _json() -> list[str]:
    full = json.dumps({"odata.metadata": "x", "odata.etag": 'W/"x"', "Timestamp": "2020-01-01T00:00:00Z", "A": None})
    bodies = [_entity(), _entity(X="\ud83d\ude00 \\u0000"), full, "{}", '{"A":1e400,"B":-0.0,"C":123456789012}', "[]"]
    bodies.append('{"PartitionKey":"p","RowKey":"n","A@odata.type":"Edm.DateTime","A":"1601-01-01T00:00:00-14:00"}')
    bodies.append('{"PartitionKey":"p","RowKey":"n","A@odata.type":"Edm.Binary","A":"AA=="}')
    bodies.append('{"PartitionKey":"p","RowKey":"n","A@odata.type":"Edm.Double","A":"-Infinity","A":1}')
    heads = ["POST", "POST full", "POST none", "PUT", "PUT *", "MERGE", "MERGE *", "PATCH *"]
    return [f"{head}\n{body}" for head in heads for body in bodies[: 9 if head == "POST" else 2]]


def _shapes() -> list[str]:
    typed = _entity()
    return ["\n".join([typed, typed.replace("p", "q"), _entity(X=1.5), _entity(X=None, Y=True)]), _entity(A="x", B=7)]


def _entry() -> tuple[str, str]:
    """An Atom entry without its properties: what stands before them, and after."""
    start = (
        '<?xml version="1.0" encoding="utf-8" standalone="yes"?><entry '
        f'xmlns:d="{_DATA}" xmlns:m="{_DATA}/metadata" xmlns="http://www.w3.org/2005/Atom"><title />'
        "<updated>2008-09-18T23:46:19Z</updated><author><name /></author><id />"
        '<content type="application/xml"><m:properties>'
    )
    return start, "</m:properties></content></entry>"


def _atom() -> list[str]:
    typed = [("S", "", "a &amp; b"), ("I", "Edm.Int32", "5"), ("L", "Edm.Int64", "5"), ("D", "Edm.Double", "1.5")]
    typed += [("T", "Edm.Boolean", "true"), ("W", "Edm.DateTime", "2008-07-10T00:00:00Z"), ("B", "Edm.Binary", "AA==")]
    typed += [("G", "Edm.Guid", _GUID), ("PartitionKey", "", "p"), ("RowKey", "", "new")]
    members = "".join(
        f"<d:{name}{f' m:type={chr(34)}{kind}{chr(34)}' if kind else ''}>{text}</d:{name}>"
        for name, kind, text in typed
    )
    members += '<d:Z m:null="true" /><d:P xml:space="preserve">  x </d:P>'
    start, end = _entry()
    table = f"TABLE\n{start}<d:TableName>NewTable</d:TableName>{end}"
    return [table] + [f"{head}\n{start}{members}{end}" for head in ("POST", "PUT", "PUT *", "MERGE *")]


def _batch() -> list[str]:
    where = "Fuzz(PartitionKey='p',RowKey='{}')"
    new = {"PartitionKey": "p", "RowKey": "new", "A": 1}
    writes = [
        Operation("POST", "Fuzz", new, {"Prefer": "return-no-content", "Content-ID": "1"}),
        Operation("POST", "Fuzz", {**new, "RowKey": "echo"}, {"Accept": "application/json;odata=fullmetadata"}),
        Operation("PUT", where.format("r"), {"A": 1}, {"If-Match": "*"}),
        Operation("MERGE", where.format("s"), {"A": 1}),
        Operation("PATCH", where.format("x"), {"A": 1}, {"If-Match": "*"}),
        Operation("DELETE", where.format("q"), None, {"If-Match": "*"}),
        Operation("POST", where.format("u"), {"A": 2}, {"X-HTTP-Method": "MERGE"}),
    ]
    bodies = [change_set(*writes[:5]), change_set(*writes), change_set(), *map(change_set, writes)]
    bodies.append(query(Operation("GET", where.format("r"))))
    bodies.append(query(Operation("GET", "Fuzz()?$filter=I%20eq%205&$top=2&$select=S,I")))
    texts = [body.decode().replace("http://host/", "http://127.0.0.1:10002/") for body in bodies]
    loose = [text.replace("\r\n", "\n") for text in texts[:2]]
    old = {"Content-Type": "application/atom+xml;type=entry", "Accept": "application/atom+xml"}
    inner = "ENTRY".join(_entry()).replace("ENTRY", "<d:PartitionKey>p</d:PartitionKey><d:RowKey>n</d:RowKey>")
    atoms = [Operation("POST", "Fuzz", "ENTRY", old), Operation("PUT", where.format("r"), "ENTRY", old)]
    texts += [change_set(*atoms[:count]).decode().replace('"ENTRY"', inner) for count in (1, 2)]
    texts.append(query(Operation("GET", "Fuzz()", None, old)).decode())
    named = [f'multipart/mixed; type=x; boundary="a b"\n{texts[0].replace("batch_b", "a b")}']
    return texts + loose + named


def _xml() -> list[str]:
    rule = properties.cors(properties.rule("http://*.example.com,*", "GET,PUT", "x-ms-*,a", "*", "3600"))
    documents = [properties.DEFAULTS, properties.document(rule), properties.document(properties.LOGGING_OFF)]
    documents.append(properties.document(properties.HOUR_OFF, properties.MINUTE_OFF, "<Cors/>"))
    policy = (
        "<SignedIdentifier><Id>MTIz</Id><AccessPolicy><Start>2009-09-28T08:49:37.0000000Z</Start>"
        "<Expiry>2100-09-29</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
    )
    bare = "<SignedIdentifier><Id>x</Id></SignedIdentifier>"
    acl = [
        f'<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>{each}</SignedIdentifiers>'
        for each in ("", policy, policy + bare, f"<!-- c --><![CDATA[ ]]>{bare}<?pi x?>")
    ]
    return [f"properties\n{each}" for each in documents] + [f"acl\n{each}" for each in acl]


_COMPARISONS = """
S eq 'it''s'|E eq ''|S gt ''|T eq true|T ne false|I eq 5|I ge -5|L eq 12345678901L|I lt 5L|D eq 1.5|D le 1.5d|D lt INF
N eq NaN
N ne -3.1E-10|W eq datetime'2008-07-10T00:00:00.1234567Z'|W lt datetime'2008-07-10T02:00:00+02:00'|B eq X'0a0b'
G eq guid'6b3a2b2e-0aaf-4222-8333-4444555566ff'|B ge binary'0A0b'|Timestamp ge datetime'2020-01-01T00:00:00Z'|T|not T
\u00e9 eq 'e'
PartitionKey eq 'p' and RowKey ge 'r' and RowKey lt 's'|PartitionKey ge 'p' or not (T)
PartitionKey eq 'q''%'|RowKey eq 'r'
(I gt 4 and D lt 2.0) or (PartitionKey eq 'q''%' and not (S eq 'x'))|N eq 1.0 or N ne 1.0 or not (N lt 1.0)
S eq 5|I eq 'five'
PartitionKey gt 'p' and PartitionKey lt 'q' or PartitionKey eq 'z' and RowKey ne 'r 1+2'|5 eq I|'a' lt S|Missing eq 1
"""


def _filter() -> list[str]:
    return [text for line in _COMPARISONS.split("\n") for text in line.split("|") if text]


SEEDS = {
    "atom": _atom,
    "batch": _batch,
    "blobs": blob_seeds.blobs,
    "filter": _filter,
    "headers": request_seeds.headers,
    "http": request_seeds.http,
    "json": _json,
    "jwt": request_seeds.jwt,
    "lists": blob_seeds.lists,
    "messages": queue_seeds.messages,
    "queues": queue_seeds.queues,
    "sas": request_seeds.sas,
    "shapes": _shapes,
    "tokens": request_seeds.tokens,
    "url": request_seeds.url,
    "xml": _xml,
}


def seeds(target: str) -> list[bytes]:
    """The inputs that a target starts from."""
    return [text.encode("utf-8", "surrogatepass") for text in SEEDS[target]()]
