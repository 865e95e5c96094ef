"""Lists of blocks, read in the usual way and by the XML parser, and written."""

from base64 import b64encode
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.blocks.block_list_xml import (
    BODY_BYTES_MAX,
    ENTRIES_MAX,
    Block,
    Entry,
    Source,
    read_block_list,
    write_block_list,
)
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from tests.blob.steps import steps_of

IDS = st.binary(min_size=1, max_size=64).map(lambda id_: b64encode(id_).decode())
ENTRIES = st.lists(st.builds(Entry, st.sampled_from(Source), IDS), max_size=20)
BLANKS = st.sampled_from(["", "\n", " \r\n\t"])
PROLOGS = st.sampled_from(
    ["", '<?xml version="1.0" encoding="utf-8"?>', "<?xml version='1.0' encoding='utf-8'?>\n", "\ufeff"]
)


def body_of(entries: list[Entry], blank: str = "", attributes: str = "") -> str:
    leaves = (f"<{source.value}>{id_}</{source.value}>{blank}" for source, id_ in entries)
    return f"<BlockList{attributes}>{blank}{''.join(leaves)}</BlockList>{blank}"


@given(ENTRIES, BLANKS, PROLOGS, st.sampled_from(["", ' xmlns:a="b"']))
def test_entries_are_read_in_their_order(entries: list[Entry], blank: str, prolog: str, attributes: str) -> None:
    assert finish(read_block_list((prolog + body_of(entries, blank, attributes)).encode())) == entries


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"<BlockList>{text}</BlockList>".encode()))
def test_any_body_is_read_or_rejected(body: bytes) -> None:
    try:
        finish(read_block_list(body))
    except ServiceError as error:
        assert error.status == 400


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "InvalidXmlDocument"),
        ("<Blocks/>", "InvalidXmlDocument"),
        ("<BlockList><Latest>QQ==</Latest>", "InvalidXmlDocument"),
        ("<BlockList><Latest>QQ==</Latest></BlockList><a/>", "InvalidXmlDocument"),
        ("<BlockList><Latest>QQ==</Committed></BlockList>", "InvalidXmlDocument"),
        ("<BlockList><Newest>QQ==</Newest></BlockList>", "InvalidXmlDocument"),
        ("<BlockList>text</BlockList>", "InvalidXmlDocument"),
        ("<BlockList><Latest>Q</Latest></BlockList>", "InvalidBlockId"),
        ("<BlockList><Latest/></BlockList>", "InvalidBlockId"),
        ("<BlockList><Latest>é</Latest></BlockList>", "InvalidBlockId"),
        ("<!DOCTYPE a><BlockList/>", "InvalidXmlDocument"),
    ],
)
def test_wrong_lists_are_rejected(body: str, code: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        finish(read_block_list(body.encode()))
    assert rejected.value.code == code


def test_a_list_without_entries() -> None:
    assert finish(read_block_list(b"<BlockList/>")) == finish(read_block_list(b"<BlockList></BlockList>")) == []


@pytest.mark.parametrize("attributes", ["", " a='b'"])
def test_a_list_has_at_most_50_000_entries(attributes: str) -> None:
    entries = [Entry(Source.LATEST, "QQ==")] * ENTRIES_MAX
    assert len(finish(read_block_list(body_of(entries, attributes=attributes).encode()))) == ENTRIES_MAX
    with pytest.raises(ServiceError, match="BlockListTooLong"):
        finish(read_block_list(body_of([*entries, entries[0]], attributes=attributes).encode()))


def test_a_body_holds_the_most_and_longest_entries() -> None:
    longest = Entry(Source.UNCOMMITTED, b64encode(bytes(64)).decode())
    assert ENTRIES_MAX * len(body_of([longest])) < BODY_BYTES_MAX


def test_a_long_body_is_rejected_unread() -> None:
    with pytest.raises(ServiceError, match="RequestBodyTooLarge"):
        finish(read_block_list(b"<BlockList>" + bytes(9_000_000)))


def test_long_lists_are_read_and_written_in_steps() -> None:
    entries = [Entry(Source.LATEST, "QQ==")] * 5_000
    assert steps_of(read_block_list(body_of(entries).encode())) >= 10
    blocks = [Block("QQ==", 1)] * 5_000
    assert steps_of(write_block_list(blocks, blocks)) >= 20


@given(st.lists(st.builds(Block, IDS, st.integers(0, 2**42))), st.lists(st.builds(Block, IDS, st.just(1))))
def test_blocks_are_written(committed: list[Block], uncommitted: list[Block]) -> None:
    root = fromstring(b"".join(finish(write_block_list(committed, uncommitted))).decode("utf-8-sig"))
    assert [child.tag for child in root] == ["CommittedBlocks", "UncommittedBlocks"]
    for child, blocks in zip(root, [committed, uncommitted], strict=True):
        found = [(block.findtext("Name"), block.findtext("Size")) for block in child]
        assert found == [(id_, str(size)) for id_, size in blocks]


def test_the_answer_to_the_byte() -> None:
    start = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><BlockList>'
    assert b"".join(finish(write_block_list([], []))) == start + b"<CommittedBlocks /><UncommittedBlocks /></BlockList>"
    assert b"".join(finish(write_block_list([], None))) == start + b"<CommittedBlocks /></BlockList>"
    one = b"<UncommittedBlocks><Block><Name>QQ==</Name><Size>4</Size></Block></UncommittedBlocks></BlockList>"
    assert b"".join(finish(write_block_list(None, [Block("QQ==", 4)]))) == start + one
