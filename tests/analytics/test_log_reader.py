"""The grammar of `$logs`: documented lines, and hostile values, which never shift a field."""

import html
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analytics.log_reader import (
    LINE_BYTES_MAX,
    LogLine,
    decode,
    prefixes,
    read_line,
    split_lines,
)

PUT_BLOB = (
    "2.0;2019-06-25T14:56:54.0079155Z;PutBlob;Success;201;24;22;authenticated;x;x;blob;"
    '"https://x.blob.core.windows.net:443/testcontainer/testblob7.dat";"/x/testcontainer/testblob7.dat";'
    "c675930e-f01e-0016-2e66-2b5b8a000000;0;40.91.210.176:7040;2018-03-28;432;1999980;249;0;1999980;"
    '"yRI+gcpHB+XCS/JTxrZc9Q==";"yRI+gcpHB+XCS/JTxrZc9Q==";"&quot;0x8D6F97D5CA88E64&quot;";'
    'Tuesday, 25-Jun-19 14:56:54 GMT;;"Azure-Storage/9.3.2 (.NET Core)";;"d76a96e0-9f66-4476-b5e0-b8979b69ea85";'
    ";;;;;;;"
)
FIREWALL = (
    "1.0;2020-05-17T13:22:59.2714021Z;GetContainerProperties;IpAuthorizationError;403;4;4;authenticated;x;x;blob;"
    '"https://x.blob.core.windows.net:443/paasappscripts?restype=container";"/";'
    "75343457-0000-0000-0000-000000000000;0;172.16.5.4:59722;2018-11-09;453;0;130;246;0;;;;;;"
    '"Go/go1.14.2";;'
)
INSERT = (
    "1.0;2011-08-23T18:38:02.7511834Z;InsertEntity;Success;202;104;61;authenticated;sally;sally;table;"
    '"http://sally.table.core.windows.net/$batch";"/sally/orders/PK/RK1";b59c6c2a-0000-0000-0000-000000000000;1;'
    "10.0.0.7:4362;2009-09-19;520;100918;235;189150;100918;;;"
    '"W/&quot;datetime\'2011-08-23T18%3A38%3A02.7912000Z\'&quot;";Tuesday, 23-Aug-11 18:38:02 GMT;;;;"client-1"'
)
BEARER = (
    "2.0;2019-02-25T20:06:55.9089848Z;PutBlock;OAuthSuccess;201;95;95;bearer;s;s;blob;"
    '"https://s.blob.core.windows.net/c/b.txt?comp=block&amp;blockid=YmxvY2s=";"/s/c/b.txt";'
    "5569fa10-e01e-00c0-2745-cdb22d000000;0;200.59.21.176:52665;2017-11-09;2581;9;365;0;9;;"
    '"tdzGO9AaJte/e2HJZLtXig==";;;;"Mozilla/5.0 (Windows NT 10.0; Win64; x64)";"https://ms.portal.azure.com/";'
    '"c808142e-0393-4942-9001-af4833061026";"e5981635-dcf0-4279-ab7b-ca1cbdf4a5c7";'
    '"72f988bf-86f1-41af-91ab-2d7cd011db47";"691458b9-1327-4635-9f55-ed83a7f1b41c";"https://storage.azure.com/";'
    '"https://sts.windows.net/72f988bf-86f1-41af-91ab-2d7cd011db47/";;;'
    '"[{&quot;action&quot;:&quot;Microsoft.Storage/write&quot;}]"'
)
QUOTED = (11, 12, 22, 23, 24, 26, 27, 28, 29)
"""The quoted fields of `FIREWALL`, from 0."""


def test_a_line_of_version_2() -> None:
    line = read_line(PUT_BLOB)
    assert line.start == datetime(2019, 6, 25, 14, 56, 54, 7915, UTC)
    assert (line.operation, line.status, line.http_status) == ("PutBlob", "Success", 201)
    assert (line.end_to_end_ms, line.server_ms, line.number) == (24, 22, 0)
    assert line.etag == '"0x8D6F97D5CA88E64"'
    assert line.last_modified == "Tuesday, 25-Jun-19 14:56:54 GMT"
    assert line.user_agent == "Azure-Storage/9.3.2 (.NET Core)"
    assert (line.request_bytes, line.response_bytes) == (1999980, 0)
    assert line.identity == ("",) * 8
    assert (line.later, line.is_failed) == ("", False)


def test_a_line_of_version_1() -> None:
    line = read_line(FIREWALL)
    assert (line.object_key, line.client, line.client_request_id) == ("/", "172.16.5.4:59722", "")
    assert (line.identity, line.later, line.is_failed) == ((), "", True)
    assert read_line(INSERT).etag == "W/\"datetime'2011-08-23T18%3A38%3A02.7912000Z'\""


def test_a_line_of_a_token() -> None:
    line = read_line(BEARER)
    assert line.url == "https://s.blob.core.windows.net/c/b.txt?comp=block&blockid=YmxvY2s="
    assert line.user_agent == "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
    assert line.identity[0] == "e5981635-dcf0-4279-ab7b-ca1cbdf4a5c7"
    assert line.identity[5:7] == ("", "")
    assert line.identity[7] == '[{"action":"Microsoft.Storage/write"}]'


