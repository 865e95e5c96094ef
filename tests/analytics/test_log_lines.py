"""Lines of `$logs`, read by the grammar, by the expressions of the WebJobs trigger, and by those of the Java reader."""

import re
from html import unescape
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.analytics.log_lines import lines_of, masked, percent_encoded, quoted
from lazulite.analytics.log_reader import LogLine, decode, read_line
from lazulite.protocol.message import Request, Response, SubOperation
from tests.analytics.samples import SHARED_KEY, answered, read, request_of

WEBJOBS_FIELD = re.compile(r'"[^"]*"|[^;"]*')
"""A field, as the trigger of the WebJobs SDK reads it."""
URI = re.compile(r"[\w.~:/?@!$&'()*+,;=%-]+", re.ASCII)
MODIFIED = re.compile(r"[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT")
ETAG = "W/\"datetime'2011-08-23T18%3A38%3A02.7912Z'\""


def line_of(request: Request, response: Response | None = None, version: str = "1.0") -> str:
    """Return the one line of a request."""
    (found,) = read(answered(request, response or Response(200)))
    (line,) = lines_of(found, version)
    return line


def webjobs_fields(line: str) -> list[str]:
    """Return the fields that the trigger reads: its expressions, from one semicolon to the next."""
    fields, at = [], 0
    while True:
        found = WEBJOBS_FIELD.match(line, at)
        assert found is not None
        fields.append(unescape(found[0].strip('"')))
        if found.end() == len(line):
            return fields
        assert line[found.end()] == ";"
        at = found.end() + 1


def parsed(line: str) -> LogLine:
    """Return a line, read by the grammar, in which the trigger finds the right number of fields."""
    assert "\n" not in line
    assert len(webjobs_fields(line)) == (30 if line.startswith("1.0") else 38)
    return read_line(line)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.text("\";&\n\r<>,'\0\x7f%\\ #é\u2028", max_size=20)
VALUES = st.text(st.characters(max_codepoint=255), max_size=60) | st.text('";&\n\r<>=%\t \xff', max_size=20)


@given(VALUES, VALUES, VALUES, VALUES, VALUES)
@example('a";b;\n1.0;c', "x" * 1024, '"', "&quot;", "\n")
def test_no_value_of_a_header_breaks_a_line(agent: str, referrer: str, id_: str, md5: str, condition: str) -> None:
    sent = {"user-agent": agent, "referer": referrer, "x-ms-client-request-id": id_, "content-md5": md5}
    line = line_of(request_of("table", "QueryEntity", headers=SHARED_KEY | sent | {"if-match": condition}))
    found = parsed(line)
    assert found.operation == "QueryEntity"
    without_nul = [text.replace("\0", "&#0;") for text in (agent, referrer, id_, md5)]
    shown = [found.user_agent, found.referrer, found.client_request_id, found.request_md5]
    for text, seen in zip(without_nul, shown, strict=True):
        assert seen == text or "REDACTED" in seen
    assert found.conditions == f"If-Match={condition}".replace("\0", "&#0;") or "REDACTED" in found.conditions


@given(TEXTS, TEXTS)
@example("\ud800", "a;b\"c'\nd")
def test_names_round_trip(partition: str, row: str) -> None:
    batch = request_of("table", "EntityGroupTransaction", "POST", "/acct/$batch")
    batch.record.operations = [SubOperation("InsertEntity", ("orders", partition, row), ETAG)]
    (found,) = read(answered(batch, Response(202)))
    first, second = map(parsed, lines_of(found, "1.0"))
    assert (first.operation, first.number, first.object_key, first.etag) == ("EntityGroupTransaction", 0, "/acct", "")
    shown = "".join(f"&#{ord(each)};" if each == "\0" or "\ud800" <= each < "\ue000" else each for each in partition)
    assert second.object_key.startswith(f"/acct/orders/{shown}/")
    assert (second.operation, second.number, second.etag) == ("InsertEntity", 1, ETAG)
    assert second.last_modified == "Tuesday, 23-Aug-11 18:38:02 GMT"
    assert second.request_id == first.request_id


