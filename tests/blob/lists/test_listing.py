"""Pages of lists of blobs against a simple model, for any rows, names and parameters; and what a page costs."""

import asyncio
import gc
import itertools
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lazulite.blob.lists import listing
from lazulite.blob.lists.blob_list_xml import BlobPage, RowWriter
from lazulite.blob.lists.current_blobs import CurrentBlobs
from lazulite.blob.lists.listing import common_prefixes
from lazulite.blob.lists.page import ListRequest, Page
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.block import Block, write_blocks
from lazulite.blob.model.ledger import Ledger
from lazulite.blob.model.rows import CURRENT, LEDGER, LIST, list_row, snapshot_row, upload_rows, version_row
from lazulite.blob.requests.paging import read_marker, write_marker
from lazulite.blob.storage import walk
from lazulite.blob.times import write_time
from lazulite.engine.commit import changing
from lazulite.engine.contract import LISTED
from lazulite.engine.key_encoding import SPACE_BYTES, decode_text, encode_key, join_keys
from lazulite.engine.ordinal import ordinal
from tests.blob.world import World, opened

SPACE = 5000
NAMES = st.text(st.sampled_from("ab/\x01\ud7ff\ue000\uffff\U00010000\U0010ffff"), min_size=1, max_size=4)
WORDS = ("snapshots", "uncommittedblobs", "deleted", "versions", "deletedwithversions")
BLOB = Blob(type=BlobType.BLOCK, modified=10**17, created=10**17)
DELETED = BLOB._replace(deleted=10**17, expires=2 * 10**17)


class Stored(NamedTuple):
    """What is stored of a name."""

    base: Blob | None
    snapshots: Mapping[int, Blob]
    versions: Mapping[int, Blob]
    upload: bool
    noise: int
    """Rows that no list shows."""

    def rows(self) -> dict[str, bytes]:
        found = {snapshot_row(time): blob.to_bytes() for time, blob in self.snapshots.items()}
        found |= {version_row(time): blob.to_bytes() for time, blob in self.versions.items()}
        if self.base is not None:
            found[CURRENT] = self.base.to_bytes()
        ledger = Ledger(upload=7 if self.upload else 0, deleted=self.base is not None and bool(self.base.deleted))
        if ledger != Ledger():
            found[LEDGER] = ledger.to_bytes()
        for index in range(self.noise):
            row = f"{upload_rows(7)}{index:03}" if self.upload else list_row(7, index)
            found[row] = write_blocks(0, [Block("a", 1, None, b"a")])
        return found


KEPT = st.sampled_from([BLOB, DELETED])
STORED = st.builds(
    Stored,
    st.sampled_from([None, BLOB, BLOB, BLOB, BLOB._replace(version=20), DELETED]),
    st.dictionaries(st.integers(1, 9), KEPT, max_size=3),
    st.dictionaries(st.integers(11, 19), KEPT, max_size=3),
    st.booleans(),
    st.sampled_from([0, 0, 0, 1, 2, 30]),
)


def expected(stored: Mapping[str, Stored], include: frozenset[str]) -> list[tuple[str, str, str]]:
    """Return the entries of all names: name, snapshot and version."""
    found: list[tuple[str, str, str]] = []
    for name in sorted(stored, key=ordinal):
        base, snapshots, versions, upload, _ = stored[name]
        shown = {False, True} if "deleted" in include else {False}
        kept = [(time, "s") for time, blob in snapshots.items() if "snapshots" in include]
        kept += [(time, "v") for time, blob in versions.items() if "versions" in include]
        states = {"s": snapshots, "v": versions}
        kept = sorted(each for each in kept if bool(states[each[1]][each[0]].deleted) in shown)
        kept.sort(key=lambda each: each[0])
        texts = [(write_time(time), kind) for time, kind in kept]
        found += [(name, time if kind == "s" else "", time if kind == "v" else "") for time, kind in texts]
        is_gone = base is None or base.deleted
        if "deletedwithversions" in include and "versions" not in include and is_gone and versions:
            found.append((name, "", ""))
        if base is not None and bool(base.deleted) in shown:
            found.append((name, "", write_time(20) if "versions" in include and base.version else ""))
        elif upload and is_gone and "uncommittedblobs" in include:
            found.append((name, "", ""))
    return found


def grouped(entries: Sequence[tuple[str, str, str]], prefix: str, delimiter: str) -> list[tuple[str, str, str]]:
    """Return the entries of a list, in which common prefixes stand for names."""
    found: list[tuple[str, str, str]] = []
    for name, snapshot, version in entries:
        if name.startswith(prefix):
            head, mark, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            entry = (f"prefix {prefix}{head}{mark}", "", "") if mark else (name, snapshot, version)
            if not mark or entry not in found:
                found.append(entry)
    return found


