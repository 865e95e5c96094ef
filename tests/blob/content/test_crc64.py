"""CRC-64: recorded values, both packages beside each other, and joined data."""

import subprocess
import sys
from base64 import b64encode

import pytest
from awscrt.checksums import crc64nvme  # type: ignore[import-untyped]  # The package has no types.
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.content.crc64 import (
    SegmentedCrc64,
    combine_crc64,
    crc64,
    crc64_of_azure,
    crc64_to_bytes,
)

LENGTHS = [0, 1, 8, 255, 256, 257, 263, 264, 265, 512, 513, 520, 1000, 65_536, 65_537, 262_145]


@pytest.mark.parametrize("compute", [crc64, crc64_of_azure])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a" * 1024, "ov8U1LLnyKc="),
        (b"a" * 8192, "ERTjv26IbjE="),
        (b"", "AAAAAAAAAAA="),
        (b"123456789", "iJh5CoYUi64="),
    ],
)
def test_recorded_values(compute: type[object], data: bytes, expected: str) -> None:
    assert b64encode(crc64_to_bytes(compute(data))).decode() == expected  # type: ignore[call-arg,arg-type]  # It is either function.


@pytest.mark.parametrize("length", LENGTHS)
def test_both_packages_agree(length: int) -> None:
    data = bytes(number * number % 251 for number in range(length))
    for previous in (0, 1, 2**64 - 1):
        assert crc64_of_azure(data, previous) == crc64nvme(data, previous)


@given(st.binary(max_size=700), st.binary(max_size=700))
def test_joined_data(first: bytes, second: bytes) -> None:
    whole = crc64nvme(first + second)
    assert crc64_of_azure(second, crc64_of_azure(first)) == whole
    assert combine_crc64(crc64nvme(first), crc64nvme(second), len(second)) == whole


def test_long_data_is_joined_by_its_length() -> None:
    zeros = bytes(3_000_001)
    assert combine_crc64(5, crc64nvme(zeros), len(zeros)) == crc64nvme(zeros, 5)


def test_segments_of_any_length() -> None:
    checksum, whole = SegmentedCrc64(), b""
    for length in (0, 1, 2 << 20, 5, (1 << 20) + 7, 1 << 20, 0):
        data = bytes([length % 251]) * length
        checksum.begin(length)
        for at in range(0, length, 100_000):
            checksum.update(data[at : at + 100_000])
        whole += data
        assert checksum.end() == crc64nvme(data)
        assert checksum.whole == crc64nvme(whole)


def test_a_window_may_be_changeable() -> None:
    assert crc64_of_azure(bytearray(b"123456789")) == crc64(bytearray(b"123456789")) == crc64(b"123456789")


def test_azure_computes_it_without_the_extra() -> None:
    program = """
import sys
sys.modules["awscrt"] = None
from lazulite.blob.content.crc64 import crc64, crc64_of_azure
print(crc64 is crc64_of_azure)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