@given(
    st.text(st.characters(max_codepoint=255, min_codepoint=1), max_size=60), st.text('?&=;"{}|<>[] é%#', max_size=20)
)
def test_urls_are_uris_whatever_a_client_sends_raw(path: str, query: str) -> None:
    found = parsed(line_of(request_of("blob", "GetBlob", path=f"/acct/box/{path}", query=query)))
    assert URI.fullmatch(found.url)
    assert not re.search(r"%(?![0-9A-Fa-f]{2})", found.url)
    assert urlsplit(found.url).netloc == "127.0.0.1:10002"


@given(st.text(st.sampled_from("abc%20é;"), max_size=20))
def test_what_is_encoded_stays_as_it_is(path: str) -> None:
    once = percent_encoded(path)
    assert percent_encoded(once) == once


@given(TEXTS)
def test_quoted_texts_are_decoded_by_each_reader(text: str) -> None:
    written = quoted(text)
    assert not re.search("[\n\r<>]", written)
    assert '"' not in written[1:-1]
    assert decode(written[1:-1]).replace("&#0;", "\0") == text


SIGNED = ["sig=SECRET", "sv=1&sig=SECRET&se=2", "SIG=SECRET", "%73ig=SECRET", "s%2569g=SECRET", "sig%3DSECRET"]


@pytest.mark.parametrize("query", SIGNED)
def test_signatures_are_masked_in_each_spelling_and_field(query: str) -> None:
    assert "SECRET" not in masked(query)
    url = f"https://x/box/a?{query}"
    headers = {"host": "127.0.0.1:1", "referer": url, "x-ms-copy-source": url, "user-agent": url}
    headers |= {"x-ms-client-request-id": url, "authorization": "SharedKey acct:SECRET", "if-match": url}
    headers |= {"if-modified-since": "SharedKey acct:SECRET", "content-md5": url}
    (found,) = read(answered(request_of("blob", "CopyBlob", "PUT", "/acct/box/b", query, headers), Response(202)))
    lines = lines_of(found, "1.0")
    assert "SECRET" not in "\n".join(lines)
    assert "XXXXX" in lines[0]


def test_signatures_in_the_path_are_masked_in_the_key_too() -> None:
    path = "/acct/box/a%3Fsv=1%26sig=SECRET%26se=2"
    found = parsed(line_of(request_of("blob", "GetBlob", path=path), Response(404, error_code="BlobNotFound")))
    assert found.object_key == "/acct/box/a?sv=1&sig=XXXXX&se=2"
    batch = request_of("table", "EntityGroupTransaction", "POST", "/acct/$batch")
    batch.record.operations = [SubOperation("InsertEntity", ("orders", "p", "x?sig=SECRET"), ETAG)]
    (request,) = read(answered(batch, Response(202)))
    assert "SECRET" not in "".join(lines_of(request, "1.0"))


def test_no_header_makes_a_line_long() -> None:
    long = '"' * 30_000
    names = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "content-md5")
    sent = dict.fromkeys((*names, "user-agent", "referer", "x-ms-client-request-id"), long)
    line = line_of(request_of("table", "QueryEntity", headers=SHARED_KEY | sent))
    assert len(line) < 8 * 1024 * len("&quot;") + 1024
    assert parsed(line).conditions.startswith('If-Modified-Since="')


def test_a_copy_has_three_lines() -> None:
    headers = SHARED_KEY | {"x-ms-copy-source": "https://x/box/a;b"}
    response = Response(202, [("ETag", '"0x8D6"'), ("Last-Modified", "Tue, 25 Jun 2019 14:56:54 GMT")])
    (found,) = read(answered(request_of("blob", "CopyBlob", "PUT", "/acct/box/b", headers=headers), response))
    copy, source, destination = map(parsed, lines_of(found, "1.0"))
    assert [each.operation for each in (copy, source, destination)] == [
        "CopyBlob",
        "CopyBlobSource",
        "CopyBlobDestination",
    ]
    assert [each.number for each in (copy, source, destination)] == [0, 1, 2]
    assert [each.etag for each in (copy, source, destination)] == ['"0x8D6"', "", ""]
    assert [each.last_modified for each in (copy, source, destination)] == ["Tuesday, 25-Jun-19 14:56:54 GMT", "", ""]
    assert (source.object_key, destination.object_key) == ("https://x/box/a;b", "/acct/box/b")