def shown(page: Page) -> list[tuple[str, str, str]]:
    return [
        (f"prefix {name_of(entry)}", "", "")
        if entry.tag == "BlobPrefix"
        else (name_of(entry), entry.findtext("Snapshot", ""), entry.findtext("VersionId", ""))
        for entry in elements(page)
    ]


def elements(page: Page) -> list[Element]:
    found = list(fromstring(b"<Blobs>%b</Blobs>" % b"".join(page.rows)))
    assert len(found) == page.entries
    return found


def name_of(entry: Element) -> str:
    element = entry.find("Name")
    assert element is not None
    assert element.text is not None
    return unquote(element.text) if element.get("Encoded") else element.text


def properties_of(entry: Element) -> dict[str, str | None]:
    return {each.tag: each.text for each in entry.findall("Properties/*")}


async def read_page(world: World, **fields: object) -> Page:
    asked = request(**fields)
    return await listing.read_page(world.context, asked, RowWriter(about(asked.version)))


def about(version: str) -> BlobPage:
    return BlobPage(base="http://127.0.0.1:10000/acc/", container="c", sent=[], version=version)


async def fill(world: World, stored: Mapping[str, Stored]) -> None:
    for name, rows in ((name, each.rows()) for name, each in stored.items()):
        if rows:
            await world.engine.commit(SPACE, name, changing(list(rows), lambda _, __, rows=rows: rows))  # type: ignore[misc]


def request(**fields: object) -> ListRequest:
    return ListRequest(**{"space": SPACE, "version": "2026-10-06", "most": 5000, "deadline": 1e9, **fields})  # type: ignore[arg-type]


async def all_pages(world: World, **fields: object) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    marker = None
    while True:
        page = await read_page(world, marker=marker, **fields)
        found += shown(page)
        assert page.entries <= fields["most"]  # type: ignore[operator]
        if page.next is None:
            return found
        assert page.entries, "the page of a fast clock has room for one"
        marker = read_marker(write_marker(page.next))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(NAMES, STORED, max_size=12),
    st.text(st.sampled_from("ab/\ud7ff\uffff\U0010ffff"), max_size=2),
    st.sampled_from(["", "/", "b", "\uffff", "\U0010ffff", "ab"]),
    st.frozensets(st.sampled_from(WORDS)),
    st.integers(1, 5),
    st.booleans(),
)
def test_pages_show_all_that_is_asked_for(
    stored: Mapping[str, Stored], prefix: str, delimiter: str, include: frozenset[str], most: int, in_small_steps: bool
) -> None:
    async def run() -> None:
        async with opened() as world:
            await fill(world, stored)
            if in_small_steps:
                world.engine._settings = replace(world.engine._settings, slice_rows_max=3, slice_keys_max=2)
            pages = await all_pages(world, prefix=prefix, delimiter=delimiter, include=include, most=most)
            assert pages == grouped(expected(stored, include), prefix, delimiter)

    with pytest.MonkeyPatch.context() as patch:
        if in_small_steps:
            patch.setattr(walk, "_KEYS", walk._ReachableContents(least=2, most=8, patience=2))
            patch.setattr(walk, "_VALUES", walk._ReachableContents(least=1, most=8, patience=2))
            patch.setattr(listing, "_ROWS_AT_ONCE", 2)
            patch.setattr(listing, "_BYTES_AT_ONCE", 1)
            patch.setattr(listing, "_KEYS_IN_VAIN", 3)
            patch.setattr(listing, "_PREFIXES_IN_A_ROW", 1)
        asyncio.run(run())


async def test_snapshots_behind_a_row_of_prefixes_are_read() -> None:
    """After some prefixes, scans read keys alone. A scan that begins among snapshots reads their values, too."""
    base = Stored(BLOB, {}, {}, False, 0)
    stored = dict.fromkeys(("0", "a/", "b/", "c/", "d/", "e/", "f/", "g/"), base)
    stored["z"] = Stored(BLOB, dict.fromkeys(range(1, 41), BLOB), {}, False, 0)
    include = frozenset({"snapshots"})
    async with opened() as world:
        await fill(world, stored)
        pages = await all_pages(world, delimiter="/", include=include, most=100)
    assert pages == grouped(expected(stored, include), "", "/")


async def put_names(world: World, names: Sequence[str]) -> None:
    await fill(world, {name: Stored(BLOB, {}, {}, upload=False, noise=0) for name in names})


async def test_names_between_two_others() -> None:
    async with opened() as world:
        await put_names(world, ["a", "b", "c", "d"])
        page = await read_page(world, start="b", end="d")
        assert [name for name, _, _ in shown(page)] == ["b", "c"]


