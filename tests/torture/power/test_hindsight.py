"""The cut that is chosen when all is over: at an answer that came before its write was durable, if there is one."""

from pathlib import Path
from random import Random

import pytest

from .disk import Disk
from .hindsight import Answered, riskiest
from .recorder import Kind, Record

LOG, MARK = 1, 2
NAMES = {LOG: "7.log", MARK: "mark"}


def calls(root: Path, text: str) -> list[Record]:
    """Read calls: c and m write to the log and to the mark, s begins a sync of the log and e ends the newest."""
    records = [Record(Kind.CREATE, inode, 0, bytes(root / name), b"") for inode, name in NAMES.items()]
    for letter in text:
        begun = max((at for at, record in enumerate(records) if record.kind == Kind.SYNC), default=0)
        records.append(
            {
                "c": Record(Kind.WRITE, LOG, 0, b"x", b""),
                "m": Record(Kind.WRITE, MARK, 0, b"x", b""),
                "s": Record(Kind.SYNC, LOG, 0, b"", b""),
                "e": Record(Kind.SYNCED, LOG, begun, b"", b""),
            }[letter]
        )
    return records


@pytest.mark.parametrize(
    ("text", "answered", "moments"),
    [
        pytest.param("csemcmcsem", [(2, 6), (6, 8), (8, 12)], {8}, id="a sync left out"),
        pytest.param("csemcmcs", [(2, 6), (6, 10)], {10}, id="its answer came while the next write was synced"),
        pytest.param("csemmmcsem", [(2, 5), (5, 8)], {8}, id="nothing written to a log at all"),
        pytest.param("cscem", [(2, 6), (3, 6), (4, 6)], {6}, id="one answer among those of a moment"),
        pytest.param("cscemcsem", [(2, 7), (4, 7), (7, 10)], {7}, id="written after the sync had begun"),
        pytest.param("csemcsem", [(2, 5), (6, 9)], {5, 9}, id="all as it must be"),
    ],
)
def test_the_riskiest_moment(text: str, answered: list[Answered], moments: set[int], tmp_path: Path) -> None:
    chosen = {riskiest(Disk(tmp_path, strict=True), calls(tmp_path, text), answered, Random(n)) for n in range(20)}
    assert chosen == moments
