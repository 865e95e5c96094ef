"""The own format: all types come back; what was changed, moved or encrypted with another key is rejected."""

import os
import secrets
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.effects.tables import EntityKey, Kind
from lazulite_patterns.effects.wire import entity_json
from lazulite_patterns.encryption import Cipher, KeyRing, Undecryptable
from lazulite_patterns.encryption.cells import _framed
from lazulite_patterns.encryption.values import decoded, encoded
from lazulite_patterns.entities.errors import EntityValueError

KEYS = {"2025": secrets.token_bytes(32), "2026": secrets.token_bytes(32)}
RING = KeyRing(KEYS, "2026", blind=secrets.token_bytes(32))
CIPHER = Cipher(RING, ["A", "B"], blind=["B"])
KEY = EntityKey("p", "r")

VALUES = (
    st.text()
    | st.binary()
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats()
    | st.uuids()
    | st.datetimes(min_value=datetime(1601, 1, 1), timezones=st.just(UTC))
    | st.builds(EntityProperty, st.integers(-(2**63), 2**63 - 1), st.just(EdmType.INT64))
    | st.just(EntityProperty("2014-07-31T18:00:00.1234567Z", EdmType.DATETIME))
)


def sealed(name: str, value: object, key: EntityKey = KEY, cipher: Cipher = CIPHER) -> Any:
    return cipher.encrypt(key, {name: value}, Kind.PUT)[name]


@given(VALUES)
def test_each_type_comes_back(value: object) -> None:
    stored = CIPHER.encrypt(KEY, {"A": value, "C": 1}, Kind.INSERT)
    assert isinstance(stored["A"], bytes)
    assert stored["C"] == 1
    plain = CIPHER.decrypt(KEY, stored)
    assert entity_json(plain) == entity_json({"A": value, "C": 1}), "the SDK would write the same"


OF_THIS_VERSION = bytes.fromhex("01010432303236755366e68871c0fd4f57b5bb314860e903d5a0803359037c1b7365ce2839920eed2e")
BLIND_OF_THIS_VERSION = bytes.fromhex("ca6bf51e81cde63aa58a20507c50f9bd")


def test_what_this_version_wrote_is_read_by_later_ones() -> None:
    """The derivation of keys, the layout and the associated data are part of the format."""
    ring = KeyRing({"2026": bytes(range(32))}, "2026", blind=bytes(range(32, 64)))
    cipher = Cipher(ring, ["A"], blind=["A"])
    assert cipher.decrypt(EntityKey("Sales", "j\u00f6nes"), {"A": OF_THIS_VERSION}) == {"A": "\u20ac 42"}
    assert cipher.blind("A", "\u20ac 42") == {"A_Blind": BLIND_OF_THIS_VERSION}


@given(VALUES, st.data())
def test_a_changed_octet_is_rejected(value: object, data: st.DataObject) -> None:
    stored = bytearray(sealed("A", value))
    place = data.draw(st.integers(0, len(stored) - 1))
    stored[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Undecryptable):
        CIPHER.decrypt(KEY, {"A": bytes(stored)})


@pytest.mark.parametrize("code", [0, 2, 3, 4, 5, 6, 7, 8, 9, 255])
def test_a_changed_type_is_rejected(code: int) -> None:
    stored = bytearray(sealed("A", "12345678"))
    assert stored[1] == 1
    stored[1] = code
    with pytest.raises(Undecryptable):
        CIPHER.decrypt(KEY, {"A": bytes(stored)})


@given(VALUES, st.integers(1, 60))
def test_a_shortened_value_is_rejected(value: object, count: int) -> None:
    with pytest.raises(Undecryptable):
        CIPHER.decrypt(KEY, {"A": sealed("A", value)[:-count]})


@pytest.mark.parametrize(
    ("key", "name"),
    [(EntityKey("p", "other"), "A"), (EntityKey("other", "r"), "A"), (EntityKey("pr", ""), "A"), (KEY, "B")],
)
def test_a_value_that_was_moved_is_rejected(key: EntityKey, name: str) -> None:
    with pytest.raises(Undecryptable, match="moved"):
        CIPHER.decrypt(key, {name: sealed("A", "secret")})


def test_another_key_is_rejected() -> None:
    stored = {"A": sealed("A", "secret")}
    other = Cipher(KeyRing({"2026": os.urandom(32)}, "2026"), ["A"])
    with pytest.raises(Undecryptable, match="another key"):
        other.decrypt(KEY, stored)
    gone = Cipher(KeyRing({"2025": KEYS["2025"]}, "2025"), ["A"])
    with pytest.raises(Undecryptable, match="no key '2026'"):
        gone.decrypt(KEY, stored)


@pytest.mark.parametrize(
    "plain", ["text", 1, b"", b"\x01\x01\x04abc", b"\x02" + bytes(60), b"\x01\x01\x02\xff\xff" + bytes(60)]
)
def test_a_value_that_is_not_encrypted_is_rejected_or_allowed(plain: object) -> None:
    with pytest.raises(Undecryptable):
        CIPHER.decrypt(KEY, {"A": plain})
    allowing = Cipher(RING, ["A"], allow_plain=True)
    assert allowing.decrypt(KEY, {"A": plain}) == {"A": plain}
    assert allowing.decrypt(KEY, {"A": sealed("A", "secret")}) == {"A": "secret"}
    stored = bytearray(sealed("A", "secret"))
    stored[-1] ^= 1
    with pytest.raises(Undecryptable):
        allowing.decrypt(KEY, {"A": bytes(stored)})


