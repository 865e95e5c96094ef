"""CRC-64: recorded values, the way in Python beside the one in C, and joined data."""

import subprocess
import sys

import pytest
from awscrt.checksums import crc64nvme  # type: ignore[import-untyped]  # The package has no types.
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.transfers.crc64 import (
    SegmentedCrc64,
    combine_crc64,
    crc64,
    crc64_in_python,
    read_crc64,
    write_crc64,
)

LENGTHS = [0, 1, 8, 255, 256, 257, 263, 264, 265, 512, 513, 520, 1000, 65_536, 65_537, 262_145]


@pytest.mark.parametrize("compute", [crc64, crc64_in_python])
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
    assert write_crc64(compute(data)) == expected  # type: ignore[call-arg,arg-type]  # It is either function.


@pytest.mark.parametrize("length", LENGTHS)
def test_both_ways_agree(length: int) -> None:
    data = bytes(number * number % 251 for number in range(length))
    for previous in (0, 1, 2**64 - 1):
        assert crc64_in_python(data, previous) == crc64nvme(data, previous)


@given(st.binary(max_size=700), st.binary(max_size=700))
def test_joined_data(first: bytes, second: bytes) -> None:
    whole = crc64nvme(first + second)
    assert crc64_in_python(second, crc64_in_python(first)) == whole
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


@given(st.integers(0, 2**64 - 1))
def test_a_checksum_survives_the_header(checksum: int) -> None:
    assert read_crc64(write_crc64(checksum)) == checksum


@given(st.text())
def test_other_headers_are_rejected(text: str) -> None:
    try:
        assert write_crc64(read_crc64(text))
    except ValueError:
        return


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAA", "AAAAAAAAAAA=\n", "AAAAAAAAAAAA"])
def test_a_checksum_has_8_bytes(text: str) -> None:
    with pytest.raises(ValueError, match=r"not base64|not 8 bytes"):
        read_crc64(text)


def test_python_computes_it_without_the_extra() -> None:
    program = """
import sys
sys.modules["awscrt"] = None
from lazulite.blob.transfers.crc64 import crc64, crc64_in_python
print(crc64 is crc64_in_python)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