async def test_a_prefix_costs_the_same_for_many_names() -> None:
    async with opened() as world:
        await put_names(world, [f"{folder}/{index:04}" for folder in "abc" for index in range(700)])
        page = await read_page(world, delimiter="/", most=2)
        assert page.scanned < 200
        page = await read_page(world, delimiter="/")
        assert [name for name, _, _ in shown(page)] == ["prefix a/", "prefix b/", "prefix c/"]
        await put_names(world, [f"b/{index:05}" for index in range(1500)])
        first = (await read_page(world, delimiter="/")).scanned
        await put_names(world, [f"b/{index:05}" for index in range(1500, 3500)])
        then = (await read_page(world, delimiter="/")).scanned
        assert abs(then - first) <= 1000  # A busy machine cuts slices shorter. A jump is made between two of them.


async def test_a_prefix_is_shown_for_what_is_shown_below_it() -> None:
    async with opened() as world:
        stored = {name: Stored(BLOB, {}, {}, upload=False, noise=0) for name in ("a/1", "c/2", "e/1", "f/1")}
        deleted = Stored(DELETED, {}, {}, upload=False, noise=0)
        uncommitted = Stored(None, {}, {}, upload=True, noise=1)
        await fill(world, {**stored, "b/1": deleted, "c/1": deleted, "d/1": uncommitted})
        for include, prefixes in (("", "acef"), ("deleted", "abcef"), ("uncommittedblobs", "acdef")):
            page = await read_page(world, delimiter="/", include=frozenset([include]))
            assert [name for name, _, _ in shown(page)] == [f"prefix {each}/" for each in prefixes]


async def test_rows_that_are_not_shown_are_jumped_over() -> None:
    async with opened() as world:
        await fill(world, {name: Stored(BLOB, {}, {}, upload=True, noise=999) for name in "abcde"})
        page = await read_page(world, most=10)
        assert page.entries == 5
        assert page.scanned < 200


async def test_few_rows_that_are_not_shown_begin_no_scans() -> None:
    async with opened() as world:
        await fill(world, {f"{index:03}": Stored(BLOB, {}, {}, upload=False, noise=2) for index in range(300)})
        scans, scan = list[int](), world.engine.scan
        world.engine.scan = lambda *args, **named: scans.append(1) or scan(*args, **named)  # type: ignore[method-assign, func-returns-value]
        assert (await read_page(world)).entries == 300
        assert len(scans) < 10


async def test_a_page_ends_by_its_deadline() -> None:
    async with opened() as world:
        names = [f"{number:03}" for number in range(300)]
        await put_names(world, [*names, *(f"{name}/x" for name in names)])
        for fields in ({}, {"include": frozenset(["versions"])}, {"delimiter": "/"}):
            page = await read_page(world, deadline=-1e9, **fields)
            assert 0 < page.entries < 300
            assert page.next is not None
            rest = await read_page(world, deadline=-1e9, marker=page.next, **fields)
            assert shown(rest)[0] == shown(await read_page(world, marker=page.next, **fields))[0]


async def test_large_metadata_are_written_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, write = list[int](), CurrentBlobs.write

    def observed(self: CurrentBlobs, names: Sequence[str], lines: Sequence[bytes]) -> list[str]:
        sizes.append(sum(map(len, lines)))
        return write(self, names, lines)

    async with opened() as world:
        large = Stored(BLOB._replace(metadata=(("a", "b" * 8000),)), {}, {}, upload=False, noise=0)
        await fill(world, {f"{number:02}": large for number in range(30)})
        with monkeypatch.context() as patch:
            patch.setattr(CurrentBlobs, "write", observed)
            page = await read_page(world, include=frozenset(["metadata"]))
    assert page.entries == 30
    assert max(sizes) <= listing._BYTES_AT_ONCE


async def test_a_page_is_freed_without_the_collector() -> None:
    """It may have megabytes, and the collector of a server seldom runs."""
    async with opened() as world:
        await put_names(world, ["a", "b/1"])
        gc.collect()
        gc.disable()
        try:
            for fields in ({}, {"delimiter": "/"}, {"include": frozenset(["versions"])}):
                await read_page(world, **fields)
                assert gc.collect() == 0
        finally:
            gc.enable()


async def test_what_is_shown_of_a_blob() -> None:
    async with opened() as world:
        blob = BLOB._replace(metadata=(("a", "b"),), tags=(("t", "v"),), sealed=True, type=BlobType.APPEND)
        stored = Stored(blob, {5: BLOB}, {6: BLOB}, upload=False, noise=0)
        await fill(world, {"a": stored})
        (entry,) = elements(await read_page(world))
        assert entry.find("Metadata") is entry.find("Tags") is None
        assert {"Sealed": "true", "TagCount": "1", "LeaseState": "available"}.items() <= properties_of(entry).items()
        include = frozenset(["metadata", "tags", "snapshots", "versions"])
        *kept, last = elements(await read_page(world, include=include))
        assert (last.findtext("Metadata/a"), last.findtext("Tags/TagSet/Tag/Value")) == ("b", "v")
        assert not any("LeaseState" in properties_of(each) for each in kept)


