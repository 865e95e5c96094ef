"""The format of the old SDKs, both ways with the last one for Python; Java's variant by a vector of its description."""

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher as BlockCipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

from lazulite_patterns.effects.tables import EntityKey, Kind
from lazulite_patterns.encryption import LegacyCipher, Undecryptable, WrappingKey
from lazulite_patterns.entities.errors import EntityValueError

KEY = EntityKey("p\u00e9", "r")
WRAPPING = WrappingKey("local:key1", bytes(range(32)))
CIPHER = LegacyCipher(WRAPPING, ["A", "B"])
PLAIN = {"PartitionKey": KEY[0], "RowKey": KEY[1], "A": "secret \U0001f600", "B": "", "C": 5}


class OldKey:
    """A key as the old SDK takes it."""

    def wrap_key(self, key: bytes) -> bytes:
        return WRAPPING.wrap(key)

    def unwrap_key(self, key: bytes, algorithm: str) -> bytes:
        return WRAPPING.unwrap(key, algorithm)

    def get_key_wrap_algorithm(self) -> str:
        return "A256KW"

    def get_kid(self) -> str:
        return WRAPPING.kid


@pytest.fixture
def old() -> Any:
    return pytest.importorskip("azure.cosmosdb.table._encryption", reason="install azure-cosmosdb-table")


def test_the_old_sdk_reads_what_is_written(old: Any) -> None:
    models = pytest.importorskip("azure.cosmosdb.table.models")
    stored: Any = CIPHER.encrypt(KEY, PLAIN, Kind.INSERT)
    # As its deserializer has it: the names as Base64, the properties as Binary.
    entity = models.Entity(
        {**stored, "_ClientEncryptionMetadata2": base64.b64encode(stored["_ClientEncryptionMetadata2"])}
    )
    for name in ("A", "B"):
        entity[name] = models.EntityProperty(models.EdmType.BINARY, stored[name])
    iv, names, content_key, java = old._extract_encryption_metadata(entity, True, OldKey(), None)
    assert (names, java) == (["A", "B"], False)
    assert dict(old._decrypt_entity(entity, names, content_key, iv, java)) == PLAIN


def test_what_the_old_sdk_writes_is_read(old: Any) -> None:
    entity = old._encrypt_entity(dict(PLAIN), OldKey(), lambda partition, row, name: name in {"A", "B"})
    stored = {name: getattr(value, "value", value) for name, value in entity.items()}
    assert isinstance(stored["A"], bytes)
    assert CIPHER.decrypt(KEY, stored) == PLAIN
    assert LegacyCipher(WRAPPING, []).decrypt(KEY, stored) == PLAIN, "the entity itself names its properties"


def java_v1(metadata: dict[str, Any] | None) -> dict[str, object]:
    """Return an entity as the first version of the SDK for Java is described: other order, names without quotes."""
    content_key, iv = bytes(range(100, 132)), bytes(range(16))

    def encrypt(name: str, text: str) -> bytes:
        octets = text.encode()
        octets += bytes([16 - len(octets) % 16]) * (16 - len(octets) % 16)
        own = hashlib.sha256(iv + (KEY.partition_key + KEY.row_key + name).encode()).digest()[:16]
        encryptor = BlockCipher(AES(content_key), CBC(own)).encryptor()
        return encryptor.update(octets) + encryptor.finalize()

    about = {
        "WrappedContentKey": {
            "KeyId": WRAPPING.kid,
            "EncryptedKey": base64.b64encode(aes_key_wrap(WRAPPING.key, content_key)).decode(),
            "Algorithm": "A256KW",
        },
        "EncryptionAgent": {"Protocol": "1.0", "EncryptionAlgorithm": "AES_CBC_256"},
        "ContentEncryptionIV": base64.b64encode(iv).decode(),
    }
    if metadata is not None:
        about["KeyWrappingMetadata"] = metadata
    return {
        **PLAIN,
        "A": encrypt("A", "secret \U0001f600"),
        "B": encrypt("B", ""),
        "_ClientEncryptionMetadata1": json.dumps(about),
        "_ClientEncryptionMetadata2": encrypt("_ClientEncryptionMetadata2", "[A, B]"),
    }


@pytest.mark.parametrize("metadata", [None, {"EncryptionLibrary": "Java 4.2.0"}])
def test_entities_of_java_are_read(metadata: dict[str, Any] | None) -> None:
    assert CIPHER.decrypt(KEY, java_v1(metadata)) == PLAIN
    with pytest.raises(Undecryptable):
        CIPHER.decrypt(KEY, java_v1({"EncryptionLibrary": "Python 1.0.6"}))


def test_what_does_not_fit_is_rejected() -> None:
    stored: Any = CIPHER.encrypt(KEY, PLAIN, Kind.PUT)
    about = json.loads(stored["_ClientEncryptionMetadata1"])
    agent = {"Protocol": "2.0", "EncryptionAlgorithm": "x"}
    wrongs: list[dict[str, object]] = [
        {"_ClientEncryptionMetadata1": "no json"},
        {"_ClientEncryptionMetadata1": "[]"},
        {"_ClientEncryptionMetadata1": json.dumps({**about, "EncryptionAgent": agent})},
        {"_ClientEncryptionMetadata2": b"short"},
        {"_ClientEncryptionMetadata2": "text"},
        {"A": "text"},
        {"A": stored["A"][:-1]},
    ]
    for wrong in wrongs:
        with pytest.raises(Undecryptable):
            CIPHER.decrypt(KEY, {**stored, **wrong})
    for key in (WrappingKey("local:key1", bytes(32)), WrappingKey("other", bytes(range(32)))):
        with pytest.raises(Undecryptable):
            LegacyCipher(key, ["A"]).decrypt(KEY, stored)
    with pytest.raises(Undecryptable, match="A128KW"):
        WRAPPING.unwrap(b"", "A128KW")
    other = LegacyCipher(WrappingKey("new", bytes(32)), ["A"], others=[WRAPPING])
    assert other.decrypt(KEY, stored) == PLAIN
    assert not other.is_current(stored)
    assert CIPHER.is_current(stored)
    assert not CIPHER.is_current({})


def test_only_texts_of_whole_entities_are_written() -> None:
    with pytest.raises(EntityValueError, match="texts"):
        CIPHER.encrypt(KEY, {"A": 1}, Kind.PUT)
    for kind in (Kind.MERGE, Kind.PUT_MERGE):
        with pytest.raises(EntityValueError, match="no merge"):
            CIPHER.encrypt(KEY, {"A": "x"}, kind)
    with pytest.raises(Undecryptable, match="not encrypted"):
        CIPHER.decrypt(KEY, {"A": "plain"})
    allowing = LegacyCipher(WRAPPING, ["A"], allow_plain=True)
    assert allowing.decrypt(KEY, {"A": "plain"}) == {"A": "plain"}
    with pytest.raises(Undecryptable):
        allowing.decrypt(KEY, {"A": b"x", "_ClientEncryptionMetadata1": "{}"})
    assert CIPHER.select("A")[2:] == ("A", "_ClientEncryptionMetadata1", "_ClientEncryptionMetadata2")
    assert CIPHER.blind("A", "x") == {}
