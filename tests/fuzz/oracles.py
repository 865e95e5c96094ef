"""What must hold of every answer, whatever was asked.

- It is an answer: a status below 500 (or 501), an error only with a code of the catalogue, the same in header and body.
- Its body is what its Content-Type says, to a strict reader.
- No header holds what could start another line.
"""

import json
import re
from xml.etree import ElementTree as ET

from lazulite.protocol.errors import CATALOGUE
from lazulite.protocol.message import Response
from lazulite.protocol.version import ERROR_CODE_SINCE
from tests.conformance.answers import Answer
from tests.conformance.batches import Part, changeset, query_part

_SUCCESSES = frozenset({200, 201, 202, 204, 206})
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_EMPTY_CHANGE_SET = re.compile(
    rb"--(batchresponse_[0-9a-f-]+)\r\nContent-Type: multipart/mixed; boundary=(changesetresponse_[0-9a-f-]+)\r\n\r\n"
    rb"--\2--\r\n--\1--\r\n"
)


class BrokenPromiseError(AssertionError):
    """A promise is broken. The text says which, not with what."""


def require(kept: bool, promise: str) -> None:
    """Raise a `BrokenPromiseError` that quotes the promise unless it was kept."""
    if not kept:
        raise BrokenPromiseError(promise)


def check_answer(response: Response, *, head: bool = False) -> None:
    """Hold a whole response against the rules above."""
    status, code = response.status, response.error_code
    require(status < 500 or code == "NotImplemented", f"no {status} {code}")
    for name, value in response.fields():
        require(_HEADER_NAME.fullmatch(name) is not None, f"header names are tokens: {name!r}")
        require(_HEADER_VALUE.fullmatch(value) is not None, f"no control or wide character in a header: {name}")
    headers = {name.lower(): value for name, value in response.fields()}
    if status in _SUCCESSES:
        require(code == "", f"{status} has no error code")
    else:
        require(code in CATALOGUE, f"{status} has a code of the catalogue, not {code!r}")
        known = headers.get("x-ms-version", "") >= ERROR_CODE_SINCE
        require(headers.get("x-ms-error-code", "" if known else code) == code, "x-ms-error-code is the code")
    if status == 204:
        require(response.body == b"", "204 has no body")
    elif not head:
        _check_body(response, headers)


def _check_body(response: Response, headers: dict[str, str]) -> None:
    media_type = headers.get("content-type", "").partition(";")[0]
    if media_type == "multipart/mixed":
        read_parts(response)
    else:
        shown = body_code(media_type, response.body)
        if response.status >= 400:
            require(shown == response.error_code, f"the body's code is the header's: {shown!r}")


def body_code(media_type: str, body: bytes) -> str | None:
    """The error code in a well-formed body; None if it is no error."""
    if media_type == "application/json":
        return _json_code(body)
    if media_type in ("application/xml", "application/atom+xml", "application/atomsvc+xml"):
        return _xml_code(body)
    require(not body, f"a body has a known type, not {media_type!r}")
    return None


def _reject_constant(name: str) -> None:
    raise BrokenPromiseError(f"{name} is no JSON")


def _json_code(body: bytes) -> str | None:
    try:
        document = json.loads(body.decode(), parse_constant=_reject_constant)
    except ValueError as error:
        raise BrokenPromiseError("a JSON body is JSON") from error
    require(isinstance(document, dict), "a JSON body is an object")
    described = document.get("odata.error")
    return str(described["code"]) if isinstance(described, dict) else None


def _xml_code(body: bytes) -> str | None:
    try:
        # Not lxml, which keeps every name that it ever reads: growth in here would hide growth in the server.
        root = ET.fromstring(body)
    except ET.ParseError as error:
        raise BrokenPromiseError("an XML body is well-formed") from error
    texts = {child.tag.rpartition("}")[2].lower(): child.text or "" for child in root}
    return texts.get("code", "") if root.tag.rpartition("}")[2].lower() == "error" else None


def read_parts(response: Response) -> list[Part]:
    """Read a batch's answer as the strictest client would, and check each part."""
    if _EMPTY_CHANGE_SET.fullmatch(response.body):
        return []
    answer = Answer("batch", response.status, "", response.fields(), response.body)
    try:
        parts = changeset(answer) if b"changesetresponse_" in response.body[:200] else [query_part(answer)]
    except (AssertionError, ValueError) as error:
        raise BrokenPromiseError("a batch's answer has the exact layout") from error
    for part in parts:
        media_type = (part.header("Content-Type") or "").partition(";")[0]
        shown = body_code(media_type, part.body)
        require(part.status < 500 or shown == "NotImplemented", f"no {part.status} in a part")
        require((part.status >= 400) is (shown is not None), "a part is an error if and only if its status says so")
        require(shown is None or shown in CATALOGUE, f"a part's code is of the catalogue: {shown!r}")
    require(len(parts) == 1 or all(part.status < 300 for part in parts), "a rejected batch has one part")
    return parts
