"""Where the targets of the Blob service start."""

_LATEST = "<BlockList><Latest>{}</Latest></BlockList>"
_TAGS = "<Tags><TagSet><Tag><Key>{}</Key><Value>{}</Value></Tag></TagSet></Tags>"
_COPY = "PUT docs/copy\nx-ms-copy-source: {}"
_OWN = "http://127.0.0.1:10000/devstoreaccount1/docs/large"
_NAMES = (
    *("..", ".", "../other", "a/../../b", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a//b", "a%2Fb", "//a", "/", "a%00b", "%"),
    *("a" * 1024, "a" * 1025, "%F0%9F%98%80" * 256, "a/" * 254, "a/" * 255, "a.", "a%5Cb", "%EF%BF%BE", "%C3%28", "?"),
)
_TYPE = "x-ms-blob-type: BlockBlob"


def _names() -> list[str]:
    lines = [f"PUT docs/{name}\n{_TYPE}\n\nx" for name in _NAMES]
    lines += [f"GET docs/{name}" for name in _NAMES] + [f"DELETE docs/{name}" for name in _NAMES[:6]]
    return lines + [f"PUT {name}?restype=container" for name in ("new", "..", "a--b", "%2e%2e", "$root", "$web", "A")]


def _writes() -> list[str]:
    lines = [f"PUT docs/new\n{_TYPE}\nContent-MD5: {text}\n\nx" for text in ("", "x", "nd33DUY4N7P4wtbRFQAAAA==")]
    lines += [f"PUT docs/new\n{_TYPE}\nx-ms-content-crc64: {text}\n\nx" for text in ("AAAAAAAAAAA=", "x", "A" * 999)]
    md5s = [f"x-ms-{name}content-md5: {text}" for name in ("blob-", "source-") for text in ("", "x", "A" * 22 + "==")]
    lines += [f"PUT docs/new\n{_TYPE}\n{each}\n\nx" for each in md5s]
    lines += [f"PUT docs/{name}?comp=properties\n{each}" for name in ("small", "pages") for each in md5s[:3]]
    lines += [f"PUT docs/copy\nx-ms-copy-source: {_OWN}\nx-ms-requires-sync: true\n{each}" for each in md5s[3:]]
    lines += [f"PUT docs/new\n{_TYPE}\nx-ms-meta-{name}: 1\n\nx" for name in ("a", "", "0", "a-b", "\u00fc")]
    lines += [f"PUT docs/new\n{_TYPE}\n{header}\n\nx" for header in ("x-ms-tags: a=1", "x-ms-tags: a", "If-Match: *")]
    lines += [f"PUT docs/blocks?comp=block&blockid={id_}\n\nx" for id_ in ("AAAA", "AA", "!", "A" * 90, "", "AAA%3D")]
    lines += ["PUT docs/log?comp=appendblock\nx-ms-blob-condition-appendpos: 8\n\nx", "PUT docs/log?comp=seal"]
    lines += ["PUT docs/small?comp=appendblock\n\nx", f"PUT docs/new\nx-ms-blob-type: PageBlob\n\n{'x' * 512}"]
    lines += [f"PUT docs/{name}\n{_TYPE}\n\n{{large}}" for name in ("new", "small", "large", "blocks", "log")]
    lines += [f"PUT docs/new\n{_TYPE}\n{each}\n\n{{large}}" for each in ("If-Match: *", "x-ms-lease-id: x")]
    lines += [f"PUT docs/large\n{_TYPE}\n{each}\n\n{{large}}" for each in ("If-None-Match: *", "If-Match: x")]
    lines += ["PUT docs/log?comp=appendblock\nx-ms-blob-condition-maxsize: 9\n\n{large}"]
    lines += ["PUT docs/blocks?comp=block&blockid=AAAC\n\n{large}", "PUT docs/log?comp=block&blockid=AAAC\n\n{large}"]
    sizes = ("0", "512", "513", "-1", "9999999999999999999")
    lines += [f"PUT docs/new\nx-ms-blob-type: PageBlob\nx-ms-blob-content-length: {size}" for size in sizes]
    ranges = ("0-511", "512-1023", "0-0", "511-0", "4096-4607", "3584-9223372036854775807")
    lines += [f"PUT docs/pages?comp=page\nx-ms-page-write: clear\nx-ms-range: bytes={text}" for text in ranges]
    lines += [f"PUT docs/pages?comp=page\nx-ms-page-write: update\nx-ms-range: bytes={ranges[1]}\n\n{'x' * 512}"]
    lines += [f"PUT docs/{name}?comp=metadata\nx-ms-meta-b: 2" for name in ("small", "large", "none")]
    lines += [f"PUT docs/{name}?comp=properties\nx-ms-blob-content-type: a/b" for name in ("small", "pages")]
    lines += [f"PUT docs/small?comp=tier\nx-ms-access-tier: {tier}" for tier in ("Cool", "Archive", "P10", "x")]
    lines += ["PUT docs/small?comp=snapshot", "DELETE docs/small", "DELETE docs/small\nx-ms-delete-snapshots: only"]
    lines += ["PUT docs/small?comp=undelete", f"PUT docs/small?comp=tags\n\n{_TAGS.format('a', 'b')}"]
    return lines + [f"PUT docs/small?comp=tags\n\n{_TAGS.format(key, 'v')}" for key in ("", "a" * 129, "&lt;", "_")]


def _leases() -> list[str]:
    id_ = "x-ms-proposed-lease-id: 6b3a2b2e-0aaf-4222-8333-4444555566ff"
    acquire = "x-ms-lease-action: acquire\nx-ms-lease-duration:"
    heads = [f"{acquire} {text}\n{id_}" for text in ("-1", "15", "60", "0", "61", "x")] + ["x-ms-lease-action: break"]
    heads += [f"x-ms-lease-action: {each}\nx-ms-lease-id: {{x}}" for each in ("renew", "change", "release", "x")]
    return [f"PUT {path}comp=lease\n{each}" for path in ("docs/small?", "docs?restype=container&") for each in heads]


def _copies() -> list[str]:
    hosts = ("169.254.169.254", "127.0.0.1:1", "[::1]", "localhost", "127.0.0.1:10000@evil", "evil#127.0.0.1:10000")
    urls = [_OWN, f"{_OWN}?snapshot=2020-01-01T00:00:00.0000000Z", "/devstoreaccount1/docs/small", "file:///etc/passwd"]
    urls += [f"http://{host}/devstoreaccount1/docs/large" for host in hosts] + ["", "x", "http://", f"{_OWN}/../small"]
    lines = [_COPY.format(url) for url in urls] + [_COPY.format(url) + "\nx-ms-requires-sync: true" for url in urls]
    lines += [f"{_COPY.format(url)}\n{_TYPE}" for url in urls]
    lines += [f"PUT docs/blocks?comp=block&blockid=AAAD\nx-ms-copy-source: {url}" for url in urls[:3]]
    lines += [f"PUT docs/log?comp=appendblock\nx-ms-copy-source: {_OWN}\nx-ms-source-range: bytes=1-2"]
    return [*lines, "PUT docs/small?comp=copy&copyid=x\nx-ms-copy-action: abort"]


def _reads() -> list[str]:
    ranges = ("0-", "0-0", "5-4", "25599-", "25600-", "0-99999999999999999999", "-5", "1-2,4-5", "x", "0x1-2")
    lines = [f"GET docs/large\nx-ms-range: bytes={text}" for text in ranges]
    lines += [f"GET docs/large\nRange: bytes=0-9\nx-ms-range-get-content-{name}: true" for name in ("md5", "crc64")]
    lines += ["GET docs/large\nx-ms-structured-body: XSM/1.0; properties=crc64", "HEAD docs/large", "GET docs/none"]
    lines += [f"GET docs/small\nIf-None-Match: {text}" for text in ("*", '"x"', ",", '"a","b"')]
    lines += [f"GET docs/small\n{name}: Thu, 01 Jan 2026 00:00:00 GMT" for name in ("If-Modified-Since", "If-Range")]
    lines += [f"GET docs/blocks?comp=blocklist&blocklisttype={kind}" for kind in ("all", "x")]
    lines += ["GET docs/pages?comp=pagelist", "GET docs/pages?comp=pagelist&prevsnapshot=x", "GET docs/small?comp=tags"]
    lines += ["GET docs/small?snapshot=x", "GET docs/small?snapshot=2020-01-01T00:00:00.0000000Z&versionid=x"]
    lists = ("", "prefix=s", "delimiter=/", "maxresults=1", "maxresults=0", "marker=x", "include=tags,metadata,copy")
    lines += [f"GET docs?restype=container&comp=list&{text}" for text in lists]
    lines += [f"GET ?comp=list&{text}" for text in lists[:6]] + ["GET ?comp=blobs&where=a%3D'1'", "GET ?comp=blobs"]
    return [*lines, "GET docs?restype=container&comp=blobs&where=%22a%22%3E'0'", "GET ?restype=account&comp=properties"]


def blobs() -> list[str]:
    batch = "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nDELETE /devstoreaccount1/docs/small HTTP/1.1"
    lines = _names() + _writes() + _leases() + _copies() + _reads()
    lines += [f"POST ?comp=batch\nContent-Type: multipart/mixed; boundary=b\n\n{batch}\r\n\r\n--b--\r\n"]
    lines += ["PUT docs?restype=container&comp=acl\nx-ms-blob-public-access: blob\n\n<SignedIdentifiers />"]
    return [*lines, "DELETE docs?restype=container", "GET ?restype=service&comp=properties", "OPTIONS docs/small"]


def lists() -> list[str]:
    entries = ["<Committed>AAAA</Committed>", "<Uncommitted>AAAC</Uncommitted>", "<Latest>AAAC</Latest>"]
    bodies = [_LATEST.format(id_) for id_ in ("AAAA", "AAAB", "AAAC", "", " AAAA\n", "<![CDATA[AAAA]]>", "&#65;AAA")]
    bodies += [
        f"<BlockList>{''.join(entries)}</BlockList>",
        f"<BlockList>{entries[1] * 50}</BlockList>",
        "<BlockList/>",
    ]
    bodies += ['<?xml version="1.0" encoding="utf-8"?>' + bodies[0], "\ufeff" + bodies[0], "", "x", bodies[0] * 2]
    bodies += ['<!DOCTYPE x [<!ENTITY a "AAAA">]>' + _LATEST.format("&a;"), _LATEST.format("<Latest>AAAA</Latest>")]
    return [*bodies, "<BlockList>" + "<Latest>" * 60, "<List><Latest>AAAA</Latest></List>", bodies[0].lower()]
