"""HMAC-SHA256 against the standard library's."""

import hmac
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import Signer


@given(st.binary(max_size=200), st.binary(max_size=300))
def test_signatures_are_those_of_rfc_2104(key: bytes, message: bytes) -> None:
    signer = Signer(key)
    expected = b64encode(hmac.digest(key, message, "sha256"))
    assert signer.sign(message) == expected
    assert signer.sign(message) == expected, "a signature leaves nothing behind"


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(Signer(b"secret"))
