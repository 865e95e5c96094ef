"""The hashes are PostgreSQL's own, which a server tells for texts and numbers."""

from random import Random

from lazulite.engine.postgres.citus.hash_bytes import bigint_bytes, hash_bytes
from tests.engine.postgres.conftest import execute


def test_it_is_the_hash_of_the_server() -> None:
    dice = Random(1)
    texts = ["".join(chr(dice.randrange(32, 127)) for _ in range(size)) for size in (*range(40), 100, 1300)]
    found = execute("SELECT text, hashtext(text) FROM unnest($1::text[]) AS text", texts)
    assert len(found) == len(texts)
    assert [(text, hash_bytes(str(text).encode())) for text, _ in found] == [
        (text, int(str(number)) % (1 << 32)) for text, number in found
    ]


def test_so_is_that_of_a_number() -> None:
    dice = Random(1)
    numbers = [0, 1, -1, (1 << 62) - 1, *(dice.randrange(-(1 << 63), 1 << 63) for _ in range(100))]
    found = execute("SELECT number, hashint8(number) FROM unnest($1::bigint[]) AS number", numbers)
    assert [(number, hash_bytes(bigint_bytes(int(str(number))))) for number, _ in found] == [
        (number, int(str(hashed)) % (1 << 32)) for number, hashed in found
    ]
