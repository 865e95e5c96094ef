import re
from random import Random

from lazulite.protocol.request_id import RequestIds


def test_ids_have_the_services_shape_and_differ() -> None:
    ids = RequestIds(Random(1))
    given = [ids.next() for _ in range(1000)]
    assert len(set(given)) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{8}-0002-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{6}000000", each) for each in given)


class Given(Random):
    bits = 0

    def getrandbits(self, k: int, /) -> int:
        return self.bits & ((1 << k) - 1)


def test_the_count_wraps() -> None:
    random = Given()
    random.bits = -1
    ids = RequestIds(random, service=3)
    ids._count = 0xFFFFFFFF
    assert ids.next() == "ffffffff-0003-0000-0000-ffffff000000"


def test_the_count_carries() -> None:
    random = Given()
    random.bits = 0x1FFFE
    ids = RequestIds(random)
    assert [ids.next()[14:23] for _ in range(2)] == ["0001-ffff", "0002-0000"]
