"""Ids of blocks, in base64 and out."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.block_id import (
    ID_BYTES_MAX,
    check_same_length,
    read_block_id,
    require_block_id,
)
from lazulite.protocol.errors import ServiceError


@given(st.binary(min_size=1, max_size=ID_BYTES_MAX))
def test_an_id_stays_base64(id_: bytes) -> None:
    text = b64encode(id_).decode()
    assert read_block_id(text) == read_block_id(text.encode()) == require_block_id({"blockid": text}) == text


def test_equal_bytes_are_equal_ids() -> None:
    assert read_block_id("QR==") == read_block_id("QQ==") == "QQ=="


@pytest.mark.parametrize(
    "text", ["", "A", "QQ", "QQ=", "QQ==\n", " QQ==", "Q!==", "QQ==QQ==", "é===", b64encode(bytes(65)).decode()]
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(ValueError, match=r"not base64|not 1 to 64 bytes|ASCII"):
        read_block_id(text)


@given(st.text())
def test_any_parameter_is_an_id_or_rejected(text: str) -> None:
    try:
        assert require_block_id({"blockid": text})
    except ServiceError as error:
        assert error.code in {"InvalidQueryParameterValue", "MissingRequiredQueryParameter"}


def test_a_rejection_names_the_parameter() -> None:
    with pytest.raises(ServiceError) as rejected:
        require_block_id({"blockid": "?" * 500})
    assert rejected.value.details[:2] == (("QueryParameterName", "blockid"), ("QueryParameterValue", "?" * 128))
    with pytest.raises(ServiceError) as rejected:
        require_block_id({})
    assert rejected.value.code == "MissingRequiredQueryParameter"


def test_uncommitted_blocks_have_ids_of_one_length() -> None:
    check_same_length("QQ==", None)
    check_same_length("QUI=", "Q0Q=")
    with pytest.raises(ServiceError, match="InvalidBlobOrBlock"):
        check_same_length("QUI=", "QQ==")