def test_an_interrupted_request_has_no_status_and_no_sizes() -> None:
    line = read_line(FIREWALL.replace(";403;", ";Unknown;").replace(";453;0;130;246;0;", ";;;;;;"))
    assert line.http_status is None
    assert line[17:22] == (None,) * 5


def test_fields_of_later_versions_are_kept_apart() -> None:
    assert read_line(f'{FIREWALL};"a;b";c') == read_line(FIREWALL)._replace(later=';"a;b";c')
    assert read_line(PUT_BLOB + ";x").later == ";x"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1.0",
        "3.0" + FIREWALL[3:],
        "2.0" + FIREWALL[3:],  # Eight fields are missing.
        FIREWALL.rpartition(";")[0],
        FIREWALL.replace(";403;", ";-403;"),
        FIREWALL.replace(";4;4;", ";4;;"),
        FIREWALL.replace("2020-05-17", "2020-13-17"),
        FIREWALL.replace('"Go/go1.14.2"', "Go/go1.14.2"),
        FIREWALL.replace('"Go/go1.14.2"', '"Go"/go1.14.2'),
        FIREWALL.replace('"Go/go1.14.2"', '"a"b"'),
        FIREWALL + "\n",
        FIREWALL.replace("Go", "G\no"),
        INSERT.replace("Tuesday, 23-Aug-11 18:38:02 GMT", '"Tuesday, 23-Aug-11 18:38:02 GMT"'),
        INSERT.replace("Tuesday, 23-Aug-11 18:38:02 GMT", "Tue, 23 Aug 2011 18:38:02 GMT"),
        INSERT.replace("&quot;datetime", '"datetime'),
    ],
)
def test_what_is_no_line(line: str) -> None:
    with pytest.raises(ValueError, match=r"^(no line|a line that is not)|month must be"):
        read_line(line)


@given(st.text())
def test_any_text_is_a_line_or_a_value_error(text: str) -> None:
    for candidate in (text, "1.0;" + text, FIREWALL.replace("Go", text)):
        try:
            read_line(candidate)
        except ValueError:
            continue


def encoded(text: str) -> str:
    """Encode a value as a writer does: HTML, with line ends as numbers."""
    return html.escape(text).replace("\n", "&#10;").replace("\r", "&#13;")


@given(values=st.lists(st.text(), min_size=len(QUOTED), max_size=len(QUOTED)))
def test_no_value_shifts_a_field(values: list[str]) -> None:
    fields = FIREWALL.split(";")
    for at, value in zip(QUOTED, values, strict=True):
        fields[at] = f'"{encoded(value)}"'
    text = ";".join(fields)
    line = read_line(text)
    assert [line[at] for at in QUOTED] == values
    plain = set(range(30)) - set(QUOTED)
    assert [line[at] for at in plain] == [read_line(FIREWALL)[at] for at in plain]
    assert list(split_lines([text.encode("utf-8", "replace")])) == [text.encode("utf-8", "replace")]


@given(st.text())
def test_decoding_reverts_encoding(text: str) -> None:
    assert decode(encoded(text)) == text


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("&amp;quot;", "&quot;"),
        ("&#x41;&#66;&lt;&apos;&eacute;", "AB<'é"),
        ("&#0;&#55296;&#1114112;&unknown;&&#;", "&#0;&#55296;&#1114112;&unknown;&&#;"),
    ],
)
def test_references(text: str, decoded: str) -> None:
    assert decode(text) == decoded


@given(lines=st.lists(st.binary().filter(lambda line: b"\n" not in line)), cuts=st.lists(st.integers(0, 300)))
def test_lines_do_not_depend_on_the_pieces(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    at = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    assert list(split_lines(whole[start:stop] for start, stop in pairwise(at))) == lines


def test_a_line_without_an_end_is_a_line_and_a_long_one_is_skipped() -> None:
    long = b"x" * LINE_BYTES_MAX
    assert list(split_lines([b"a\nb"])) == [b"a", b"b"]
    assert list(split_lines([b"a\n", long, b"x\nb\n"])) == [b"a", None, b"b"]
    assert list(split_lines([long, b"x", long])) == [None]
    assert list(split_lines([long])) == [long]


def test_prefixes_are_hours_of_the_first_day_and_then_days() -> None:
    since = datetime(2026, 2, 27, 22, 30, tzinfo=UTC)
    assert list(prefixes(since, datetime(2026, 3, 1, 0, 5, tzinfo=UTC))) == [
        "2026/02/27/22",
        "2026/02/27/23",
        "2026/02/28/",
        "2026/03/01/",
    ]
    assert list(prefixes(since, since)) == ["2026/02/27/22"]


def test_the_fields_are_in_the_order_of_the_reference() -> None:
    assert LogLine._fields.index("client_request_id") == 29
