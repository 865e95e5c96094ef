"""The matrix of conditional headers: which operation knows which, and what it answers if one is not met."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest
from tests.conformance.answers import Answer
from tests.conformance.sas import account_sas

from .blobs import Container, new_name
from .conftest import New
from .matrix import (
    CONDITIONAL,
    HEADERS,
    MATRIX,
    NOT_MET,
    OTHER_ETAG,
    OTHER_TAG,
    REQUESTS,
    SOURCE,
    TIER_HEADERS,
    VERSION,
    Headers,
    Request,
    met_conditions,
    request_of,
    requests_of,
    row_of,
    table_of_operations,
    unmet_conditions,
)
from .resources import A, B, Resource, with_lease

MESSAGE = "The condition specified using HTTP conditional header(s) is not met."
SUCCESS = (200, 201, 202, 204, 206)
UNKNOWN = "–"
STAR = {"If-None-Match": "*"}
GARBAGE = ("null", "Fri, 32 Jan 2026 00:00:00 GMT")
"""No dates; JavaScript programs send the first one."""


def code_of(answer: Answer) -> tuple[int, str]:
    """Status and code, of an answer without a body, too."""
    return answer.status, answer.header("x-ms-error-code") or ""


def state_of(resource: Resource) -> Headers:
    """What the properties of a resource tell of it."""
    headers = {name.lower(): text for name, text in resource.facts().headers}
    return {name: text for name, text in headers.items() if name not in ("date", "x-ms-request-id")}


def check_not_met(answer: Answer, status: int) -> None:
    """Check the rejection of a condition."""
    assert code_of(answer) == (status, NOT_MET)
    if status == 304 or answer.request.startswith("HEAD"):
        assert answer.body == b""
    else:
        assert answer.rejection == (412, NOT_MET, MESSAGE)


def test_each_operation_of_the_matrix_is_tried() -> None:
    assert list(REQUESTS) == list(MATRIX)
    assert {"SetBlobTier", "GetBlockList"} <= CONDITIONAL.keys() < MATRIX.keys()


@pytest.mark.parametrize(("name", "header"), list(product(requests_of(MATRIX), (*HEADERS, *TIER_HEADERS))))
def test_each_condition(new: New, name: str, header: str) -> None:
    request, status = request_of(name), row_of(name).unmet[header]
    resource = new(request.target)
    if status != UNKNOWN:
        before = state_of(resource)
        unmet = request.condition(header, unmet_conditions(resource)[header])
        check_not_met(request.send(resource, unmet), int(status))
        assert state_of(resource) == before
    values = unmet_conditions(resource) if status == UNKNOWN else met_conditions(resource)
    answer = request.send(resource, request.condition(header, values[header]))
    assert answer.status in SUCCESS or code_of(answer) == (409, "NoPendingCopyOperation")


@pytest.mark.parametrize("name", requests_of(CONDITIONAL))
def test_each_condition_on_what_is_missing(new: New, sources: Container, name: str) -> None:
    request, row = request_of(name), row_of(name)
    values = unmet_conditions(new("block"))
    for header in (header for header, status in row.unmet.items() if status != UNKNOWN):
        missing = Resource(Container(sources.blobs, new_name())) if request.target == "container" else None
        missing = missing or Resource(sources, new_name())
        if name == "PutBlockList":
            sources.put_block(missing.name, "a").expect(201)
        answer = request.send(missing, request.condition(header, values[header]))
        if not row.creates:
            noun = "Blob" if missing.name else "Container"
            assert code_of(answer) == (404, f"{noun}NotFound"), header
        elif header in ("If-Match", "x-ms-if-tags"):
            check_not_met(answer, 412)
            assert missing.send("HEAD").status == 404
        else:
            assert answer.status in SUCCESS, header


@pytest.mark.parametrize("name", requests_of(CONDITIONAL))
def test_a_star_that_nothing_matches(new: New, sources: Container, name: str) -> None:
    request, row = request_of(name), row_of(name)
    star = request.condition("If-None-Match", "*")
    resource, missing = new(request.target), Resource(sources, new_name())
    answer = request.send(resource, star)
    if row.star == "400":
        for each in (answer, request.send(missing, star)):
            assert code_of(each) == (400, "UnsatisfiableCondition")
    elif row.creates:
        assert answer.rejection == (409, "BlobAlreadyExists", "The specified blob already exists.")
        if name == "PutBlockList":
            sources.put_block(missing.name, "a").expect(201)
        assert request.send(missing, star).status in SUCCESS
    else:
        assert answer.status in SUCCESS


@pytest.mark.parametrize("name", [name for name in requests_of(CONDITIONAL) if row_of(name).creates])
def test_a_star_with_the_lease(new: New, name: str) -> None:
    request = request_of(name)
    resource = new(request.target)
    resource.lease("acquire", duration=-1, proposed_id=A).expect(201)
    assert code_of(request.send(resource, STAR)) == (412, "LeaseIdMissing")
    assert code_of(request.send(resource, STAR | with_lease(B))) == (412, "LeaseIdMismatchWithBlobOperation")
    answer = request.send(resource, STAR | with_lease(A))
    if row_of(name).star == "409":
        assert code_of(answer) == (409, "BlobAlreadyExists")
    else:
        assert answer.status == 201
        assert resource.facts().header("x-ms-lease-state") == "leased"


@pytest.mark.parametrize("name", requests_of(CONDITIONAL))
def test_dates_that_are_none(new: New, name: str) -> None:
    request, row = request_of(name), row_of(name)
    for header, text in product((*HEADERS[2:4], *TIER_HEADERS), GARBAGE):
        if row.unmet[header] == UNKNOWN:
            continue
        sent = request.condition(header, text)
        answer = request.send(new(request.target), sent)
        if next(iter(sent)).startswith("x-ms-"):
            assert code_of(answer) == (400, "InvalidHeaderValue")
        else:
            assert answer.status in SUCCESS


FLOORS = {"x-ms-if-tags": "2019-07-07", TIER_HEADERS[0]: "2026-02-06", TIER_HEADERS[1]: "2026-02-06"}
"""The last versions that do not know a header."""
OPERATIONS = dict.fromkeys(("GetBlobTags", "SetBlobTags", "SealAppendBlob"), "2019-12-12")
"""The first version that has an operation."""


@pytest.mark.parametrize("name", requests_of(CONDITIONAL))
def test_versions_before_a_condition(new: New, name: str) -> None:
    request, row = request_of(name), row_of(name)
    floors = {header: "2025-11-05" for header in HEADERS[:4] if request.prefix} | FLOORS
    for header, version in floors.items():
        if row.unmet[header] == UNKNOWN or version < OPERATIONS.get(name, ""):
            continue
        resource = new(request.target)
        sent = request.condition(header, unmet_conditions(resource)[header])
        assert request.send(resource, sent, version).status in SUCCESS, header


SOURCES = table_of_operations("blob-copies.md", 4)
SOURCE_COLUMNS = dict(zip(HEADERS, (0, 1, 1, 0, 2), strict=True))
WITH_A_SOURCE = [name for name in requests_of(MATRIX) if request_of(name).reads_url]
URL_MESSAGES = {
    "CannotVerifyCopySource": "Could not verify the copy source within the specified time.",
    "SourceConditionNotMet": "The source condition specified using HTTP conditional header(s) is not met.",
    NOT_MET: MESSAGE,
}


def on_source(header: str, text: str) -> Headers:
    """A condition as one on the source of a copy."""
    return {f"x-ms-source-{header.lower().removeprefix('x-ms-')}": text}


def test_each_operation_with_a_source_is_tried() -> None:
    assert set(SOURCES) == {name for name, request in REQUESTS.items() if request.reads_url}


@pytest.mark.parametrize(("name", "header"), list(product(WITH_A_SOURCE, HEADERS)))
def test_each_condition_on_a_source(new: New, sources: Container, name: str, header: str) -> None:
    request, operation = request_of(name), name.split(maxsplit=1)[0]
    destination, source = new(request.target), Resource(sources, SOURCE)
    before = destination.facts()
    answer = request.send(destination, on_source(header, unmet_conditions(source)[header]))
    status, code = SOURCES[operation][SOURCE_COLUMNS[header]].split()
    assert code_of(answer) == (int(status), code.strip("`"))
    if status != "304":
        assert answer.rejection.message == (MESSAGE if operation == "PutBlobFromURL" else URL_MESSAGES[answer.code[1]])
    assert answer.reason == (MESSAGE if "CannotVerify" in code else answer.rejection.message)
    assert destination.facts().etag == before.etag
    answer = request.send(destination, on_source(header, met_conditions(source)[header]))
    assert answer.status in SUCCESS


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_missing_before_its_conditions(new: New, name: str) -> None:
    request = REQUESTS[name]
    absent = {"x-ms-copy-source": f"{new('block').container.blobs.client.endpoint.base}absent/absent"}
    for header in HEADERS:
        value = {"x-ms-if-tags": OTHER_TAG}.get(header, OTHER_ETAG if header.endswith("Match") else "")
        condition = on_source(header, value) if value else {}
        answer = request.send(new(request.target), absent | condition)
        assert answer.status in (401, 404)
        assert answer.code[1] == "CannotVerifyCopySource"


def test_any_blob_matches_a_star(new: New) -> None:
    for name in requests_of(CONDITIONAL):
        request = request_of(name)
        if row_of(name).unmet["If-Match"] != UNKNOWN:
            answer = request.send(new(request.target), request.condition("If-Match", "*"))
            assert answer.status in SUCCESS, name


READS = [name for name in requests_of(CONDITIONAL) if row_of(name).unmet["If-None-Match"] == "304"]
WRITES = [name for name in requests_of(CONDITIONAL) if row_of(name).unmet["If-None-Match"] == "412"]


TAGGED = [name for name in requests_of(CONDITIONAL) if row_of(name).unmet["x-ms-if-tags"] == "412"]


def together(resource: Resource, name: str, **is_met: bool) -> Headers:
    """Several headers of a request, each met or not."""
    found: Headers = {}
    for field, good in is_met.items():
        header = field.replace("_", "-")
        found |= request_of(name).condition(header, (met_conditions if good else unmet_conditions)(resource)[header])
    return found


@pytest.mark.parametrize(
    ("match", "unmodified", "none", "modified", "status"),
    [
        (True, True, True, True, None),
        (False, True, True, True, 412),
        (True, False, True, True, 412),
        (True, True, False, True, None),
        (True, True, True, False, None),
        (True, True, False, False, 304),
        (False, True, False, False, 412),
    ],
)
@pytest.mark.parametrize("name", READS)
def test_reads_combine_all_headers(
    new: New, name: str, match: bool, unmodified: bool, none: bool, modified: bool, status: int | None
) -> None:
    resource = new(request_of(name).target)
    headers = together(
        resource, name, If_Match=match, If_Unmodified_Since=unmodified, If_None_Match=none, If_Modified_Since=modified
    )
    answer = request_of(name).send(resource, headers)
    assert answer.status in SUCCESS if status is None else code_of(answer) == (status, NOT_MET)


@pytest.mark.parametrize("name", READS)
def test_reads_take_lists_of_etags(new: New, name: str) -> None:
    request = request_of(name)
    resource = new(request.target)
    both = f"{OTHER_ETAG}, {resource.facts().etag}"
    assert request.send(resource, request.condition("If-Match", both)).status in SUCCESS
    check_not_met(request.send(resource, request.condition("If-None-Match", both)), 304)


PAIRS = (("If_Match", "If_Unmodified_Since"), ("If_None_Match", "If_Modified_Since"))
OTHER_PAIRS = (
    *(("If_Match", "If_None_Match"), ("If_Match", "If_Modified_Since")),
    *(("If_None_Match", "If_Unmodified_Since"), ("If_Modified_Since", "If_Unmodified_Since")),
)
MULTIPLE = (400, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported.")


@pytest.mark.parametrize("name", WRITES)
def test_writes_combine_two_headers(new: New, name: str) -> None:
    request = request_of(name)
    for first, second in PAIRS:
        resource = new(request.target)
        check_not_met(request.send(resource, together(resource, name, **{first: False, second: True})), 412)
        answer = request.send(resource, together(resource, name, **{first: True, second: False}))
        assert answer.status in SUCCESS


@pytest.mark.parametrize("name", WRITES)
def test_writes_combine_no_others(new: New, name: str) -> None:
    request = request_of(name)
    resource = new(request.target)
    for first, second in OTHER_PAIRS:
        assert request.send(resource, together(resource, name, **{first: True, second: True})).rejection == MULTIPLE
    both = request.condition("If-Match", f"{OTHER_ETAG}, {resource.facts().etag}")
    assert request.send(resource, both).rejection == MULTIPLE


def test_reads_before_2013_08_15_combine_what_writes_do(blob: Resource) -> None:
    headers = {"If-Match": blob.facts().etag, "If-None-Match": OTHER_ETAG}
    assert blob.send("GET", "", headers, version="2012-02-12").rejection == MULTIPLE
    blob.send("GET", "", headers, version="2013-08-15").expect(200)


def test_etags_need_no_quotes(blob: Resource) -> None:
    blob.send("GET", "", {"If-Match": blob.facts().etag.strip('"')}).expect(200)


@pytest.mark.parametrize("name", TAGGED)
def test_a_condition_on_tags_that_cannot_be_read(new: New, name: str) -> None:
    request = request_of(name)
    answer = request.send(new(request.target), {"x-ms-if-tags": "a=="})
    assert code_of(answer) == (400, "InvalidHeaderValue")


def test_a_condition_on_tags_beside_others(blob: Resource) -> None:
    blob.put(b"x", {"x-ms-tags": "a=1"}).expect(201)
    tagged: Mapping[str, Any] = {"If-Match": blob.facts().etag, "x-ms-if-tags": "a='1' OR b<>'2'"}
    blob.send("PUT", "comp=metadata", tagged).expect(200)
    check_not_met(blob.send("PUT", "comp=metadata", tagged), 412)


def test_the_tier_of_a_deleted_blob(blob: Resource) -> None:
    past, future = (f"Sun, 06 Nov {year} 08:49:37 GMT" for year in ("1994", "2094"))
    changed, unchanged = TIER_HEADERS

    def delete(headers: Headers) -> Answer:
        return blob.send("DELETE", "", headers, version=VERSION)

    check_not_met(delete({changed: past}), 412)
    blob.send("PUT", "comp=tier", {"x-ms-access-tier": "Cool"}).expect(200)
    for headers in ({changed: future}, {unchanged: past}, {changed: past, unchanged: past}):
        check_not_met(delete(headers), 412)
    blob.send("PUT", "comp=snapshot").expect(201)
    for mode in ("include", "only"):
        check_not_met(delete({changed: future, "x-ms-delete-snapshots": mode}), 412)
    delete({changed: past, unchanged: future, "x-ms-delete-snapshots": "include"}).expect(202)


PARTS = {"DeleteBlob": b"202", "SetBlobTier": b"200"}
"""The operations that a batch may hold, with their success."""


@pytest.mark.parametrize(
    ("name", "header"),
    [(name, header) for name in PARTS for header, status in MATRIX[name].unmet.items() if status == "412"],
)
def test_conditions_on_the_parts_of_a_batch(new: New, name: str, header: str) -> None:
    request, blobs = REQUESTS[name], [new("block") for _ in range(3)]
    values = [unmet_conditions(blobs[0])[header], met_conditions(blobs[1])[header], ""]
    before = state_of(blobs[0])
    sent = [{header: value} if value else {} for value in values]
    answer = batch([(blob, request, headers) for blob, headers in zip(blobs, sent, strict=True)])
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer.expect(202).body) == [b"412", PARTS[name], PARTS[name]]
    assert re.findall(rb"x-ms-error-code: (\w+)", answer.body) == [NOT_MET.encode()]
    assert state_of(blobs[0]) == before


def batch(parts: Sequence[tuple[Resource, Request, Headers]]) -> Answer:
    """Send requests for blobs as the parts of one batch."""
    blobs = parts[0][0].container.blobs
    endpoint = blobs.client.endpoint
    sas = account_sas(endpoint, {"ss": "b", "sp": "rwdt", "se": "2999-01-01T00:00:00Z"})
    lines: list[str] = []
    for blob, request, headers in parts:
        path = f"{endpoint.prefix}/{blob.container.name}/{blob.name}?{request.query}&{sas}"
        lines += ["--b", "Content-Type: application/http", "Content-Transfer-Encoding: binary", ""]
        lines += [f"{request.method} {path} HTTP/1.1", "Content-Length: 0"]
        lines += [f"{header}: {value}" for header, value in {**request.headers, **headers}.items()] + ["", ""]
    body = "\r\n".join([*lines, "--b--", ""])
    typed = {"Content-Type": "multipart/mixed; boundary=b"}
    return blobs.send("POST", "/", "comp=batch", body=body, headers=typed, version=VERSION)


OF_SNAPSHOTS = (
    *("GetBlob", "GetBlobProperties", "GetBlobMetadata", "GetBlockList", "GetBlobTags"),
    *("SetBlobTier", "DeleteBlob"),
)


@pytest.mark.parametrize("header", [*HEADERS, *TIER_HEADERS])
def test_conditions_on_a_snapshot(new: New, header: str) -> None:
    blob = new("block")
    values = [unmet_conditions(blob)[header], met_conditions(blob)[header]]
    time = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    blob.put(b"new").expect(201)
    for name in OF_SNAPSHOTS:
        request, status = REQUESTS[name], MATRIX[name].unmet[header]
        query = f"{request.query}&snapshot={quote(time)}"
        if status != UNKNOWN:
            for value, expected in zip(values, ([int(status)], SUCCESS), strict=True):
                sent = {**request.headers, **request.condition(header, value)}
                sent.pop("x-ms-delete-snapshots", None)
                answer = blob.send(request.method, query, sent, version=VERSION)
                assert answer.status in expected, name
