"""The XML of messages: the short way to read a body finds what the long one finds; texts are written as they are."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.queue import payload
from lazulite.queue.limits import TEXT_BYTES_MAX
from lazulite.queue.model.message import Message, id_of

NEW, OLD = "2021-02-12", "2009-09-19"
PIECES = st.sampled_from(
    [
        b"<QueueMessage>", b"<MessageText>", b"</MessageText>", b"</QueueMessage>", b"<MessageText/>", b"<!--c-->",
        b"&amp;", b"&lt;", b"&#65;", b"&apos;", b"&quot;", b"&gt;", b"&x;", b"&", b"]]>", b"]", b">", b"\r\n", b"\n",
        b"a", b"\t", b" ", "é".encode(), b"\xff", b"\0", b"\x0b", b"\x7f", b"<![CDATA[", b"<?xml version='1.0'?>",
        b"x" * 300,
    ]
)  # fmt: skip
HEADS = st.sampled_from(
    [
        b"", b"\xef\xbb\xbf", b"<?xml version='1.0' encoding='utf-8'?>\n", b'<?xml version="1.0" encoding="UTF-8"?>',
        b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8" standalone="yes"?>', b"<?xml version='1.1'?>", b" ",
        b'<?xml version="1.0" ?>', b"<?xml version='1.0\" ?>", b" <?xml version='1.0'?>", b"<?xml version='1.0'?>\x0b",
    ]
)  # fmt: skip


def _read(body: bytes, version: str) -> bytes | None:
    try:
        return finish(payload.read_text(body, version))
    except ServiceError:
        return None


@example(b"", [b"]]>"], True)
@example(b"", [b"\r\n"], True)
@given(HEADS, st.lists(PIECES, max_size=6), st.booleans())
def test_the_short_way_reads_what_the_long_way_reads(head: bytes, pieces: list[bytes], framed: bool) -> None:
    inner = b"".join(pieces)
    body = head + (b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % inner if framed else inner)
    for version in (NEW, OLD):
        usual = payload.usual_text(body, version)
        assert usual is None or usual == _read(body, version)


@pytest.mark.parametrize(
    "body",
    [
        b"<QueueMessage><MessageText>a b\n\t]</MessageText></QueueMessage>",
        b"<?xml version='1.0' encoding='utf-8'?>\n"
        b"<QueueMessage>\n<MessageText>&lt;&amp;lt;</MessageText></QueueMessage>",
        b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'
        b"<QueueMessage> <MessageText>a</MessageText> </QueueMessage>\n",
    ],
)
def test_usual_bodies_go_the_short_way(body: bytes) -> None:
    text = payload.usual_text(body, NEW)
    assert text is not None
    assert text == _read(body, NEW)


@pytest.mark.parametrize(("version", "most"), [(NEW, TEXT_BYTES_MAX), (OLD, 8 * 1024)])
def test_texts_that_are_too_long_are_left_to_the_long_way(version: str, most: int) -> None:
    for length in (most, most + 1):
        body = b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % (b"a" * length)
        assert (_read(body, version) is None) is (length > most)
        assert payload.usual_text(body, version) in (None, _read(body, version))


@example(["a\rb", "<&>", "\x0b", ""])
@given(st.lists(st.text(), max_size=3))
def test_texts_are_written_as_they_are(texts: list[str]) -> None:
    messages = [Message(id_of(number), 1, 2, 3, text.encode(), 4, 5) for number, text in enumerate(texts)]
    for write in (payload.write_got, payload.write_peeked):
        root = ET.fromstring(b"".join(finish(write(messages, NEW))))
        assert root.tag == "QueueMessagesList"
        found = [each.findtext("MessageText") for each in root]
        illegal = [c for c in map(chr, range(0x20)) if c not in "\t\n\r"] + ["\ufffe", "\uffff"]
        assert found == [text.translate(dict.fromkeys(map(ord, illegal), "\ufffd")) for text in texts]
        assert [each.findtext("DequeueCount") for each in root] == ["4"] * len(texts)
        assert all((each.find("PopReceipt") is not None) is (write is payload.write_got) for each in root)