@pytest.mark.parametrize(("expires", "days"), [(3, "2"), (1, "0"), (0, "0")])
async def test_days_that_a_deleted_blob_is_kept(expires: int, days: str) -> None:
    async with opened() as world:
        day = 864_000_000_000
        blob = DELETED._replace(expires=world.context.clock() + expires * day - day // 2)
        await fill(world, {"a": Stored(blob, {}, {}, upload=False, noise=0)})
        (entry,) = elements(await read_page(world, include=frozenset(["deleted"])))
        assert entry.findtext("Deleted") == "true"
        assert properties_of(entry)["RemainingRetentionDays"] == days
        assert "LeaseState" not in properties_of(entry)


TEXTS = st.text(st.sampled_from("a/-]^\\\uffff\U00010000"), max_size=3)
DELIMITERS = st.sampled_from(["/", "-", "]", "^", "\\", "\0", "\U00010000", "//", "/-", "aa", "\U00010000\uffff"])
JOINED_NAMES = st.builds(
    lambda delimiter, heads, tails, others: (delimiter, {f"{h}{delimiter}{t}" for h in heads for t in tails} | others),
    DELIMITERS,
    st.sets(TEXTS, min_size=1, max_size=4),
    st.sets(TEXTS, min_size=1, max_size=3),
    st.just(set[str]()) | st.sets(TEXTS.filter(bool), max_size=2),
)
"""A delimiter, and names: most of them contain it."""
ROWS = st.sampled_from([{CURRENT}, {CURRENT}, {CURRENT}, {CURRENT, LIST}, {LEDGER, CURRENT}, {LIST}])


SPACES = st.sampled_from([5, LISTED | 0x04FF, 0x2F2F_612F, 0x00FF_2F00_62FF_FE00])
"""Their numbers have bytes that stand for something else in texts."""


def model(keys: list[tuple[str, str]], prefix: str, delimiter: str) -> list[str]:
    found: list[str] = []
    for name, row in keys:
        head, mark, _ = name[len(prefix) :].partition(delimiter)
        common = prefix + head + mark
        if common not in found:
            if not mark or row != CURRENT:
                break
            found.append(common)
    return found


@given(TEXTS, JOINED_NAMES, st.lists(ROWS, min_size=1, max_size=20), SPACES)
@example("/", ("//", {"//", "///"}), [{CURRENT}], 5)
@example("", ("/", {"a/b", "a/\0/c", "a/d", "b/c"}), [{CURRENT}], 5)
@example("", ("/", {"a/", "a/\0--space-c/d"}), [{CURRENT}], 5)
def test_prefixes_of_a_slice(prefix: str, named: tuple[str, Set[str]], rows: Sequence[Set[str]], space: int) -> None:
    delimiter, names = named
    stored = zip(sorted(names, key=ordinal), itertools.cycle(rows))
    keys = [(prefix + name, row) for name, some in stored for row in sorted(some)]
    encoded = [encode_key(space, *key) for key in keys]
    joined = [join_keys(encoded, SPACE_BYTES), join_keys([key[SPACE_BYTES:] for key in encoded], 0)]
    found = [prefix + decode_text(each) for each in common_prefixes(joined[0], prefix, delimiter)]
    expected = model(keys, prefix, delimiter)
    if any("\0" in name for name, _ in keys):
        assert expected[: len(found)] == found
    else:
        assert expected == found
    assert common_prefixes(joined[1], prefix, delimiter) == common_prefixes(joined[0], prefix, delimiter)


@settings(max_examples=30, deadline=None)
@given(JOINED_NAMES, TEXTS, st.integers(1, 5))
def test_pages_of_prefixes(named: tuple[str, Set[str]], prefix: str, most: int) -> None:
    delimiter, names = named
    stored = {f"{prefix}{name}".lstrip("\0") or "a": Stored(BLOB, {}, {}, upload=False, noise=2) for name in names}

    async def run() -> None:
        async with opened() as world:
            await fill(world, stored)
            pages = await all_pages(world, prefix=prefix, delimiter=delimiter, most=most)
            assert pages == grouped(expected(stored, frozenset()), prefix, delimiter)

    asyncio.run(run())


def test_the_time_of_a_long_delimiter_is_linear() -> None:
    name = "a" * 1000
    joined = join_keys([f"{name}b\0{CURRENT}".encode()] * 20000, 0)
    assert common_prefixes(joined, "", "a" * 900 + "b") == [f"{name}b".encode()]
