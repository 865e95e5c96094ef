"""The strict reader of batch responses rejects what strict clients reject; without this it could let anything pass."""

import pytest

from .answers import Answer
from .batches import changeset, query_part

OUTER = "batchresponse_11111111-2222-3333-4444-555555555555"
INNER = "changesetresponse_66666666-7777-8888-9999-000000000000"
PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
EMPTY = f"--{INNER}\r\n{PART}HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n\r\n"
JSON = f"--{INNER}\r\n{PART}HTTP/1.1 201 Created\r\nETag: x\r\n\r\n{{}}\r\n"
HEAD = f"--{OUTER}\r\nContent-Type: multipart/mixed; boundary={INNER}\r\n\r\n"
TAIL = f"--{INNER}--\r\n--{OUTER}--\r\n"
GOOD = HEAD + EMPTY + JSON + TAIL


def answer(text: str) -> Answer:
    """A response with that body."""
    return Answer(
        "POST /$batch", 202, "Accepted", [("Content-Type", f"multipart/mixed; boundary={OUTER}")], text.encode()
    )


def test_the_exact_layout() -> None:
    parts = changeset(answer(GOOD))
    assert [(part.status, part.reason, part.body) for part in parts] == [
        (204, "No Content", b""),
        (201, "Created", b"{}"),
    ]
    assert parts[0].headers == [("ETag", "x")]


def test_the_exact_layout_of_a_query() -> None:
    text = f"--{OUTER}\r\n{PART}HTTP/1.1 200 OK\r\nETag: x\r\n\r\n{{}}\r\n--{OUTER}--\r\n"
    assert query_part(answer(text)).body == b"{}"
    with pytest.raises(AssertionError):
        query_part(answer(text + "\r\n"))


BROKEN = {
    "bare line feeds": GOOD.replace("\r\n", "\n"),
    "one bare line feed": GOOD.replace("ETag: x\r\n", "ETag: x\n", 1),
    "one blank line after a 204": GOOD.replace("ETag: x\r\n\r\n\r\n--", "ETag: x\r\n\r\n--"),
    "blank line before the batch": "\r\n" + GOOD,
    "blank line between the closing delimiters": GOOD.replace(f"--{INNER}--\r\n", f"--{INNER}--\r\n\r\n"),
    "no line end at the close": GOOD.removesuffix("\r\n"),
    "more after the close": GOOD + "\r\n",
    "no closing delimiter": GOOD.removesuffix(f"--{OUTER}--\r\n"),
    "blank after a delimiter": GOOD.replace(f"--{INNER}\r\n", f"--{INNER} \r\n"),
    "no transfer encoding": GOOD.replace("Content-Transfer-Encoding: binary\r\n", ""),
    "other version": GOOD.replace("HTTP/1.1", "HTTP/1.0"),
    "no blank in a header": GOOD.replace("ETag: x", "ETag:x"),
    "other inner boundary": GOOD.replace(f"boundary={INNER}", "boundary=other"),
    "other outer boundary": GOOD.replace(OUTER, OUTER[:-1] + "6"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_other_envelopes_are_rejected(text: str) -> None:
    with pytest.raises(AssertionError):
        changeset(answer(text))
