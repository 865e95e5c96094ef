"""Words that mutations insert into inputs: those of the protocol, and characters that are hard for parsers."""

# fmt: off
_ODATA = [
    "PartitionKey", "RowKey", "Timestamp", "odata.", "@odata.type", "odata.etag", "Edm.Int64", "Edm.Binary",
    "Edm.DateTime", "Edm.Guid", "Edm.Double", "Edm.String", "Edm.Boolean", "Edm.Int32", "NaN", "-INF",
    "9999-12-31T23:59:59.9999999Z",
]
_HARD = [
    "%00", "%2F", "%25", "%27", "''", "%C3%28", "%ED%A0%80", "%F4%90%80%80", "\u0130", "\ufeff", "\\ud800", "\\u0000",
    "\x00", "-1", "0", "1e309", "9223372036854775808", "99999999999999999999", "\r\n", "\n\n", "\r", "\t", "\u2028",
    "\xa0", "\x85", "+", "\u0663",
]
_QUERY = [
    "$filter=", "$top=", "$select=", "$format=", "comp=acl", "restype=service", "comp=properties", "comp=stats",
    "timeout=", "NextPartitionKey=", "NextRowKey=", "NextTableName=", "sig=", "sv=", "tn=", "&&", "=", "?", "#",
    "$batch", "Tables",
]
_FILTER = [
    " and ", " or ", "not ", " eq ", " ne ", " gt ", " ge ", " lt ", " le ", "(", ")", "datetime'", "guid'", "X'",
    "binary'", "L", "'",
]
_MULTIPART = [
    "--batch_b", "--changeset_c", "--", "Content-ID: ", "Content-Type: application/http", "boundary=", "HTTP/1.1",
    "\r\n\r\n",
]
_HEADERS = [
    "If-Match: ", "Content-Length: ", "Transfer-Encoding: chunked", "Host: ", "Expect: 100-continue",
    "Connection: close", ": ", "Accept: ", "x-ms-version: ", "X-HTTP-Method: ", "Prefer: ", "Authorization: ",
    "Content-Type: ", "Upgrade: h2c", "q=", ";", ",",
]
_XML = [
    "<!DOCTYPE", "<![CDATA[", "]]>", "<!--", "-->", "<?x?>", "&#0;", "&#x10FFFF;", "&lt;", "xmlns=", 'm:null="true"',
    'm:type="', "/>", "<Id>", "<Expiry>", "<CorsRule>", "<d:A>", 'xml:space="preserve"', "xmlns:m=", "<entry",
    "<!ENTITY", "&x;",
]
_QUEUE = [
    "<QueueMessage>", "</QueueMessage>", "<MessageText>", "</MessageText>", "popreceipt=", "{receipt}", "{id}",
    "visibilitytimeout=", "messagettl=", "numofmessages=", "peekonly=true", "comp=metadata", "comp=acl", "comp=list",
    "prefix=", "marker=", "maxresults=", "include=metadata", "x-ms-meta-a: 1", "x-ms-meta-", "/messages/", "jobs",
    "=32", "=604800", "x-ms-version: 2009-07-17", "userdelegationkey",
]
_BLOB = [
    "<BlockList>", "<Latest>", "<Committed>", "<Uncommitted>", "</Latest>", "AAAA", "AAAC", "comp=block&blockid=",
    "comp=blocklist", "comp=appendblock", "comp=page", "comp=lease", "comp=snapshot", "comp=tags", "comp=metadata",
    "restype=container&", "comp=list", "x-ms-blob-type: ", "BlockBlob", "AppendBlob", "PageBlob", "x-ms-range: bytes=",
    "x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/", "x-ms-lease-id: ", "x-ms-lease-action: ",
    "x-ms-tags: ", "x-ms-if-tags: ", "If-None-Match: *", "Content-MD5: ", "docs/", "small", "large", "/../", "//",
    "snapshot=", "versionid=", "{large}", "delimiter=", "marker=", "x-ms-version: 2009-09-19",
    "x-ms-version: 2026-10-06",
]
_JWT = [
    "RS256", "none", "HS256", "eyJhbGciOiJub25lIn0", ".", "=", "e30", "W10", "bnVsbA",
]
# fmt: on

_OWN = {
    "atom": _ODATA + _XML,
    "batch": _MULTIPART + _HEADERS + _ODATA,
    "blobs": _BLOB + _HEADERS,
    "filter": _FILTER + _ODATA,
    "headers": _HEADERS,
    "http": _HEADERS + _QUERY,
    "json": _ODATA,
    "jwt": _JWT,
    "lists": _XML + _BLOB,
    "messages": _XML + _QUEUE,
    "queues": _QUEUE + _HEADERS,
    "sas": _QUERY,
    "shapes": _ODATA,
    "tokens": ["1!", "!", "1!4!AAAA"],
    "url": _QUERY + _FILTER,
    "xml": _XML,
}


def words(target: str) -> list[bytes]:
    """Return the words of a target, and words that are hard for every parser."""
    return [word.encode() for word in _OWN[target] + _HARD]