@pytest.mark.parametrize(
    ("version", "status", "code", "expected"),
    [
        ("2017-04-17", 404, "BlobNotFound", "BlobNotFound"),
        ("2016-05-31", 404, "BlobNotFound", "SASClientOtherError"),
        ("2020-12-06", 200, "", "SASSuccess"),
        ("2020-12-06", 403, "AuthorizationPermissionMismatch", "SASAuthorizationError"),
        ("2020-12-06", 500, "InternalError", "SASServerOtherError"),
    ],
)
def test_status_field(version: str, status: int, code: str, expected: str) -> None:
    asked = request_of("blob", "GetBlob", query="sig=x", headers={"host": "h"})
    asked.record.version = version
    found = parsed(line_of(asked, Response(status, error_code=code)))
    assert (found.status, found.http_status, found.requester, found.account) == (expected, status, "", "acct")


def test_an_interrupted_response_has_no_status() -> None:
    (found,) = read(answered(request_of("blob", "GetBlob"), Response(200), is_whole=False))
    (line,) = lines_of(found, "1.0")
    assert ";NetworkError;Unknown;" in line
    assert parsed(line).http_status is None


def test_the_fields_of_a_usual_line() -> None:
    headers = SHARED_KEY | {"content-length": "5", "content-md5": "bWQ1", "user-agent": "azsdk;x"}
    headers |= {
        "if-none-match": "*",
        "if-modified-since": "Tue, 25 Jun 2019 14:56:54 GMT",
        "x-ms-client-request-id": "c",
    }
    response = Response(
        201, opening='Content-MD5: bWQ1\r\nETag: "0x8D6"\r\nLast-Modified: Tue, 25 Jun 2019 14:56:54 GMT\r\n'
    )
    size = len("PUT /acct/box/a%20b HTTP/1.1\r\n\r\n") + sum(len(f"{item}: {headers[item]}\r\n") for item in headers)
    line = line_of(request_of("blob", "PutBlob", "PUT", "/acct/box/a%20b", headers=headers), response)
    assert line == (
        "1.0;2028-10-18T23:59:59.9880000Z;PutBlob;Success;201;12;7;authenticated;acct;acct;blob;"
        '"http://127.0.0.1:10002/acct/box/a%20b";"/acct/box/a b";b59c6c2a-0000-0000-0000-000000000000;0;10.1.2.3;'
        f'2020-12-06;{size};5;200;100;5;"bWQ1";"bWQ1";"&quot;0x8D6&quot;";Tuesday, 25-Jun-19 14:56:54 GMT;'
        '"If-Modified-Since=Tuesday, 25-Jun-19 14:56:54 GMT;If-None-Match=*";"azsdk;x";;"c"'
    )
    assert MODIFIED.fullmatch(parsed(line).last_modified)


def test_a_client_that_is_no_address_is_left_out() -> None:
    asked = request_of("blob", "GetBlob")
    asked.client = 'unknown;"x'
    assert parsed(line_of(asked)).client == ""


def test_version_2_has_the_claims_of_a_verified_token_alone() -> None:
    claims = "eyJvaWQiOiJ1c2VyO1wiIiwidGlkIjoidCIsImF1ZCI6ImEiLCJpc3MiOiJpIn0"  # {"oid":"user;\"","tid":"t",...}
    headers = {"host": "h", "authorization": f"Bearer e30.{claims}.c2ln"}
    asked = request_of("blob", "GetBlob", headers=headers)
    assert parsed(line_of(asked, version="2.0")).identity == ("",) * 8
    asked.authenticated = True
    found = parsed(line_of(asked, version="2.0"))
    assert found.identity == ('user;"', "t", "", "a", "i", "", "", "")
    assert (found.authentication, found.status, found.requester) == ("bearer", "OAuthSuccess", "acct")
    assert line_of(request_of("blob", "GetBlob"), version="2.0").endswith(";;;;;;;;")