def test_equal_values_look_different_but_for_the_blind_index() -> None:
    stored = [CIPHER.encrypt(key, {"A": "x", "B": "x"}, Kind.PUT) for key in (KEY, KEY, EntityKey("p", "other"))]
    assert len({each["A"] for each in stored}) == len({each["B"] for each in stored}) == 3
    assert len({each["B_Blind"] for each in stored}) == 1
    assert CIPHER.blind("B", "x") == {"B_Blind": stored[0]["B_Blind"]}
    assert CIPHER.blind("B", "y") != CIPHER.blind("B", "x")
    assert CIPHER.blind("B", 1) != CIPHER.blind("B", EntityProperty(1, EdmType.INT64))
    assert CIPHER.blind("B", "x") != CIPHER.blind("B", b"x"), "the type is part of it"
    assert CIPHER.blind("A", "x") == {}
    assert CIPHER.decrypt(KEY, stored[0]) == {"A": "x", "B": "x"}


def test_rotation_is_gradual() -> None:
    old = Cipher(KeyRing(KEYS, "2025"), ["A"])
    stored = old.encrypt(KEY, {"A": "x"}, Kind.PUT)
    assert CIPHER.decrypt(KEY, stored) == {"A": "x"}
    assert old.is_current(stored)
    assert not Cipher(RING, ["A"]).is_current(stored)
    assert CIPHER.is_current(CIPHER.encrypt(KEY, {"A": "x", "B": 2}, Kind.PUT))
    assert not CIPHER.is_current({"B": sealed("B", 2)}), "without its blind index"
    assert not CIPHER.is_current({"A": "plain"})
    assert CIPHER.is_current({"C": "never encrypted"})


def test_what_cannot_be_encrypted_is_rejected() -> None:
    for value in (object(), 2**31, EntityProperty(2**63, EdmType.INT64), "\ud800"):
        with pytest.raises(EntityValueError):
            CIPHER.encrypt(KEY, {"A": value}, Kind.PUT)
    with pytest.raises(EntityValueError, match="B_Blind"):
        CIPHER.encrypt(KEY, {"B_Blind": b"x"}, Kind.MERGE)
    assert CIPHER.encrypt(KEY, {"A": None}, Kind.PUT) == {"A": None}
    with pytest.raises(Undecryptable, match="code 99"):
        decoded(99, b"")
    assert encoded(UUID(int=1)) == (8, UUID(int=1).bytes)


def test_keys_are_checked() -> None:
    wrongs: list[Any] = [
        ({"a": bytes(16)}, "a", None),
        ({"a": bytes(32)}, "b", None),
        ({"a": bytes(32)}, "a", b"short"),
        ({"": bytes(32)}, "", None),
        ({"a" * 65: bytes(32)}, "a" * 65, None),
    ]
    for keys, current, blind in wrongs:
        with pytest.raises(ValueError, match=r"key|bytes"):
            KeyRing(keys, current, blind)
    with pytest.raises(ValueError, match="not encrypted"):
        Cipher(RING, ["A"], blind=["B"])
    with pytest.raises(ValueError, match="blind"):
        Cipher(KeyRing(KEYS, "2026"), ["A"], blind=["A"])
    assert "KEYS" not in repr(RING)
    assert KEYS["2026"].hex() not in repr(RING)


@given(st.lists(st.binary(max_size=5), max_size=4), st.lists(st.binary(max_size=5), max_size=4))
def test_parts_are_framed_without_doubt(one: list[bytes], other: list[bytes]) -> None:
    assert (_framed(*one) == _framed(*other)) is (one == other)


def test_a_value_is_bound_to_its_table() -> None:
    one, other = CIPHER.of("One"), CIPHER.of("Other")
    stored = one.encrypt(KEY, {"A": "secret"}, Kind.PUT)
    assert one.decrypt(KEY, stored)["A"] == "secret"
    assert CIPHER.of("one").decrypt(KEY, stored)["A"] == "secret", "the service ignores the case of a table's name"
    with pytest.raises(Undecryptable):
        other.decrypt(KEY, stored)
    copied = Cipher(RING, ["A"], table="One").of("Restored")
    assert copied.decrypt(KEY, stored)["A"] == "secret"


def test_values_of_the_first_version_are_read_if_that_is_allowed() -> None:
    ring = KeyRing({"2026": bytes(range(32))}, "2026")
    place = EntityKey("Sales", "j\u00f6nes")
    assert Cipher(ring, ["A"]).of("t").decrypt(place, {"A": OF_THIS_VERSION}) == {"A": "\u20ac 42"}
    assert not Cipher(ring, ["A"]).of("t").is_current({"A": OF_THIS_VERSION})
    with pytest.raises(Undecryptable, match="no table"):
        Cipher(ring, ["A"], allow_unbound=False).of("t").decrypt(place, {"A": OF_THIS_VERSION})
