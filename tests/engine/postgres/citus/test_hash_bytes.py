"""The hash is PostgreSQL's own, which a server tells for texts."""

from random import Random

from lazulite.engine.postgres.citus.hash_bytes import hash_bytes
from tests.engine.postgres.conftest import execute


def test_it_is_the_hash_of_the_server() -> None:
    dice = Random(1)
    texts = ["".join(chr(dice.randrange(32, 127)) for _ in range(size)) for size in (*range(40), 100, 1300)]
    found = execute("SELECT text, hashtext(text) FROM unnest($1::text[]) AS text", texts)
    assert len(found) == len(texts)
    assert [(text, hash_bytes(str(text).encode())) for text, _ in found] == [
        (text, int(str(number)) % (1 << 32)) for text, number in found
    ]
